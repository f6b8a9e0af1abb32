"""Batches that are bounded by seconds, rows or a cost, and how well they are filled."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from . import arguments

Cost = Callable[[np.ndarray], np.ndarray]

_CLASSES = 32  # of lengths, for the entropy
_UNITS = 2**32  # in which costs are counted: so many are max_cost


def positive(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)) or not 0 < value < float("inf"):
        raise ValueError(f"{name} is a number above 0, not {arguments.shown(value)}")
    return float(value)


def fraction(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)) or not 0 <= value <= 1:
        raise ValueError(f"{name} is a number from 0 to 1, not {arguments.shown(value)}")
    return float(value)


def rows_in(seconds: Any, rows_per_second: float) -> int:
    """The argument max_seconds as rows."""
    seconds = positive("max_seconds", seconds)
    if not rows_per_second:
        raise ValueError("max_seconds: it is not known how many of these rows are a second, as their sample rate or hop is not; give max_rows")
    rows = int(seconds * rows_per_second + 1e-6)
    if rows < 1:
        raise ValueError(f"max_seconds: {seconds:g} s is less than a row, of which {rows_per_second:g} are a second")
    return rows


def costs_of(rows: np.ndarray, cost: Any, max_cost: Any) -> Tuple[np.ndarray, int]:
    """What samples of so many rows cost, as whole numbers, and how much a batch may cost."""
    most = positive("max_cost", max_cost)
    if not callable(cost):
        raise TypeError(f"cost is a function of an array of numbers of rows, which gives what a sample of each costs, not {arguments.shown(cost)}")
    lengths = np.unique(rows)
    costs = np.asarray(cost(lengths.astype(np.float64)), np.float64)
    if costs.shape != lengths.shape:
        raise ValueError(f"cost: gives an array of the shape {costs.shape} for one of {lengths.shape}")
    if not np.isfinite(costs).all() or (costs < 0).any():
        i = int(np.argmax(~np.isfinite(costs) | (costs < 0)))
        raise ValueError(f"cost: of {lengths[i]} rows is {costs[i]}; a cost is a finite number of 0 or more")
    if (np.diff(costs) < 0).any():
        i = int(np.argmax(np.diff(costs) < 0))
        raise ValueError(f"cost: {lengths[i + 1]} rows cost {costs[i + 1]:g}, less than {lengths[i]} rows with {costs[i]:g}; a cost must not fall with the rows")
    units = np.minimum(np.rint(costs / most * _UNITS), 2.0**40).astype(np.int64)
    return units[np.searchsorted(lengths, rows)], _UNITS + 2**12


def _entropy(counts: np.ndarray) -> float:
    """In bits."""
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum())


def entropy_of_neighbours(ends: np.ndarray, rows: np.ndarray) -> float:
    """How little the length of a sample says about the others in its batch [bits]: the entropy of the class of one, given that of the other, over all
    ordered pairs of samples in a batch. The classes are 32 of equally many samples, by length. 5: nothing; 0: all.

    ends: of the batches; rows: of their samples, in order."""
    if len(rows) == 0:
        return 0.0
    classes = np.empty(len(rows), np.int64)
    classes[np.argsort(rows, kind="stable")] = np.arange(len(rows)) * _CLASSES // len(rows)
    batches = np.searchsorted(ends, np.arange(len(rows)), side="right")
    counts = np.bincount(batches * _CLASSES + classes, minlength=len(ends) * _CLASSES).reshape(-1, _CLASSES).astype(np.float64)
    pairs = counts.T @ counts - np.diag(counts.sum(0))
    return _entropy(pairs) - _entropy(pairs.sum(1)) if pairs.any() else 0.0


def figures(samples: np.ndarray, ends: np.ndarray, rows: np.ndarray, costs: np.ndarray, most: int, packs: bool) -> Dict[str, Optional[float]]:
    """Of the batches of all ranks: `padding`, the part of their rows that is padding; `fill`, how much of what a batch may have or cost they have on average;
    and `entropy_of_neighbours`.

    samples: of the batches, in order; ends: of each batch; rows, costs: by sample."""
    begins = np.r_[0, ends[:-1]]
    rows, costs = rows[samples], costs[samples]
    counts = ends - begins
    there = np.add.reduceat(rows, begins)
    padded = there if packs else counts * np.maximum.reduceat(rows, begins)
    cost = np.add.reduceat(costs, begins) if packs else counts * np.maximum.reduceat(costs, begins)
    return {"padding": float(1 - there.sum() / padded.sum()), "fill": float(cost.mean() / min(most, _UNITS)) if most else None,
            "entropy_of_neighbours": entropy_of_neighbours(ends, rows)}
