"""Reads a .npy output and its index as docs/output-format.md tells a Python user to, and says what is not as it says.

In:  read_npy.py FILE.npy [--h5 FILE.h5] [--float32 OTHER.npy]
       --h5       what hdf5_write made in the same run: the same rows, byte for byte, and the same of everything else
       --float32  the same features as float32, where FILE has 16 bits
     A FILE.npy.part is read with the .part files beside it.
Out: one line for each thing that is wrong; exit status 0 when there is none, 3 where a package is missing.
"""

import argparse
import json
import os
import re
import sys

try:
    import numpy as np
    import xxhash
except ImportError as e:
    print(f"python3 lacks a package this test needs ({e}): apt-get install python3-numpy python3-xxhash")
    sys.exit(3)

import bfloat16

DOCUMENTATION = os.path.join(os.path.dirname(__file__), "../../docs/output-format.md")
wrong = []


def documented_fields():
    """Name and type of every number that a record has in every output."""
    with open(DOCUMENTATION, encoding="utf-8") as f:
        rows = re.findall(r"^\| `/files/(\w+)` \| (\w+) \| (.*) \|$", f.read(), re.MULTILINE)
    return [(name, np.dtype(kind).str) for name, kind, what in rows if kind != "string" and "; only with " not in what]


FIELDS = documented_fields()
assert FIELDS[0] == ("offset", "<i8") and len(FIELDS) >= 9


def check(is_true, text):
    if not is_true:
        wrong.append(text)


def refuse(constant):
    wrong.append(f"{constant} is no JSON")


def read_set(path):
    part = ".part" if path.endswith(".part") else ""
    stem = path[: -len(".npy" + part)]
    rows = np.load(path, mmap_mode="r")
    index = np.load(stem + ".index.npy" + part, mmap_mode="r")
    with open(stem + ".index.json" + part, encoding="utf-8") as f:
        return rows, index, json.load(f, parse_constant=refuse)


def check_rows(path, rows, about):
    check(isinstance(rows, np.memmap), "the rows are not mapped")
    types = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "bfloat16": np.dtype("V2")}
    check(rows.dtype == types[about["dtype"]], f"rows are {rows.dtype}, the index says {about['dtype']}")
    check(list(rows.shape) == about["shape"], f"rows are {rows.shape}, the index says {about['shape']}")
    check(rows.flags.c_contiguous and not rows.flags.writeable, "rows are not in C order")
    check(rows.offset % 64 == 0, f"rows begin at {rows.offset}")
    check(os.path.getsize(path) == rows.offset + rows.nbytes, "there is something behind the rows")
    check(np.load(path).tobytes() == rows.tobytes(), "the rows read and mapped differ")
    with open(path, "rb") as f:
        version = np.lib.format.read_magic(f)
        check(version == (1, 0), f"format version {version}")
        np.lib.format.read_array_header_1_0(f)
        check(f.tell() == rows.offset, "the header does not end where the rows begin")


def check_index(rows, index, about):
    check([d[:2] for d in index.dtype.descr[:-1]] == FIELDS, f"fields of the index: {index.dtype.descr}")
    check(index.dtype.names[-1] == "path" and index.dtype["path"].kind == "S", "the field path")
    check(index.dtype.itemsize % 8 == 0, f"a record has {index.dtype.itemsize} bytes")
    check(about["axes"] in (["row", about["axes"][-1]], ["row", "frame", about["axes"][-1]]), "axes")
    check(len(about["axes"]) == rows.ndim, f"axes {about['axes']} of {rows.shape}")
    check(rows.shape[0] == index["count"].sum(), f"{rows.shape[0]} rows, files say {index['count'].sum()}")
    check((index["offset"] == np.cumsum(index["count"]) - index["count"]).all(), "offsets are no sums of counts")
    check(about["status"] == ["ok", "skipped", "failed", "not_run"], f"status is {about['status']}")
    for value, name in enumerate(about["status"]):
        number = int((index["status"] == value).sum())
        check(about[name] == number, f"{name} is {about[name]}, files say {number}")
    check(about["found"] == len(index), "found")
    check(((index["label"] >= -1) & (index["label"] < len(about["labels"]))).all(), "label of a file")
    check(((index["split"] >= -1) & (index["split"] < len(about["splits"]))).all(), "split of a file")
    for record in index:
        of_file = rows[record["offset"]:record["offset"] + record["count"]]
        mine = xxhash.xxh3_64_intdigest(of_file.tobytes()) if record["count"] > 0 else 0
        check(mine == record["rows_hash"], f"hash of the rows of {record['path']}")
        path = os.path.join(os.fsencode(about["root"]), record["path"])
        is_file = os.path.isfile(path)
        stamp = (os.stat(path).st_size, os.stat(path).st_mtime_ns) if is_file else (-1, -1)
        mine = (record["size"], record["modified"])
        check(mine == stamp or (mine == (-1, -1) and record["status"] == 3), f"{path}: {mine} and not {stamp}")
    check(about["labels"] == sorted(about["labels"], key=os.fsencode), "labels are not sorted")
    if "band_hz" in about:
        check(len(about["band_hz"]) == rows.shape[-1], "one frequency for each column")
        check(None not in about["band_hz"] or about["band_hz"].index(None) == about["energy_column"], "energy_column")
    at = [r["file"] for r in about["remarks"]]
    check(at == sorted(set(at)), "warnings are not in manifest order")
    for r in about["remarks"]:
        check(os.fsencode(r["path"]) == index["path"][r["file"]], f"path of the warning {r}")
        check(about["status"].index(r["status"]) == index["status"][r["file"]], f"status of the warning {r}")
        check(r["stage"] and r["reason"], f"a warning without reason: {r}")
    silent = set(np.flatnonzero(np.isin(index["status"], (1, 2)))) - set(at)
    check(not silent, f"no warning about {[index['path'][i] for i in silent]}")
    check(len(about["feature_fingerprint"]) == 32 and about["feature_settings"][-1]["dtype"] == about["dtype"], "features")
    check("graph" in about["config"], "config")


