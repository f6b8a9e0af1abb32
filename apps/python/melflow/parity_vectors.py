"""The golden vectors: rows of features that the libraries themselves computed.

In:  the JSON file that tests/golden/make_presets.py wrote.
Out: its cases, with all options of each as melflow reads them.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from . import inputs, parity_signals
from ._melflow import ConfigError, RunError, mel_settings
from .parity_rows import Theirs

Object = Mapping[str, Any]
OWN_TOLERANCE = {"atol": 1e-4, "rtol": 0.0, "source": "melflow's own: the library has no test of its values"}


class Case(NamedTuple):
    name: str
    preset: str
    library: str  # with its version
    settings: Object
    cepstrum: Optional[Object]  # options of the stage mfcc
    signal: str
    samples: int
    left_out: str  # why the library has no rows to compare; "" when it has
    shape: Tuple[int, int]  # frames and columns of the whole signal
    rows: Optional[Theirs]


class Deltas(NamedTuple):
    """Derivatives of a small matrix."""
    name: str
    library: str
    options: Object
    input: np.ndarray
    output: np.ndarray


class Vectors(NamedTuple):
    tolerances: Dict[str, Object]  # by preset, in the order of the file
    cases: List[Case]
    deltas: List[Deltas]


def tolerance_of(preset: str, tolerances: Mapping[str, Object]) -> Object:
    if preset not in tolerances:
        raise RunError(f"'tolerances' has no preset '{preset}'")
    return tolerances[preset]


def signal(name: str, rate: int) -> np.ndarray:
    """int16."""
    if name not in parity_signals.SIGNALS or not 1000 <= rate <= 10_000_000:
        raise RunError(f"there is no signal '{name}' at {rate} Hz; the signals, from 1000 Hz on, are {', '.join(parity_signals.SIGNALS)}")
    return parity_signals.SIGNALS[name](rate)


def read(path: str) -> Vectors:
    """Reads the vectors. Raises RunError, with the place, if one is invalid or if a signal differs from theirs."""
    try:
        text = inputs.read(path, inputs.VECTORS, may_be_pipe=True)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror if error.strerror.startswith('this is') else 'cannot be read: ' + error.strerror}") from None
    try:
        return _vectors(text)
    except (ConfigError, RunError) as error:
        raise RunError(f"{path}: {error}") from None


def _vectors(text: bytes) -> Vectors:
    try:
        document = json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise RunError("this is not a JSON document, or is damaged")
    list(_each(document, "signals", _check_signal))
    tolerances = {preset: _tolerance(fields) for preset, fields in _need(document, "tolerances", dict).items()}
    out = Vectors(tolerances, list(_each(document, "cases", lambda one: _case(one, tolerances))), list(_each(document, "deltas", _deltas)))
    if not out.cases:
        raise RunError("has no cases")
    return out


def _no_json(constant: str) -> None:
    """Refuses NaN and Infinity."""
    raise ValueError(constant)


def _need(entry: Object, key: str, *kinds: type) -> Any:
    if key not in entry:
        raise RunError(f"'{key}' is missing")
    value = entry[key]
    if not isinstance(value, kinds) or isinstance(value, bool) != (bool in kinds):
        _refuse(entry, key)
    return value


def _refuse(entry: Object, key: str) -> None:
    raise RunError(f"'{key}' is {json.dumps(entry[key])[:60]}, which is not a value for it")


def _array(entry: Object, key: str, axes: int) -> np.ndarray:
    try:
        out = np.array(_need(entry, key, list), float)
    except (TypeError, ValueError):
        out = np.zeros(())
    if out.ndim != axes:
        _refuse(entry, key)
    return out


def _each(entry: Object, key: str, visit: Callable[[Object], Any]) -> Iterator[Any]:
    """Yields visit(entry) for each entry of a list; adds the entry's position and name to an exception."""
    for i, one in enumerate(_need(entry, key, list)):
        try:
            if not isinstance(one, dict):
                raise RunError("is not an object")
            yield visit(one)
        except (ConfigError, RunError) as error:
            name = f" '{one['name']}'" if isinstance(one, dict) and isinstance(one.get("name"), str) else ""
            raise RunError(f"{key}[{i}]{name}: {error}") from None


