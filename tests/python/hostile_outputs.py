"""Outputs of melflow, damaged in every way: what the module makes of each has to be what the program makes of it.

Outputs of several layouts are made and changed: bytes anywhere, any number of the index, or one of CASES, which are whole files
that say what is not so. `melflow verify` says of each whether it is right. The module opens it, reads all rows by recording and in
batches and compares them with the hashes in the index.

In:  tests/python/hostile_outputs.py MELFLOW [--count N] [--seed N] [--keep FOLDER]
     Run by a Python with melflow, h5py and xxhash.
Out: a line for each kind of damage: files, how many of them are right, and refused by both; each file of which the two say
     different things, or that crashed or hung one of them. Exit status 0 where there is none. The same seed gives the same files.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import select
import subprocess
import sys
import tempfile

import h5py
import numpy as np

import corpus

SECONDS = 60  # a file that takes longer counts as a hang
SINKS = {
    "whole": ("hdf5_write", "statistics: all", corpus.MEL),
    "packed": ("hdf5_write", "compression: deflate, chunk: 8KiB", corpus.MEL),
    "chunked": ("hdf5_write", "layout: chunked, chunk: 4KiB, dtype: float16", corpus.MEL),
    "samples": ("hdf5_write", "dtype: int16, compression: deflate, access: shuffled", corpus.SAMPLES),
    "npy": ("npy_write", "statistics: all, split_files: false", corpus.MEL),
}


def make_originals(program, folder):
    root = os.path.join(folder, "audio")
    corpus.make_corpus(root, 15)
    os.environ["MELFLOW_PROGRAM"] = program
    out = {}
    for name, (stage, options, chain) in SINKS.items():
        ending = ".npy" if stage == "npy_write" else ".h5"
        sink = f"stage: {stage}, path: {os.path.join(folder, name + ending)}, {options}"
        splits = ", splits: ratio, split_ratios: {train: 70, val: 30}, columns: {animal: parent_dir}"
        corpus.write_rows(folder, name, corpus.pipeline(root, sink, files=splits, chain=chain))
        out[name] = pathlib.Path(folder, name + ending)
    return out


def replace(file, name, make):
    """What is there by that name, recreated by make(values)."""
    values, attributes = file[name][:], dict(file[name].attrs)
    del file[name]
    for key, value in attributes.items() if (made := make(values)) is not None else ():
        if key not in ("DIMENSION_LIST", "CLASS", "NAME", "REFERENCE_LIST"):
            made.attrs[key] = value


def compact(file, values):
    create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((10, values.shape[1]))
    rows = h5py.h5d.create(file.id, b"mel", h5py.h5t.py_create(values.dtype), space, create)
    rows.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values[:10]))
    return file["mel"]


def virtual(file, values):
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[:] = h5py.VirtualSource("other.h5", "mel", values.shape)
    return file.create_virtual_dataset("mel", layout)


def set_value(name, at, value):
    def change(file):
        file[name][at] = value
    return change


def set_attribute(name, value):
    def change(file):
        file.attrs[name] = value
    return change


def rows_as(make):
    return lambda file: replace(file, "mel", lambda values: make(file, values))


def link_to_other(file):
    del file["files/path"]
    file["files/path"] = h5py.ExternalLink("other.h5", "files/path")


def a_text_that_is_not_there(file):
    """A path is its length (4 bytes), the place of a collection of texts (8), and the number in it (4)."""
    return file["files/path"].id.get_offset() + 12


def overlap(file):
    file["files/offset"][2] = file["files/offset"][1]


# Each file claims something false; "other.h5" beside it is a good one. All are refused.
CASES = {
    "virtual": rows_as(virtual),
    "external storage": rows_as(lambda file, v: file.create_dataset(
        "mel", v.shape, v.dtype, external=[("other.h5", 0, v.nbytes)])),
    "compact": rows_as(compact),
    "not written": rows_as(lambda file, v: file.create_dataset("mel", v.shape, v.dtype)),
    "chunks not written": rows_as(lambda file, v: file.create_dataset("mel", v.shape, v.dtype, chunks=(64, v.shape[1]))),
    "chunks of half a row": rows_as(lambda file, v: file.create_dataset("mel", data=v, chunks=(64, v.shape[1] // 2))),
    "many rows in one chunk": rows_as(lambda file, v: file.create_dataset(
        "mel", (2**62, v.shape[1]), v.dtype, chunks=(1, v.shape[1]), maxshape=(None, v.shape[1]))),
    "checksums": rows_as(lambda file, v: file.create_dataset("mel", data=v, chunks=(64, v.shape[1]), fletcher32=True)),
    "other type": rows_as(lambda file, v: file.create_dataset("mel", data=v.astype(np.float64))),
    "big-endian": rows_as(lambda file, v: file.create_dataset("mel", data=v.astype(">f4"))),
    "rows that are texts": rows_as(lambda file, v: file.create_dataset("mel", data=np.full(v.shape, b"x"))),
    "a row more": rows_as(lambda file, v: file.create_dataset("mel", data=np.r_[v, v[:1]])),
    "other rows": rows_as(lambda file, v: file.create_dataset("mel", data=v[::-1])),
    "a link to another file": link_to_other,
    "not complete": set_attribute("complete", np.int8(0)),
    "format 3": set_attribute("format", np.int32(3)),
    "rows elsewhere": set_attribute("rows", "files/offset"),
    "rows nowhere": set_attribute("rows", "nothing"),
    "overlapping": overlap,
    "offset below 0": set_value("files/offset", 0, -1),
    "count of 2^62": set_value("files/count", 3, 2**62),
    "label out of range": set_value("files/label", 0, 1000),
    "split out of range": set_value("files/split", 0, 100),
    "status out of range": set_value("files/status", 0, 9),
    "another path": set_value("files/path", 0, "/etc/passwd"),
    "another label": set_value("files/label", 0, 2),
    "a text that is not there": a_text_that_is_not_there,
    "other statistics": set_value("statistics/mean", 0, 1e9),
    "no paths": lambda file: file.__delitem__("files/path"),
    "a group for a dataset": lambda file: (file.__delitem__("files/offset"), file.create_group("files/offset")),
    "fewer counts": lambda file: replace(file, "files/count", lambda v: file.create_dataset("files/count", data=v[:-1])),
}


def case(file, name):
    """Changes it; with what gives the place of a byte, by setting the four bytes there."""
    with h5py.File(file, "r+") as opened:
        place = CASES[name](opened)
    if isinstance(place, int):
        with open(file, "r+b") as opened:
            opened.seek(place)
            opened.write(b"\x7f" * 4)


def any_bytes(file, rng):
    beside = [file] if file.suffix == ".h5" else sorted(file.parent.glob(file.stem + ".*"))
    file = rng.choice(beside)
    data = bytearray(file.read_bytes())
    how = rng.randrange(5)
    at = rng.randrange(rng.choice((len(data), min(len(data), 4096))))
    if how == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif how == 1:
        data[at:at + 8] = rng.choice((b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7, rng.randbytes(8)))[:len(data) - at]
    elif how == 2:
        del data[at:]
    elif how == 3:
        del data[at:at + rng.choice((1, 8, 512))]
    else:
        data[at:at] = rng.randbytes(rng.choice((1, 8, 512)))
    file.write_bytes(data)


def any_number(file, rng):
    if file.suffix != ".h5":
        return any_bytes(file, rng)
    with h5py.File(file, "r+") as opened:
        names = [f"files/{n}" for n in opened["files"]] + ["statistics/mean", "statistics/std", "band_hz", "remarks/file"]
        numbers = [n for n in names if n in opened and opened[n].dtype.kind in "iuf" and opened[n].size]
        values = opened[rng.choice(numbers)]
        at = tuple(rng.randrange(n) for n in values.shape)
        if values.dtype.kind == "f":
            values[at] = rng.choice((np.nan, np.inf, -np.inf, -1.0, 1e300 if values.dtype == "f8" else 1e38))
        else:
            limits = np.iinfo(values.dtype)
            values[at] = rng.choice((limits.min, limits.max, limits.max // 2, 0, rng.randrange(int(limits.max))))


def damaged(originals, folder, count, seed):
    """(kind, file) of each, made one after the other; the cases first."""
    rng = random.Random(seed)
    for kind in CASES:
        yield kind, originals["whole"], lambda file, kind=kind: case(file, kind)
    names = list(originals)
    for i in range(count):
        change = (any_bytes, any_number)[i % 2]
        yield change.__name__, originals[names[i // 2 % len(names)]], lambda file, change=change: change(file, rng)


def copy_of(original, folder, name):
    """Of all files of an output."""
    for part in original.parent.glob(original.stem + ".*") if original.suffix == ".npy" else [original]:
        if part.suffix != ".yaml":
            pathlib.Path(folder, name + part.name[len(original.stem):]).write_bytes(part.read_bytes())
    return pathlib.Path(folder, name + original.suffix)


def read(path):
    """"" where the rows are what the index says, else what is wrong."""
    import melflow
    import xxhash
    try:
        rows = melflow.open(path)
        for i in np.flatnonzero((rows.count > 0) & (rows._hashes != 0)):
            if xxhash.xxh3_64_intdigest(rows.recording(i).tobytes()) != rows._hashes[i]:
                return f"the rows of recording {i} are others"
        for _ in rows.batches(16, workers=1):
            pass
    except melflow.RunError as error:
        return str(error)
    return ""


class Module:
    """Reads files in a process of its own, as it may crash."""

    def __init__(self):
        self._child = None

    def read(self, path):
        if self._child is None:
            self._child = subprocess.Popen([sys.executable, "-W", "ignore", __file__, "--read"], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._child.stdin.write(f"{path}\n")
        self._child.stdin.flush()
        if not select.select([self._child.stdout], [], [], SECONDS)[0]:
            self.close()
            return "HANGS"
        line = self._child.stdout.readline()
        if not line:
            return "CRASHES: " + self.end()
        return json.loads(line)

    def end(self):
        """As a program ends that has read these files: "" where it is as any other."""
        if self._child is None:
            return ""
        try:
            _, said = self._child.communicate(timeout=SECONDS)
            return said or ("" if self._child.returncode == 0 else f"CRASHES with {self._child.returncode}")
        except subprocess.TimeoutExpired:
            return "HANGS"
        finally:
            self.close()

    def close(self):
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None


def verify(program, path):
    try:
        ended = subprocess.run([program, "verify", path], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "HANGS"
    if ended.returncode < 0 or ended.returncode > 100:
        return f"CRASHES with {ended.returncode}"
    return "" if ended.returncode == 0 else (ended.stderr + ended.stdout).strip()


def differences(program, folder, count, seed, keep=None):
    """Files and verdicts by kind, and a text of each file of which the two say different things."""
    originals = make_originals(program, folder)
    pathlib.Path(folder, "other.h5").write_bytes(originals["packed"].read_bytes())
    table, found, module = collections.defaultdict(collections.Counter), [], Module()
    for number, (kind, original, change) in enumerate(damaged(originals, folder, count, seed)):
        path = copy_of(original, folder, "damaged")
        change(path)
        by_program, by_module = verify(program, path), module.read(path)
        table[kind]["files"] += 1
        table[kind]["refused" if by_program else "right"] += 1
        if bool(by_program) != bool(by_module) or "HANGS" in (by_program, by_module) or \
           "CRASHES" in by_program + by_module or (kind in CASES and not by_module):
            found.append(f"{number} ({kind} of {original.name}): program: {by_program!r}, module: {by_module!r}")
            if keep:
                keep.mkdir(exist_ok=True)
                copy_of(path, keep, str(number))
    if at_end := module.end():
        found.append(f"the process that has read them at its end: {at_end}")
    return table, found


def main():
    if sys.argv[1:] == ["--read"]:
        for line in sys.stdin:
            print(json.dumps(read(line.rstrip("\n"))), flush=True)
        return
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("melflow")
    arguments.add_argument("--count", type=int, default=2000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--keep", type=pathlib.Path, help="a folder for the files of which the two say different things")
    a = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, found = differences(os.path.abspath(a.melflow), folder, a.count, a.seed, a.keep)
    print("| damage | files | right | refused |\n|---|---|---|---|")
    for kind, row in table.items():
        print(f"| {kind} | {row['files']} | {row['right']} | {row['refused']} |")
    print(*found, sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