def raw(dataset):
    """Strings as the bytes that they are."""
    return [s if isinstance(s, bytes) else os.fsencode(s) for s in dataset[:]]


def compare_h5(path, rows, index, about):
    try:
        import h5py
    except ImportError as e:
        print(f"python3 lacks a package this test needs ({e}): apt-get install python3-h5py")
        sys.exit(3)
    f = h5py.File(path, "r")
    there = f[f.attrs["rows"]]
    if about["dtype"] == "bfloat16":
        check(there.id.get_type().get_size() == 2, "the rows in HDF5 have no 16 bits")
        rows = bfloat16.floats(rows)
    check(there.shape == rows.shape and there.dtype == rows.dtype, f"rows in HDF5 are {there.dtype} {there.shape}")
    check(there[...].tobytes() == rows.tobytes(), "rows differ from those in HDF5")
    for name, _ in FIELDS:
        check((f["files"][name][:] == index[name]).all(), f"{name} differs from /files/{name}")
    check(raw(f["files/path"]) == list(index["path"]), "path differs from /files/path")
    for ours, theirs in (("labels", "labels/name"), ("splits", "splits/name")):
        check([os.fsencode(s) for s in about[ours]] == raw(f[theirs]), f"{ours} differs from /{theirs}")
    remarks = f["remarks"]
    check([r["file"] for r in about["remarks"]] == list(remarks["file"][:]), "warnings differ in files")
    for name in ("path", "stage", "reason"):
        check([os.fsencode(r[name]) for r in about["remarks"]] == raw(remarks[name]), f"warnings differ in {name}")
    check([d.label for d in there.dims] == about["axes"], f"axes are {about['axes']}")
    check(there.attrs["unit"] == about["unit"], "unit")
    check(there.attrs.get("energy_column") == about.get("energy_column"), "energy_column")
    check(("band_hz" in f) == ("band_hz" in about), "band_hz")
    if "band_hz" in f:
        ours = np.array([np.nan if hz is None else hz for hz in about["band_hz"]])
        check(ours.tobytes() == f["band_hz"][:].tobytes(), f"band_hz differs: {ours}")
    root = f["files"].attrs["root"]
    check(os.fsencode(about["root"]) == (root if isinstance(root, bytes) else os.fsencode(root)), "root")
    for name, value in f.attrs.items():
        if name == "index_hash":  # also covers the configuration, whose paths differ
            check(len(about[name]) == len(value) == 16, name)
        elif name in ("config", "feature_settings"):
            text = value if isinstance(value, bytes) else os.fsencode(value)
            check(json.loads(text.decode(errors="surrogateescape")) == about[name], f"{name} differs")
        else:
            check(about.get(name) == value, f"{name} is {about.get(name)}, in HDF5 {value}")
    ours = set(about) - set(f.attrs)
    check(ours - {"energy_column", "band_hz", "warnings"} == {"shape", "dtype", "axes", "unit", "root", "labels", "splits", "status",
                                                 "remarks"}, f"entries: {sorted(ours)}")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("file")
    arguments.add_argument("--h5")
    arguments.add_argument("--float32")
    a = arguments.parse_args()
    rows, index, about = read_set(a.file)
    check_rows(a.file, rows, about)
    check_index(rows, index, about)
    check(about["complete"] == (not a.file.endswith(".part")), f"complete is {about['complete']}")
    if a.h5:
        compare_h5(a.h5, rows, index, about)
    if a.float32:
        exact = np.load(a.float32)
        check(about["dtype"] in ("float16", "bfloat16") and exact.dtype == np.float32, "types")
        if about["dtype"] == "bfloat16":
            check(bfloat16.rounded(exact).tobytes() == rows.tobytes(), "bfloat16 is not the nearest")
            off = np.abs(bfloat16.floats(rows) - exact) > 2.0**-8 * np.abs(exact)
            check(not off.any(), "bfloat16 is off by more than 2^-8")
        else:
            check_float16(rows, exact)
    print("\n".join(w.encode(errors="backslashreplace").decode() for w in wrong))
    sys.exit(1 if wrong else 0)


def check_float16(rows, exact):
    with np.errstate(over="ignore"):
        check(exact.astype(np.float16).tobytes() == rows.tobytes(), "float16 is not numpy's rounding")


main()
