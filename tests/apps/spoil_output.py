"""Copies of an output in which numbers cannot be true, or with what others may add.

In:  spoil_output.py FILE FOLDER
Out: FOLDER/KIND/ with a copy for each kind; exit status 0, 3 without h5py.
"""

import json
import os
import shutil
import sys

try:
    import h5py
    import numpy as np
except ImportError as e:
    print(f"python3 lacks a package this test needs ({e}): apt-get install python3-h5py python3-numpy")
    sys.exit(3)


def replace(f, name, data=None, **made):
    """The dataset again, with its attributes."""
    old = dict(f[name].attrs) if name in f else {}
    del f[name]
    new = f.create_dataset(name, data=data, **made)
    for key in ("unit",):
        if key in old:
            new.attrs[key] = old[key]


def set_value(name, index, value):
    def spoil(f):
        f[name][index] = value
    return spoil


def virtual(f):
    layout = h5py.VirtualLayout(shape=f["mel"].shape, dtype="f4")
    layout[:] = h5py.VirtualSource(".", "mel", shape=f["mel"].shape)
    unit = f["mel"].attrs["unit"]
    del f["mel"]
    f.create_virtual_dataset("mel", layout)
    f["mel"].attrs["unit"] = unit


def external(f):
    replace(f, "mel", shape=f["mel"].shape, dtype="f4", external=[("/dev/zero", 0, h5py.h5f.UNLIMITED)])


def linked(f):
    del f["files"]
    pipe = f.filename + ".pipe"
    os.mkfifo(pipe)
    f["files"] = h5py.ExternalLink(pipe, "/files")


def rows(*shape):
    chunks = None if 0 in shape else (1,) * len(shape)
    return lambda f: replace(f, "mel", shape=shape, dtype="f4", chunks=chunks)


H5 = {
    "attribute of 4096 integers": lambda f: f.attrs.create("x", np.arange(4096)),
    "attribute of 2048 texts": lambda f: f.attrs.create("x", ["a" * 7] * 2048, dtype=h5py.string_dtype()),
    "attribute of no value": lambda f: f.attrs.create("x", h5py.Empty("i8")),
    "format of 4096 integers": lambda f: f.attrs.create("format", np.arange(4096)),
    "no name for the rows": lambda f: f.attrs.__delitem__("rows"),
    "a number as name of the rows": lambda f: f.attrs.create("rows", 7),
    "rows in a group": lambda f: f.attrs.create("rows", "files/offset"),
    "rows that are not there": lambda f: f.attrs.create("rows", "mfcc"),
    "a fingerprint that is gone": lambda f: f.attrs.__delitem__("feature_fingerprint"),
    "a text as number of files": lambda f: f.attrs.create("found", "3"),
    "format 0": lambda f: f.attrs.create("format", 0),
    "format 3": lambda f: f.attrs.create("format", 3),
    "offset that wraps": set_value("files/offset", 0, 2**63 - 1),
    "offset below 0": set_value("files/offset", 1, -5),
    "count below 0": set_value("files/count", 0, -1),
    "count beyond the rows": set_value("files/count", 1, 2**62),
    "status 77": lambda f: f["files/status"].id.write(h5py.h5s.ALL, h5py.h5s.ALL, np.full(3, 77, "i1"),
                                                      mtype=h5py.h5t.NATIVE_INT8),
    "label 99": set_value("files/label", 0, 99),
    "duration that is no number": set_value("files/duration", 0, np.nan),
    "zero bands": rows(353, 0),
    "one axis": rows(353),
    "rows that are nowhere": rows(2**40, 80),
    "a product that wraps": rows(2**62, 2**2),
    "paths that are nowhere": lambda f: replace(f, "files/path", shape=(2**40,), dtype="S8", chunks=(1,)),
    "a column that is nowhere": lambda f: replace(f, "files/offset", shape=(2**50,), dtype="i8"),
    "two axes that wrap": lambda f: replace(f, "files/count", shape=(2**32, 2**32), dtype="i8", chunks=(1, 1)),
    "frequencies of fewer bands": lambda f: replace(f, "band_hz", np.ones(3)),
    "a column of texts": lambda f: replace(f, "files/count", ["a", "b", "c"]),
    "fewer standard deviations": lambda f: replace(f, "statistics/std", np.ones(3)),
    "fewer means of groups": lambda f: replace(f, "statistics/by_label/mean", np.ones((1, 80))),
    "groups in no order": lambda f: replace(f, "statistics/by_label/name", ["fr", "en"]),
    "groups that are gone": lambda f: f.__delitem__("statistics/by_label"),
    "frames of 4096 integers": lambda f: f["statistics"].attrs.create("frames", np.arange(4096)),
    "rows in another file": external,
    "rows that show themselves": virtual,
    "files behind a link": linked,
    "settings that are nested deeply": lambda f: f.attrs.create("config", "[" * 60000),
}


