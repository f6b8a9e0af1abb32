"""Results of functions in a pipeline: checks of what they return, skip() and note()."""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
import traceback
from typing import Any, Callable, Iterator, List, NoReturn, Optional, Tuple

import numpy as np

from ._melflow import without_secrets

Answer = Tuple[str, str, List[np.ndarray], List[str]]  # outcome, reason, results, notes

of_thread = threading.local()


class Skipped(Exception):
    """Raised by skip()."""


class OneByOne(BaseException):
    """Raised by note() in a call with several recordings, since it concerns only one of them."""


def skip(why: str) -> NoReturn:
    """In a function that a node calls: leaves the recording out, with the reason in the report."""
    raise Skipped(why)


def note(text: str) -> None:
    """In a function that a node calls: adds a warning about the recording to the report."""
    if not hasattr(of_thread, "notes"):
        raise RuntimeError("note() is for functions that a node of a pipeline calls")
    if of_thread.notes is None:
        raise OneByOne
    of_thread.notes.append(str(text))


def described(error: BaseException) -> str:
    """Text of an exception, with the last place outside of this package."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()[-1]
    frames = [f for f in traceback.extract_tb(error.__traceback__)
              if not f.filename.startswith(os.path.dirname(__file__)) and not f.filename.startswith("<frozen")]
    text = without_secrets(text).removeprefix("melflow._melflow.")
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name})" if frames else text


def array_of(value: Any) -> np.ndarray:
    """Raises ValueError if values are masked: np.asarray() would take the values under the mask."""
    if isinstance(value, np.ma.MaskedArray) and (masked := np.ma.count_masked(value)):
        raise ValueError(f"{masked} of {value.size} values are masked; fill them (a.filled(0)) or cut them out (a.compressed())")
    return np.asarray(value)


def _array(value: Any) -> np.ndarray:
    if isinstance(value, np.ma.MaskedArray):
        return array_of(value)
    try:
        return np.asarray(value)
    except ValueError:  # rows of several lengths
        raise TypeError(f"the function gives {shown(value)}, which is no array") from None


def _copied(array: np.ndarray) -> np.ndarray:
    """Always copies, since the function may write its next result to the same memory."""
    return np.array(array, np.float32, order="C")


def _refuse_rate(value: Any) -> None:
    if isinstance(value, tuple) and len(value) == 2 and np.ndim(value[1]) == 0 and hasattr(value[0], "__len__"):
        raise TypeError("the function gives a pair of samples and a rate; give the samples alone: they have the rate that the function "
                        "gets, and a resample node changes it")


def samples_of(value: Any) -> np.ndarray:
    _refuse_rate(value)
    array = _array(value)
    if array.dtype == np.int16:
        array = array / np.float32(32768)
    if array.ndim != 1 or array.dtype.kind != "f":
        raise TypeError(f"the function gives {shown(value)}; samples are an array [samples] of floats or int16")
    array = _copied(array)
    if not np.isfinite(array).all():
        raise ValueError("the function gives samples that are no numbers (NaN or infinite)")
    return array


def shown(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"an array {tuple(value.shape)} of {value.dtype}"
    return f"{type(value).__name__} {value!r:.60}" if value is not None else "None"


def _integers(array: np.ndarray, wanted: np.dtype) -> np.ndarray:
    """A copy as `wanted`. Raises TypeError for floats, ValueError for a value that it cannot hold."""
    if array.dtype.kind not in "iu":
        raise TypeError(f"the function gives {shown(array)}, and dtype: {wanted} is for integers; convert them in the function "
                        f"(np.rint(x).astype(np.{wanted})), or leave out dtype")
    ends = np.iinfo(wanted)
    for find in (np.argmin, np.argmax) if array.size else ():
        at = np.unravel_index(find(array), array.shape)
        if not ends.min <= int(array[at]) <= ends.max:
            raise ValueError(f"the function gives {array[at]} at [{', '.join(map(str, at))}], and {wanted} holds {ends.min} to {ends.max}" +
                             ("; set a wider dtype" if wanted.itemsize < 8 else ""))
    return np.array(array, wanted, order="C")


def _rows(value: Any, dtype: str) -> np.ndarray:
    array = _array(value)
    if array.dtype.kind not in "fiu" or array.ndim not in (1, 2, 3):
        raise TypeError(f"the function gives {shown(value)}; rows are an array [rows, columns], or one row")
    array = _copied(array) if dtype == "float32" else _integers(array, np.dtype(dtype))
    return array[None] if array.ndim == 1 else array


def _utterances(value: Any) -> np.ndarray:
    pairs = list(value) if value is not None else None
    try:
        array = np.asarray(pairs if pairs else np.zeros((0, 2)), np.float32)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if pairs is None or array.ndim != 2 or array.shape[1] != 2:
        raise TypeError(f"the function gives {shown(value)}; utterances are pairs of start and end in seconds")
    return np.ascontiguousarray(array)


def results_of(gives: str, value: Any, dtype: str) -> List[np.ndarray]:
    """dtype: of rows."""
    if gives == "rows":
        return [_rows(value, dtype)]
    if gives == "utterances":
        return [_utterances(value)]
    if gives == "waveform" and not inspect.isgenerator(value):
        if isinstance(value, (list, tuple)) and value and np.ndim(value[0]) > 0:
            _refuse_rate(value)
            raise TypeError(f"the function gives {len(value)} arrays of samples; give one, or write gives: waveforms")
        return [samples_of(value)]
    if not inspect.isgenerator(value) and not isinstance(value, (list, tuple)):
        raise TypeError(f"the function gives {shown(value)}; several results are a generator or a list of arrays of samples")
    _refuse_rate(value)
    return [samples_of(one) for one in value]


@contextlib.contextmanager
def noting(notes: Optional[List[str]]) -> Iterator[None]:
    """Makes note() append to `notes`; None: the call has several recordings, so note() is refused."""
    has_before = hasattr(of_thread, "notes")  # where a function calls features() of another pipeline
    before = getattr(of_thread, "notes", None)
    of_thread.notes = notes
    try:
        yield
    finally:
        if has_before:
            of_thread.notes = before
        else:
            del of_thread.notes


def answer_of(make: Callable[[], List[np.ndarray]]) -> Answer:
    """Calls `make`; gives its results, or why there are none."""
    notes: List[str] = []
    try:
        with noting(notes):
            return "made", "", make(), notes
    except Skipped as why:
        return "skipped", str(why) or "the function skips it", [], notes
    except BaseException as error:  # SystemExit, too: it is about this recording
        return "failed", described(error), [], notes
