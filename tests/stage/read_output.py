"""Reads an output file as docs/output-format.md tells a Python user to, and says what is not as it says.

In:  read_output.py FILE [OTHER]     OTHER: the same features as float32, where FILE has 16 bits
Out: one line for each thing that is wrong; exit status 0 when there is none, 3 without h5py.
"""

import sys

try:
    import h5py
    import numpy as np
except ImportError as e:
    print(f"python3 lacks a package this test needs ({e}): apt-get install python3-h5py python3-numpy")
    sys.exit(3)

import bfloat16

wrong = []


def check(is_true, text):
    if not is_true:
        wrong.append(text)


def main():
    f = h5py.File(sys.argv[1])
    rows = f[f.attrs["rows"]]
    files = f["files"]
    count = files["count"][:]
    offset = files["offset"][:]
    check(rows.dtype in (np.dtype("<f4"), np.dtype("<f2")), f"rows are {rows.dtype}")
    is_bfloat16 = rows.dtype == np.float32 and rows.id.get_type().get_size() == 2
    check(rows.chunks is None and rows.compression is None, "rows are not contiguous")
    check(rows.shape[0] == count.sum(), f"{rows.shape[0]} rows, files say {count.sum()}")
    check((offset == np.cumsum(count) - count).all(), "offsets are not the sums of the counts")
    last = rows.ndim - 1
    check([d.label for d in rows.dims] == ["row", "frame", "band"][: last + 1] if last == 2 else ["row", "band"],
          "labels of the axes")
    check(rows.dims[last][0] == f["band_hz"], "band_hz is not the scale of the last axis")
    check(f["band_hz"].shape == (rows.shape[-1],), "one frequency for each band")
    check((np.diff(f["band_hz"][:]) > 0).all(), "band_hz does not rise")
    check(isinstance(rows.attrs["unit"], str), "unit")

    paths = files["path"].asstr()[:]
    for name in ("offset", "count", "label", "split", "sample_rate", "duration", "status"):
        check(files[name].shape == paths.shape, f"files/{name} has another length than files/path")
    status = h5py.check_enum_dtype(files["status"].dtype)
    check(status == {"ok": 0, "skipped": 1, "failed": 2, "not_run": 3}, f"status is {status}")
    names = f["labels/name"].asstr()[:]
    check(list(names) == sorted(names, key=lambda n: n.encode()), "labels are not sorted")
    for i, label in enumerate(files["label"][:]):
        check(-1 <= label < len(names), f"label {label} of {paths[i]}")
    counts = {name: int((files["status"][:] == value).sum()) for name, value in status.items()}
    for name, number in counts.items():
        check(f.attrs[name] == number, f"attribute {name} is {f.attrs[name]}, files say {number}")
    check(f.attrs["found"] == len(paths), "found")

    remarks = f["remarks"]
    at = remarks["file"][:]
    check((np.diff(at) > 0).all(), "warnings are not in manifest order")
    check(list(remarks["path"].asstr()[:]) == [paths[i] for i in at], "paths of the warnings")
    check((remarks["status"][:] == files["status"][:][at]).all(), "status of the warnings")
    silent = set(np.flatnonzero(np.isin(files["status"][:], (1, 2)))) - set(at)
    check(not silent, f"no warning about {[paths[i] for i in silent]}")
    check(all(remarks["stage"].asstr()[:]) and all(remarks["reason"].asstr()[:]), "a warning without reason")

    # Maps the rows into memory.
    if rows.shape[0] > 0:
        stored = np.dtype("<u2") if is_bfloat16 else rows.dtype
        mapped = np.memmap(sys.argv[1], stored, "r", rows.id.get_offset(), rows.shape)
        mapped = bfloat16.floats(mapped) if is_bfloat16 else mapped
        check(mapped.tobytes() == rows[:].tobytes(), "the rows cannot be mapped at their offset")
    if len(sys.argv) > 2:
        other = h5py.File(sys.argv[2])
        exact = other[other.attrs["rows"]][:]
        check((is_bfloat16 or rows.dtype == np.float16) and exact.dtype == np.float32, "types")
        if is_bfloat16:
            expected = bfloat16.floats(bfloat16.rounded(exact))
            check(expected.tobytes() == rows[:].tobytes(), "bfloat16 is not the nearest")
            check((np.abs(rows[:] - exact) <= 2.0**-8 * np.abs(exact)).all(), "bfloat16 is off by more than 2^-8")
            return
        with np.errstate(over="ignore"):
            check(exact.astype(np.float16).tobytes() == rows[:].tobytes(), "float16 is not numpy's rounding")


main()
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
