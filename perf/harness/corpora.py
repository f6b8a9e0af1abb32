"""Folders of recordings: made once, used again, and brought into the page cache before a job.

In:   what melflow_make_corpus is to make.
Out:  the folder's path. Folders are named by what is in them, so that no two sizes mix.
"""
import math
import os
import pathlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from measure import Failure

SPARE = 4 << 30  # [bytes] to be left free on the disk, for outputs


def make(setup, name, files, rate, seconds, file_format="wav16", channels=1, split_dirs=0):
    """A synthetic corpus, in setup.dir/corpora."""
    folder = setup.dir / "corpora" / f"{name}_{files}x{seconds:g}s"
    return fill(setup, folder, files, rate, seconds, file_format, channels, split_dirs)


def make_splits(setup, name, splits, labels, rate, seconds):
    """Recordings in folders for splits (name: files) and in these for labels."""
    folder = setup.dir / "corpora" / f"{name}_{sum(splits.values())}x{seconds:g}s"
    for seed, (split, files) in enumerate(splits.items(), 1):
        fill(setup, folder / split, files, rate, seconds, split_dirs=labels, seed=seed)
    return folder


def fill(setup, folder, files, rate, seconds, file_format="wav16", channels=1, split_dirs=0, seed=1):
    if not (folder / ".corpus").exists():
        # Noise compresses badly: FLAC takes nearly as much space as WAV.
        share = 0.2 if file_format == "mp3" else 1.0
        blocks = math.ceil((44 + share * seconds * rate * channels * 2) / 4096)
        need_room(folder, files * blocks * 4096)
    command = [setup.bin / "melflow_make_corpus", "--out", folder, "--files", files, "--rate", rate]
    command += ["--seconds", seconds, "--format", file_format, "--channels", channels]
    command += ["--seed", seed]
    if split_dirs > 1:
        command += ["--split-dirs", split_dirs]
    done = subprocess.run([str(word) for word in command], stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise Failure(f"the corpus in {folder} cannot be made")
    return folder


def need_room(folder, wanted):
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free
    if free < wanted + SPARE:
        raise Failure(
            f"{folder}: takes {wanted / 1e9:.1f} GB and {SPARE / 1e9:.1f} GB beside it, "
            f"there are {free / 1e9:.1f} GB; choose another disk with --dir"
        )


def recordings(folder):
    """All files below, in a stable order; no dot files, which are the generator's."""
    paths = []
    for parent, _, names in os.walk(folder, followlinks=True):
        paths += [os.path.join(parent, name) for name in names if not name.startswith(".")]
    return sorted(paths)


def linked(source, folder, count, folders=1):
    """`count` hard links to the recordings of `source`, over and over: a corpus of any number of
    files that takes no room. Spread over `folders` folders."""
    stamp = folder / ".links"
    if stamp.exists():
        return folder
    if folder.exists():
        shutil.rmtree(folder)  # left by an interrupted run
    originals = recordings(source)
    parts = [folder / f"part_{i:04d}" for i in range(folders)]
    for part in parts:
        part.mkdir(parents=True)
    for i in range(count):
        original = originals[i % len(originals)]
        name = f"clip_{i:07d}{pathlib.Path(original).suffix}"
        os.link(original, parts[i * folders // count] / name)
    stamp.touch()
    return folder


def warm(folders):
    """Reads every byte, so that it lies in the page cache. Returns the bytes read."""

    def read(path):
        total = 0
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(1 << 20):
                total += len(piece)
        return total

    # Of several links to a file, one is enough.
    paths = {os.stat(path).st_ino: path for folder in folders for path in recordings(folder)}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(read, paths.values()))


def available_memory():
    """[bytes] that the system can give, page cache included."""
    with open("/proc/meminfo", encoding="ascii") as info:
        for line in info:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0
