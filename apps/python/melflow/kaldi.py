"""Data folders of Kaldi whose commands are run: the function that file_list calls where `commands: allow`."""

from __future__ import annotations

import contextlib
import glob
import mmap
import os
import signal
import subprocess
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Tuple, Union

from ._melflow import RunError, file_of_command

_LONGEST = 600  # [s] of a command


def _lines(path: str) -> List[Tuple[str, str]]:
    """The first word of each line, and the rest."""
    try:
        with open(path, encoding="utf-8") as file:
            words = [line.split(None, 1) for line in file if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: cannot be read: {error}") from None
    return [(first, rest[0].rstrip() if rest else "") for first, *rest in words]


def _table(path: str) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for name, rest in _lines(path):
        if name in found:
            raise RunError(f"{path}: {name} has two lines; an id has one, so remove one of them")
        found[name] = rest
    return found


def _output(command: str, folder: str) -> Union[bytes, memoryview]:
    """What a command prints, in a temporary file. Raises OSError."""
    with tempfile.TemporaryFile() as printed:
        with subprocess.Popen(command, shell=True, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.PIPE, cwd=folder or None,
                              start_new_session=True) as process:  # Ctrl-C is for this process, which lets recordings end
            try:
                _, errors = process.communicate(timeout=_LONGEST)
            except subprocess.TimeoutExpired:
                raise OSError(f"its command takes longer than {_LONGEST} s ({command})") from None
            finally:  # also what it has left in the background
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode != 0:
            last = errors.decode(errors="replace").strip().rpartition("\n")[2]
            raise OSError(f"its command ended with exit status {process.returncode}{': ' + last if last else ''} ({command})")
        if printed.seek(0, os.SEEK_END) == 0:
            return b""
        return memoryview(mmap.mmap(printed.fileno(), 0, access=mmap.ACCESS_READ))


def _fails(why: str) -> Callable[[], bytes]:
    def fail() -> bytes:
        raise OSError(why)

    return fail


def _recording(name: str, source: str, root: str) -> Dict[str, Any]:
    file = file_of_command(source) or ("" if source.endswith("|") else source)
    if file.rpartition(":")[2].isdigit() and ":" in file:
        return {"path": name, "audio": _fails(f"is in an archive ({file}); write its recordings to files (wav-copy) and name these")}
    if file:
        return {"path": name, "audio": os.path.join(root, file)}
    command = source[:-1].strip()
    if not command:
        return {"path": name, "audio": _fails("is without a file or command in wav.scp")}
    return {"path": name, "version": command, "audio": lambda: _output(command, root)}


def _folder(path: str, root: str) -> Iterator[Dict[str, Any]]:
    folder = path if os.path.isdir(path) else os.path.dirname(path) or "."

    def table(name: str) -> Dict[str, str]:
        file = os.path.join(folder, name)
        return _table(file) if os.path.exists(file) else {}

    recordings = {name: _recording(name, source, root) for name, source in _table(os.path.join(folder, "wav.scp")).items()}
    speakers = table("utt2spk") or {utterance: name for name, all_of in table("spk2utt").items() for utterance in all_of.split()}
    durations = table("reco2dur")
    others = {name: of for name, of in (("speaker", speakers), ("text", table("text")), ("language", table("utt2lang"))) if of}
    has_segments = os.path.basename(path) == "segments" or path == folder and os.path.exists(os.path.join(folder, "segments"))
    segments = _table(os.path.join(folder, "segments")) if has_segments else {name: name for name in recordings}
    for utterance, line in segments.items():
        fields = line.split()
        name, start, end = (fields + [utterance, "", ""])[:3]
        missing = {"path": name, "audio": _fails(f"the recording '{name}' is not in the wav.scp beside it")}
        item = {**recordings.get(name, missing), "utterance": utterance, "recording": name,
                **{column: of.get(utterance, "") for column, of in others.items()}}
        if durations:
            item["recording_duration"] = durations.get(name, "")
        if has_segments:
            item.update(start=start, end="" if end.startswith("-") else end)
            if len(fields) != 3:
                item["audio"] = _fails(f"'{utterance} {line}' is not a line of segments, which is: utterance, recording, start, end")
                item["path"] = utterance
        yield item


def recordings(lists: Dict[str, str], root: str) -> Iterator[Dict[str, Any]]:
    """The utterances of data folders, each folder or pattern of folders given with its split, or "". Recordings are called after
    their ids, behind the folder where there are several."""
    paths = [(split, path) for split, given in lists.items()
             for path in ([given] if os.path.exists(given) else sorted(glob.glob(given, recursive=True)) or [given])]
    for split, path in paths:
        if not os.path.exists(os.path.join(path, "wav.scp")) and os.path.basename(path) not in ("wav.scp", "segments"):
            raise RunError(f"{path}: commands: allow is only for data folders of Kaldi, with a wav.scp; remove it")
        for item in _folder(path, root):
            if len(paths) > 1:
                item["path"] = os.path.join(path, item["path"])
            yield {**item, "split": split} if split else item
