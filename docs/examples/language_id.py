"""Trains a small classifier on an output of the pipeline language_id: numpy and h5py, nothing else.

language_id.py FILE.h5
Prints the share of validation and test recordings whose label is found, and what is taken for what.
"""
import sys
from typing import Any

import h5py
import numpy as np

CONTEXT = 5  # frames on either side of the one that is classified
STEPS, BATCH, RATE = 1500, 512, 0.3


def with_context(rows: Any) -> Any:
    """Every frame with its neighbours, [frames, (2 CONTEXT + 1) * bands]; the ends are repeated."""
    padded = np.pad(rows, ((CONTEXT, CONTEXT), (0, 0)), mode="edge")
    return np.concatenate([padded[i : i + len(rows)] for i in range(2 * CONTEXT + 1)], axis=1)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def main(path: str) -> None:
    with h5py.File(path) as f:
        mean, std = f["statistics/mean"][:], f["statistics/std"][:]
        names = f["labels/name"].asstr()[:]
        splits = list(f["splits/name"].asstr()[:])
        split, label, count = (f["files/" + n][:] for n in ("split", "label", "count"))
        rows = {s: ((f[s][f.attrs["rows"]][:] - mean) / std).astype(np.float32) for s in splits}
        truth = f["train/label"][:]

    random = np.random.default_rng(0)
    features = (2 * CONTEXT + 1) * len(mean)
    weights, bias = np.zeros((features, len(names)), np.float32), np.zeros(len(names), np.float32)
    # The same number of frames of every label, from anywhere in the split.
    of_label = [np.flatnonzero(truth == n) for n in range(len(names))]
    inputs = with_context(rows["train"])
    for step in range(STEPS):
        picked = np.concatenate([random.choice(i, BATCH // len(names)) for i in of_label])
        x = inputs[picked]
        error = softmax(x @ weights + bias)
        error[np.arange(len(picked)), truth[picked]] -= 1
        rate = RATE * (1 - step / STEPS) / len(picked)
        weights -= rate * (x.T @ error)
        bias -= rate * error.sum(axis=0)

    for name in splits[1:]:
        files = np.flatnonzero((split == splits.index(name)) & (count > 0))
        levels = np.log(softmax(with_context(rows[name]) @ weights + bias) + 1e-9)
        # A recording is what its frames are in the mean.
        ends = np.cumsum(count[files])
        found = np.array([levels[e - n : e].mean(axis=0).argmax() for e, n in zip(ends, count[files])])
        right = found == label[files]
        print(f"{name}: {right.sum()} of {len(files)} recordings ({right.mean():.1%})")
    print("rows: what it is; columns: what it is taken for")
    print("   " + " ".join(f"{n:>4}" for n in names))
    for n, spoken in enumerate(names):
        print(f"{spoken:>3}" + " ".join(f"{((label[files] == n) & (found == m)).sum():4}" for m in range(len(names))))


main(*sys.argv[1:])