def _check_signal(entry: Object) -> None:
    name, rate = _need(entry, "signal", str), _need(entry, "sample_rate", int)
    ours, theirs = parity_signals.checksum(signal(name, rate)), _need(entry, "fnv1a", int)
    if ours != theirs:
        raise RunError(f"the checksum of '{name}' at {rate} Hz is {ours} here, the vectors were made with {theirs}: the signals differ, so "
                       "nothing can be compared")


def _tolerance(fields: Object) -> Object:
    if fields.get("atol") is None:
        return OWN_TOLERANCE
    return {key: _need(fields, key, *kinds) for key, kinds in (("atol", (int, float)), ("rtol", (int, float)), ("source", (str,)))}


def _library(entry: Object) -> str:
    _need(entry, "function", str)
    return f"{_need(entry, 'library', str)} {_need(entry, 'version', str)}".rstrip()


def _cepstrum(entry: Object, settings: Object) -> Object:
    return {"n_mfcc": _need(entry, "n_mfcc", int), "dct_type": _need(entry, "dct_type", int),
            "norm": "ortho" if _need(entry, "ortho", bool) else "none", "lifter": _need(entry, "lifter", int, float),
            "lifter_style": _need(entry, "lifter_style", str), "htk_compat": settings["htk_compat"]}


def _case(entry: Object, tolerances: Mapping[str, Object]) -> Case:
    name, preset, library = _need(entry, "name", str), _need(entry, "preset", str), _library(entry)
    options = {**_need(entry, "options", dict), "preset": preset, "sample_rate": _need(entry, "sample_rate", int)}
    settings = json.loads(mel_settings(json.dumps(options), "options."))
    tolerance_of(preset, tolerances)
    cepstrum = _cepstrum(_need(entry, "mfcc", dict), settings) if "mfcc" in entry else None
    out = Case(name, preset, library, settings, cepstrum, _need(entry, "signal", str), _need(entry, "samples", int),
               _need(entry, "left_out", str) if "left_out" in entry else "", (0, 0), None)
    if out.left_out:
        return out
    frames, columns = _need(entry, "frames", int), _need(entry, "bands", int)
    rows = list(_each(entry, "rows", lambda row: _row(row, frames, columns)))
    return out._replace(shape=(frames, columns), rows=Theirs(
        np.array([frame for frame, _, _ in rows], int), np.array([values for _, values, _ in rows]).reshape(len(rows), columns),
        np.array([errors for _, _, errors in rows]).reshape(len(rows), columns), is_noted=True))


def _row(entry: Object, frames: int, columns: int) -> Tuple[int, np.ndarray, np.ndarray]:
    frame, values = _need(entry, "frame", int), _array(entry, "values", 1)
    errors = _array(entry, "own_error", 1) if "own_error" in entry else np.zeros(columns)
    if not 0 <= frame < frames:
        raise RunError(f"frame {frame} is not among its {frames}")
    if not len(values) == len(errors) == columns:
        raise RunError(f"has {len(values)} values, must have {columns}")
    return frame, values, errors


def _deltas(entry: Object) -> Deltas:
    method = _need(entry, "method", str)
    if method not in ("regression", "kaldi", "librosa"):
        raise RunError("'method' is none of regression, kaldi, librosa")
    options = {"order": _need(entry, "order", int), "width": _need(entry, "width", int), "method": method}
    given, made = _array(entry, "input", 2), _array(entry, "output", 2)
    if given.shape != made.shape:
        raise RunError("'input' and 'output' are not of one shape")
    return Deltas(_need(entry, "name", str), _library(entry), options, given, made)
