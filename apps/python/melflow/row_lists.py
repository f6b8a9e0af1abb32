"""Rows of one recording or of a list, after what is lost or damaged was told."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from . import arguments
from ._melflow import RunError
from .given_audio import Made

ALL_IN = "a list given as `remarks` gets all"
Task = Callable[[], Made]


def shown(made: Made, remarks: Optional[List[Dict[str, Any]]]) -> Any:
    """Tells the warning about the rows, and returns them."""
    rows, warning = made
    if warning:
        noted(remarks, [{"index": 0, "status": "ok", "reason": warning}])
        if remarks is None:
            arguments.warn([warning])
    return rows


def refuse_padded(padded: Any) -> None:
    if arguments.flag("padded", padded):
        raise TypeError("padded is for a list of recordings, and this is one")


def tasks(audio: Sequence[Any], out: Any, padded: Any, rows_of: Callable[[Any, Any], Made]) -> List[Task]:
    """One for each recording of a list, with its part of `out`."""
    if out is not None and not arguments.flag("padded", padded):
        raise TypeError("out of a list takes padded=True: an array [recordings, rows, columns] for all")
    if out is not None and len(out) < len(audio):
        raise ValueError(f"out has room for {len(out)} recordings, and there are {len(audio)}")
    return [functools.partial(rows_of, one, None if out is None else out[i]) for i, one in enumerate(audio)]


def made_or_error(task: Task) -> "Made | Exception":
    try:
        return task()
    except Exception as error:
        return error


def joined(of_each: "Iterable[Made | Exception]", out: Any, padded: bool, remarks: Optional[List[Dict[str, Any]]]) -> Any:
    """The rows of a list, after what is lost or damaged in it was told."""
    made: List[Any] = list(of_each)
    for one in made:
        if isinstance(one, Exception) and (isinstance(one, TimeoutError) or not isinstance(one, (OSError, RunError))):
            raise one
    lost = {i: str(one) for i, one in enumerate(made) if isinstance(one, Exception)}
    said = {i: one[1] for i, one in enumerate(made) if i not in lost and one[1]}
    for status, of in (("failed", lost), ("ok", said)):
        noted(remarks, [{"index": i, "status": status, "reason": text} for i, text in of.items()])
    for what, of in (("gave no rows", lost), ("have a warning", said)):
        if not of:
            continue
        text = arguments.counted(what, [f"[{i}] {text}" for i, text in of.items()], len(made), ALL_IN)
        if of is lost:
            raise RunError(text)
        if remarks is None:
            arguments.warn([text])
    rows = [one for one, _ in made]
    return _in_one(rows, out) if padded else rows


def _in_one(rows: List[Any], out: Any) -> Tuple[Any, np.ndarray]:
    lengths = np.array([len(one) for one in rows], np.int64)
    if out is None and rows:
        if not all(isinstance(one, np.ndarray) for one in rows):
            raise ValueError("NumPy has no bfloat16 for padded=True; leave it out, or give another dtype")
        out = np.zeros((len(rows), lengths.max(), *rows[0].shape[1:]), rows[0].dtype)
        for to, one in zip(out, rows):
            to[:len(one)] = one
    elif out is not None:
        for to, count in zip(out, lengths):
            to[int(count):] = 0
    return out, lengths


def noted(remarks: Optional[List[Dict[str, Any]]], told: Iterable[Dict[str, Any]] = ()) -> None:
    """Adds remarks to the list that the caller passed, if any."""
    if remarks is not None and not isinstance(remarks, list):
        raise TypeError(f"remarks is a list, to which recordings that are lost or damaged are added, not {arguments.shown(remarks)}")
    if remarks is not None:
        remarks.extend(told)
