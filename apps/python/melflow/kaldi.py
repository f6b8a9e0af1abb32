"""Data folders of Kaldi whose commands are run: the function that file_list calls where `commands: allow`."""

from __future__ import annotations

import contextlib
import glob
import mmap
import os
import signal
import subprocess
import tempfile
from typing import Any, Callable, Dict, Iterator, Union

from ._melflow import KaldiRows

_LONGEST = 600  # [s] the longest time of a command


# Runs $1. What waits beside it kills both, with all that was started, once this process is there no more, also if it was killed.
_WATCHED = 'exec 3<&0 </dev/null; { read -r x <&3; kill -s KILL -- -$$; } >/dev/null 2>&1 & exec 3<&-; c=$1; shift; eval "$c"'


@contextlib.contextmanager
def _life() -> Iterator[int]:
    """A pipe that ends with this process."""
    theirs, ours = os.pipe()
    try:
        yield theirs
    finally:
        os.close(theirs)
        os.close(ours)


def _output(command: str, folder: str) -> Union[bytes, memoryview]:
    """What a command prints, in a temporary file. Raises OSError."""
    with tempfile.TemporaryFile() as printed, _life() as life:
        with subprocess.Popen(["/bin/sh", "-c", _WATCHED, "sh", command], stdin=life, stdout=printed, stderr=subprocess.PIPE, cwd=folder or None,
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


def _audio(source: str, root: str) -> Dict[str, Any]:
    if not source.endswith("|"):
        return {"audio": os.path.join(root, source)}
    command = source[:-1].strip()
    return {"version": command, "audio": lambda: _output(command, root)}


def recordings(lists: Dict[str, str], root: str) -> Iterator[Dict[str, Any]]:
    """The utterances of data folders, each folder or pattern of folders given with its split, or "". Recordings are called after
    their ids, behind the folder where there are several."""
    paths = [(split, path) for split, given in lists.items()
             for path in ([given] if os.path.exists(given) else sorted(glob.glob(given, recursive=True)) or [given])]
    for split, path in paths:
        for row, problem in KaldiRows(path):
            name = row["path"] or row["utterance"] if problem else row["recording"]
            yield {**row, **(_audio(row["path"], root) if not problem else {"audio": _fails(problem)}),
                   "path": os.path.join(path, name) if len(paths) > 1 else name, **({"split": split} if split else {})}
