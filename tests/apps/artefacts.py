"""Makes what a version of melflow leaves on disks: outputs of all formats, what interrupted runs and jobs leave, caches, reports. Later
versions are checked by it: an output is read, and what was begun goes on, as in the version that made it.

In:  artefacts.py make MELFLOW FOLDER    by the earlier version, into a new folder (about 2 MB)
     artefacts.py check MELFLOW FOLDER   by the later one
     artefacts.py both MELFLOW           in a folder that is removed
     Jobs and caches have absolute paths: FOLDER is checked at the path where it was made, in a copy that has its place meanwhile.
Out: a line for each thing that is not as it was; exit status 0 where there is none.

What a later version refuses on purpose is named in its CHANGELOG.md, and a line of REFUSED here.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import walks

FILES = 24
KIB = 1 << 10

HEAD = """version: 1
memory: {{host: 64MiB}}
graph:
  files: {{stage: file_list, root: {root}, {files}}}
  read: {{stage: disk_read, from: files}}
  {before}decode: {{stage: decode, from: {of}, truncated: keep}}
  {behind}segment: {{stage: segment, from: {last}{segment}}}
  mel: {{stage: mel, from: segment, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}}
  write: {{stage: {sink}, from: {rows}, path: {path}{write}}}
"""
LABELS = "labels: parent_dir, splits: top_dir, columns: {speaker: '([0-9])[.]wav'}"
RESULTS = dict(before="takes: {stage: repeat, from: read, times: 2}\n  ", of="takes", last="resample",
               behind="speed: {stage: speed, from: decode, factors: [0.9, 1]}\n  resample: {stage: resample, from: speed, rate: 8000}\n  ")


def pipeline(path, sink="hdf5_write", write="", **more):
    values = dict(root="audio", files=LABELS, before="", of="read", behind="", last="decode", segment="", rows="mel")
    return HEAD.format(**{**values, **more}, path=path, sink=sink, write=write)


# Name: the pipeline of a run, and the files that it makes and that are read. One recording of audio/ is no sound.
RUNS = {
    "whole": (pipeline("whole.h5", write=", statistics: all, statistics_by: speaker"), ["whole.h5"]),
    "packed": (pipeline("packed.h5", write=", layout: chunked, chunk: 4KiB, compression: deflate, dtype: float16"), ["packed.h5"]),
    "splits": (pipeline("splits.h5", write=", split_files: true, statistics: train"), ["splits.train.h5", "splits.test.h5"]),
    "normalized": (pipeline("normalized.h5", write=", statistics: all, normalize: true"), ["normalized.h5"]),
    "windows": (pipeline("windows.h5", segment=", length: 2000, hop: 1000"), ["windows.h5"]),
    "results": (pipeline("results.h5", **RESULTS), ["results.h5"]),
    "content": (pipeline("content.h5", files=LABELS + ", update_by: content"), ["content.h5"]),
    "array": (pipeline("array.npy", "npy_write", ", split_files: false"), ["array.npy"]),
    "ark": (pipeline("ark.ark", "kaldi_write"), ["ark.ark"]),
    "shards": (pipeline("shards.tar", "tar_write"), []),
    "sound": (pipeline("sound.h5") + "  keep: {stage: audio_write, from: decode, path: sound, overwrite: true}\n", ["sound.h5"]),
    "cached": (pipeline("cached.npy", "npy_write", ", split_files: false", files=LABELS + ", feed: cache, cache_path: cache"), ["cached.npy"]),
}
NOT_UPDATED = ("normalized", "sound")  # since new files would change its statistics, or are not updated
REFUSED = {}  # name: words of the message, from which version on


def make_audio(folder):
    draw = random.Random(1)
    for i in range(FILES):
        path = folder / ("train", "test")[i % 2] / ("ant", "bee", "cat")[i % 3] / f"{i:02}-{i % 4}.wav"
        walks.write_wav(str(path), draw.randbytes(2 * draw.randrange(800, 8000)))
    (folder / "train/ant/12-0.wav").write_bytes(b"no sound")
    for name in (b"caf\xe9-1.wav", "日本 $HOME-2.wav".encode(), b"two\nlines-3.wav"):
        walks.write_wav(os.path.join(folder, "test/cat", os.fsdecode(name)), draw.randbytes(4000))


def run(program, folder, *words, code=(0,), most=None):
    """most: the longest file that it can write [bytes]."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        if most is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    ended = subprocess.run([program, *map(str, words)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=limit, check=False)
    text = (ended.stdout + ended.stderr).decode(errors="backslashreplace")
    if ended.returncode not in code:
        raise RuntimeError(f"melflow {' '.join(map(str, words))} ended with {ended.returncode}: {text}")
    return text