def heap_object(change):
    """The first text of the first collection of texts; HDF5 itself would not write such a size."""
    def spoil(path):
        with open(path, "r+b") as f:
            at = f.read().index(b"GCOL") + 16
            f.seek(at + 8)
            size = int.from_bytes(f.read(8), "little")
            f.seek(at + 8)
            f.write(change(size).to_bytes(8, "little"))
    return spoil


def heap_size(size):
    def spoil(path):
        with open(path, "r+b") as f:
            f.seek(f.read().index(b"GCOL") + 8)
            f.write(size.to_bytes(8, "little"))
    return spoil


H5_BYTES = {
    "a text beyond its heap": heap_object(lambda size: 2**40),
    "a text over the next ones": heap_object(lambda size: size + 40),
    "a text without end": heap_object(lambda size: 2**64 - 8),
    "a text too short for what follows": heap_object(lambda size: 0),
    "a heap of no bytes": heap_size(8),
    "a heap beyond the file": heap_size(2**50),
}


def document(change):
    def spoil(path):
        path = path.replace(".npy", ".index.json")
        with open(path) as f:
            about = json.load(f)
        change(about)
        with open(path, "w") as f:
            json.dump(about, f)
    return spoil


def pipe(path):
    path = path.replace(".npy", ".index.json")
    os.remove(path)
    os.mkfifo(path)


def deep(path):
    with open(path.replace(".npy", ".index.json"), "w") as f:
        f.write('{"a": ' + "[" * 200000 + "]" * 200000 + "}")


def first_record(name, value):
    def spoil(path):
        path = path.replace(".npy", ".index.npy")
        index = np.load(path, mmap_mode="r+")
        index[name][0] = value
        index.flush()
    return spoil


NPY = {
    "shape that wraps": document(lambda d: d.update(shape=[2**63, 2**2])),
    "shape below 0": document(lambda d: d.update(shape=[-1, 80])),
    "found below 0": document(lambda d: d.update(found=-1)),
    "found that wraps": document(lambda d: d.update(found=2**61)),
    "frequencies of fewer bands": document(lambda d: d.update(band_hz=[1.0])),
    "no name for the rows": document(lambda d: d.pop("rows")),
    "a number as name of the rows": document(lambda d: d.update(rows=7)),
    "a fingerprint that is gone": document(lambda d: d.pop("feature_fingerprint")),
    "a text as number of files": document(lambda d: d.update(found="3")),
    "format 3": document(lambda d: d.update(format=3)),
    "format of text": document(lambda d: d.update(format="2")),
    "fewer means": document(lambda d: d["statistics"].update(mean=[1.0])),
    "fewer means of groups": document(lambda d: d["statistics_by"]["mean"].pop()),
    "groups without frames": document(lambda d: d["statistics_by"].pop("frames")),
    "a pipe as document": pipe,
    "a document that is nested deeply": deep,
    "offset that wraps": first_record("offset", 2**63 - 1),
    "count below 0": first_record("count", -1),
    "status 77": first_record("status", 77),
}


def main():
    path, folder = sys.argv[1:]
    is_npy = path.endswith(".npy")
    for kind, spoil in (NPY if is_npy else {**H5, **H5_BYTES}).items():
        os.makedirs(os.path.join(folder, kind))
        for name in ("out.npy", "out.index.npy", "out.index.json") if is_npy else ("out.h5",):
            shutil.copy(os.path.join(os.path.dirname(path), name), os.path.join(folder, kind))
        copy = os.path.join(folder, kind, os.path.basename(path))
        if is_npy or kind in H5_BYTES:
            spoil(copy)
            continue
        with h5py.File(copy, "r+") as f:
            spoil(f)


if __name__ == "__main__":
    main()
