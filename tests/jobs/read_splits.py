"""Reads splits, labels and targets with h5py and numpy. Prints what is wrong, nothing if all is right.

read_splits.py one FILE.h5                    the splits of one file against its index
read_splits.py each ALL.h5 EACH.{h5,npy}      a file for each split against one for all
read_splits.py targets OUT.{h5,npy} LIST.csv  labels, targets and texts against the manifest
"""
import csv
import json
import math
import sys

import h5py
import numpy as np

problems = []


def expect(condition, text):
    if not condition:
        problems.append(text)


def texts(dataset):
    return list(dataset.asstr()[:])


def one(path):
    with h5py.File(path) as f:
        rows, names = f[f.attrs["rows"]], texts(f["splits/name"])
        split, offset, count = (f["files/" + n][:] for n in ("split", "offset", "count"))
        label = f["files/label"][:]
        for number, name in enumerate(names):
            files = np.flatnonzero(split == number)
            where = np.concatenate([np.arange(offset[i], offset[i] + count[i]) for i in files])
            view = f[name][f.attrs["rows"]]
            expect(view.shape == (len(where), *rows.shape[1:]), f"{name}: shape {view.shape}")
            expect(np.array_equal(view[:], rows[:][where.astype(int)]), f"{name}: other rows")
            expect(view.dtype == rows.dtype, f"{name}: type")
            if len(where):
                expect(np.array_equal(view[len(where) - 1], rows[where[-1]]), f"{name}: last row")
            labels = f[name]["label"]
            expect(labels.dtype == np.int32, f"{name}: type of labels")
            expect(np.array_equal(labels[:], np.repeat(label[files], count[files])), f"{name}: labels")


def load(path):
    """Rows, then path, offset, count, label and split of each file, names of labels and of splits."""
    if path.endswith(".npy"):
        index = np.load(path[:-4] + ".index.npy")
        about = json.load(open(path[:-4] + ".index.json", encoding="utf-8"))
        files = [(r["path"].decode(), *(int(r[n]) for n in ("offset", "count", "label", "split", "status")))
                 for r in index]
        return np.load(path), files, about["labels"], about["splits"], about["ok"]
    with h5py.File(path) as f:
        columns = (f["files/" + n][:].tolist() for n in ("offset", "count", "label", "split", "status"))
        files = list(zip(texts(f["files/path"]), *columns))
        return f[f.attrs["rows"]][:], files, texts(f["labels/name"]), texts(f["splits/name"]), f.attrs["ok"]


def each(path, base):
    rows, files, labels, splits, _ = load(path)
    stem, ending = base.rsplit(".", 1)
    for number, name in [*enumerate(splits), (-1, "")]:
        part, part_files, part_labels, part_splits, ok = load(f"{stem}.{name}.{ending}" if name else base)
        wanted = [f for f in files if f[4] == number]
        expect(part_labels == labels and part_splits == splits, f"{name}: numbers of labels or splits")
        expect(ok == sum(f[5] == 0 for f in wanted), f"{name}: {ok} files ok")
        expect([f[0] for f in part_files] == [f[0] for f in wanted], f"{name}: other files")
        expect(len(part) == sum(f[2] for f in wanted), f"{name}: {len(part)} rows")
        for mine, other in zip(part_files, wanted):
            expect(mine[2:] == other[2:], f"{mine[0]}: {mine} and {other}")
            expect(np.array_equal(part[mine[1]:mine[1] + mine[2]], rows[other[1]:other[1] + other[2]]),
                   f"{mine[0]}: other rows")


def targets(path, manifest):
    if path.endswith(".npy"):
        index = np.load(path[:-4] + ".index.npy")
        about = json.load(open(path[:-4] + ".index.json", encoding="utf-8"))
        names, labels = about["targets"], about["labels"]
        paths = [p.decode() for p in index["path"]]
        values, flags = index["targets"], index["labels"]
        columns = about["columns"]
        single = index["label"]
        expect(index.dtype.itemsize % 8 == 0, f"a record has {index.dtype.itemsize} bytes")
    else:
        with h5py.File(path) as f:
            names, labels = texts(f["targets/name"]), texts(f["labels/name"])
            paths, values, flags = texts(f["files/path"]), f["files/targets"][:], f["files/labels"][:]
            single = f["files/label"][:]
            columns = {name: texts(f["columns/" + name]) for name in f["columns"]}
    expect(sorted(columns) == ["speaker", "stem", "text"], f"columns {sorted(columns)}")
    expect(names == ["age"], f"targets {names}")
    expect(labels == ["a", "b", "c", "d"], f"labels {labels}")
    expect(values.dtype == np.float32 and flags.dtype == np.uint8, "types")
    with open(manifest, newline="") as lines:
        for i, row in enumerate(csv.DictReader(lines)):
            expect(paths[i] == row["path"], f"{paths[i]} is not {row['path']}")
            age = float(row["age"]) if row["age"] else math.nan
            expect(np.array_equal(values[i], [np.float32(age)], equal_nan=True), f"{paths[i]}: age {values[i]}")
            said = {"speaker": row["who"], "stem": row["path"].split(".")[0], "text": row["text"]}
            for name, text in said.items():
                expect(columns[name][i] == text, f"{paths[i]}: {name} {columns[name][i]!r}")
            wanted = [int(n in row["label"].split("|")) for n in labels]
            expect(flags[i].tolist() == wanted, f"{paths[i]}: labels {flags[i]}")
            expect(single[i] == (wanted.index(1) if sum(wanted) == 1 else -1), f"{paths[i]}: label {single[i]}")


{"one": one, "each": each, "targets": targets}[sys.argv[1]](*sys.argv[2:])
print("\n".join(problems))
sys.exit(1 if problems else 0)