def make(program, folder):
    folder.mkdir(parents=True)
    make_audio(folder / "audio")
    for name, (text, _) in RUNS.items():
        (folder / f"{name}.yaml").write_text(text)
        run(program, folder, "run", f"{name}.yaml", "-q", f"--json={name}.json", "--report", f"{name}.html", code=(3,))
    # Runs that end where a file becomes too long, as on a full disk; one of them is an update.
    for name in ("stopped", "extended", "updated"):
        (folder / f"{name}.yaml").write_text(pipeline(f"{name}.npy", "npy_write", ", split_files: false, checkpoint: 1KiB"))
    size = (folder / "array.npy").stat().st_size
    run(program, folder, "run", "stopped.yaml", "-q", code=(1,), most=size // 2)
    for name, most in (("extended", size - 8 * KIB), ("updated", None)):
        run(program, folder, "run", f"{name}.yaml", "-q", "--set", "files.include=*-1.wav")
        run(program, folder, "update", f"{name}.yaml", "-q", code=(3,) if most is None else (1,), most=most)
    # A job of which some parts are made, one failed, and others are not begun.
    (folder / "job.yaml").write_text(pipeline("job.npy", "npy_write", ", split_files: false"))
    run(program, folder, "plan", "job.yaml", "-o", "job", "--part", "40KiB")
    run(program, folder, "work", "job", "-q", code=(0, 1), most=80 * KIB)
    # One that is whole.
    (folder / "merged.yaml").write_text(pipeline("merged.h5"))
    run(program, folder, "plan", "merged.yaml", "-o", "merged", "--part", "40KiB")
    run(program, folder, "work", "merged", "-q")
    run(program, folder, "merge", "merged", "-q", code=(3,))
    (folder / "made.json").write_text(json.dumps({"version": run(program, folder, "--version").strip(), "folder": str(folder)}))


@contextlib.contextmanager
def copy_in_place(made):
    """A copy, at the path where the folder was made."""
    place = pathlib.Path(json.loads((made / "made.json").read_text())["folder"])
    kept = made
    if place == made.absolute():
        kept = made.with_name(made.name + ".kept")
        made.rename(kept)
    try:
        shutil.copytree(kept, place, symlinks=True)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if kept != made:
            kept.rename(made)


def rows_of(program, folder, files, is_same_version):
    """The bytes of files, or, as another version stores options that the earlier one did not have, what they have of recordings."""
    if is_same_version:
        return [(folder / file).read_bytes() for file in files]
    for file in files:
        run(program, folder, "verify", file)
    return [json.loads(run(program, folder, "inspect", file, "--files", "--json"))["files"] for file in files]


def check(program, made):
    """Yields what is not as it was."""
    with copy_in_place(made) as folder:
        is_same_version = json.loads((folder / "made.json").read_text())["version"] == run(program, folder, "--version").strip()
        for name, (_, files) in {**RUNS, "merged": ("", ["merged.h5"])}.items():
            try:
                for file in files:
                    # Rows of another version are not computed again, nor those of one of several outputs.
                    again = ("--recompute", "100%") if is_same_version and name != "sound" else ()
                    run(program, folder, "verify", file, *again)
                    run(program, folder, "inspect", file, "--files", "--json")
                # Nothing has changed, so that nothing is computed but what failed.
                if name not in RUNS:
                    continue
                if files and name not in NOT_UPDATED:
                    before = rows_of(program, folder, files, is_same_version)
                    run(program, folder, "update", f"{name}.yaml", "-q", code=(3,))
                    if before != rows_of(program, folder, files, is_same_version):
                        yield f"{name}: an update without changes gives other bytes"
                run(program, folder, "report", f"{name}.json", f"{name}.json")
            except RuntimeError as error:
                if REFUSED.get(name, "\0") not in str(error):
                    yield f"{name}: {error}"
        for name, verb, whole in (("stopped", "run", "array"), ("extended", "update", "updated")):
            try:
                run(program, folder, verb, f"{name}.yaml", "-q", code=(3,))
                if (folder / f"{name}.npy").read_bytes() != (folder / f"{whole}.npy").read_bytes():
                    yield f"{name}: what was begun does not go on to the same bytes"
            except RuntimeError as error:
                yield f"{name}: {error}"
        try:
            if not is_same_version:
                if "it was made with another version of melflow" not in run(program, folder, "work", "job", "-q", code=(1,)):
                    yield "job: a worker of another version is not told so"
                return
            run(program, folder, "work", "job", "-q")
            run(program, folder, "merge", "job", "-q", code=(3,))
            if (folder / "job.npy").read_bytes() != (folder / "array.npy").read_bytes():
                yield "job: its rows are others"
        except RuntimeError as error:
            yield f"job: {error}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=("make", "check", "both"))
    arguments.add_argument("melflow", type=os.path.abspath)
    arguments.add_argument("folder", type=pathlib.Path, nargs="?")
    a = arguments.parse_args()
    if a.what == "both":
        with tempfile.TemporaryDirectory() as folder:
            make(a.melflow, pathlib.Path(folder, "made"))
            found = list(check(a.melflow, pathlib.Path(folder, "made")))
    elif a.what == "make":
        found = make(a.melflow, a.folder.absolute()) or []
    else:
        found = list(check(a.melflow, a.folder.absolute()))
    print("".join(line + "\n" for line in found), end="")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
