"""Holds the statistics of an output against exact sums of its rows. Prints what is wrong, nothing if all is right.

read_statistics.py OUT OF           mean and standard deviation of the split OF, or of "all"; of several splits "A, B"
read_statistics.py OUT OF RAW TYPE  OUT, of that type, is RAW, normalised by them
"""
import json
import math
import sys

import h5py
import numpy as np

problems = []


def expect(condition, text):
    if not condition:
        problems.append(text)


def load(path):
    """Rows, which of them are in each split, and the statistics."""
    if path.endswith(".npy"):
        about = json.load(open(path[:-4] + ".index.json", encoding="utf-8"))
        index = np.load(path[:-4] + ".index.npy")
        s = about["statistics"]
        rows, names, columns = np.load(path), about["splits"], index
        statistics = (np.array(s["mean"]), np.array(s["std"]), s["of"], s["frames"], s["applied"])
    else:
        with h5py.File(path) as f:
            rows, names = f[f.attrs["rows"]][:], list(f["splits/name"].asstr()[:])
            columns = {n: f["files/" + n][:] for n in ("split", "offset", "count")}
            s = f["statistics"]
            statistics = (s["mean"][:], s["std"][:], s.attrs["of"], s.attrs["frames"], bool(s.attrs["applied"]))
    split = np.full(len(rows), -1)
    for number, offset, count in zip(columns["split"], columns["offset"], columns["count"]):
        split[offset:offset + count] = number
    return rows, split, names, statistics


path, wanted = sys.argv[1:3]
rows, split, names, (mean, std, of, frames, applied) = load(path)
expect(of == wanted, f"of {of}")
expect(applied == (len(sys.argv) > 3), f"applied {applied}")
if len(sys.argv) > 3:
    raw, split, names, _ = load(sys.argv[3])
    # Significant bits; h5py reads bfloat16 as float32.
    bits = {"float32": 24, "float16": 11, "bfloat16": 8}[sys.argv[4]]
    expected = (raw.astype(np.float64) - mean) / std
    worst = np.abs(rows - expected).max()
    # Rows of 16 bits were also rounded before they were normalised.
    expect(worst < {24: 1e-4, 11: 0.05, 8: 0.4}[bits], f"rows are off by {worst}")
else:
    raw = rows
picked = raw if of == "all" else raw[np.isin(split, [names.index(name) for name in of.split(", ")])]
picked = picked.reshape(-1, raw.shape[-1]).astype(np.float64)
expect(frames == len(picked), f"{frames} frames, not {len(picked)}")
for c in range(picked.shape[-1]):
    m = math.fsum(picked[:, c]) / len(picked)
    s = math.sqrt(math.fsum((picked[:, c] - m) ** 2) / len(picked))
    expect(abs(mean[c] - m) <= 1e-14 * abs(m), f"mean of column {c} is {mean[c]!r}, not {m!r}")
    expect(abs(std[c] - s) <= 1e-14 * s, f"std of column {c} is {std[c]!r}, not {s!r}")
expect(std.min() > 0, "columns that do not change prove nothing")
print("\n".join(problems))
sys.exit(1 if problems else 0)
