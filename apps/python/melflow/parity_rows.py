"""melflow's own rows of a signal, and how far they may be from a library's.

Beyond the library's own error a value may differ by the largest of
  - atol + rtol |value|; for linear values without atol, which would accept every quiet band;
  - FILTER_SHARE of the two adjacent bands: filters in single precision are wrong by that much;
  - UNNOTED: own errors up to that size are not in the golden vectors, in the level's unit or relative to a
    linear value. It does not apply to linear values of a library in double precision, nor where all own errors
    are measured;
  - the effect of an error in proportion to the frame's largest amplitude, as transforms have in every bin:
    FLOAT_SHARE where our rows, or theirs with an unknown error, are in single precision, else DOUBLE_SHARE;
  - for cepstra, whose levels are floats in any case, FLOAT_SHARE of the largest.
So rows in double precision are held to the library's own error at any level, and rows in single precision to
their share of the peak.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ._melflow import FeatureChain, RowCall

FLOAT_SHARE = 1e-6
DOUBLE_SHARE = 1e-15
# tests/golden/filterbanks.json: weights of SpeechBrain and Kaldi are off by up to 1e-5 of a peak.
FILTER_SHARE = 1e-5
UNNOTED = 1e-4
# The relative error of a library's own error, because the vectors store it with two digits.
NOTED_DIGITS = 0.05

PRECISIONS = ("float", "double")
Settings = Mapping[str, Any]  # all options of a mel stage, as _melflow.mel_settings gives them
Stage = Tuple[str, Mapping[str, Any]]  # its name and options


UNLIMITED = RowCall(None, None, None, None)


def chain(*stages: Stage) -> FeatureChain:
    """A chain of the decoder and these stages."""
    graph: Dict[str, Mapping[str, Any]] = {"file_list": {"stage": "file_list", "root": "/"}}
    for stage, options in (("disk_read", {}), ("decode", {}), *stages, ("batches", {})):
        graph[stage] = {"stage": stage, "from": list(graph)[-1], **options}
    return FeatureChain("verify-parity", json.dumps({"version": 1, "graph": graph}), {}, {})


class Theirs(NamedTuple):
    """Rows of a library, [rows, columns], and what is known of their precision."""
    frames: np.ndarray  # the number of each row
    values: np.ndarray
    own_errors: np.ndarray  # 0 where they are negligible or not known
    is_double: bool = False  # whether the library's transform is in double precision
    is_noted: bool = False  # whether own errors are there where they are significant
    is_measured: bool = False  # whether own errors are there of all values
    masked: int = 0  # rows at the end that a mask of the library leaves out

    def without(self, rows: int) -> "Theirs":
        """Without the last rows."""
        return self._replace(frames=self.frames[:-rows], values=self.values[:-rows], own_errors=self.own_errors[:-rows])


class Ours:
    """values: [frames, columns]. mean, divisor: by which each column was normalised, (x - mean) / divisor.

    samples: int16, or float32 with 1 as full scale. before, after: what is done before and after mel: its samples are padded and
    normalised; its rows become cepstra, are stacked and filled up. Raises RunError for a signal of no frame."""

    def __init__(self, settings: Settings, precision: str, samples: np.ndarray, after: Sequence[Stage] = (),
                 before: Sequence[Stage] = (("segment", {}),)) -> None:
        self.settings, self.precision, self.before = settings, precision, before
        self.is_cepstrum = any(stage == "mfcc" for stage, _ in after)
        mel = {**settings, "precision": precision}
        self.values = self._rows(mel, samples, *after)
        self.mean, self.divisor = np.zeros(1), np.ones(1)
        if settings["normalize"] == "fixed":
            self.mean = np.array(settings["norm_mean"], float)
            if settings["norm_variance"] and settings["norm_std"]:
                self.divisor = np.array(settings["norm_std"], float)
        elif settings["normalize"] != "none":
            levels = self._rows({**mel, "normalize": "none"}, samples)
            axis = 0 if settings["normalize"] == "per_feature" else None
            n, ddof = levels.size if axis is None else len(levels), settings["norm_ddof"]
            self.mean = levels.mean(axis)
            if settings["norm_variance"]:
                variance = ((levels - self.mean) ** 2).sum(axis) / (n - ddof) if n > ddof else np.zeros(1)
                eps, is_in_root = settings["norm_eps"], settings["norm_eps_to"] == "variance"
                self.divisor = np.sqrt(variance + eps) if is_in_root else np.sqrt(variance) + eps

    def _rows(self, mel: Settings, samples: np.ndarray, *after: Stage) -> np.ndarray:
        rows, _, _ = chain(*self.before, ("mel", mel), *after).rows_of_samples(UNLIMITED, None, samples, mel["sample_rate"])
        return rows.astype(float)

    def limits(self, theirs: Theirs, tolerance: Mapping[str, Any]) -> np.ndarray:
        """The largest allowed difference of each value from the library's, beside the library's own error."""
        o, shape = self.settings, theirs.values.shape
        if not self.is_cepstrum and not o["use_energy"] and o["output"] == "mel" and shape[1] > o["n_mels"]:  # stacked rows
            theirs = theirs._replace(values=theirs.values.reshape(-1, o["n_mels"]))
        return self._limits(theirs, tolerance).reshape(shape)

    def _limits(self, theirs: Theirs, tolerance: Mapping[str, Any]) -> np.ndarray:
        o, size = self.settings, np.abs(theirs.values)
        is_level = o["log"] != "none" and not self.is_cepstrum
        is_energy = np.zeros(size.shape[1], bool)
        if o["use_energy"] and not self.is_cepstrum:
            is_energy[-1 if o["htk_compat"] else 0] = True
        is_linear = ~is_energy & (not is_level and not self.is_cepstrum)
        out = self._float_limits(theirs, size, is_level, is_energy)
        out = np.fmax(out, np.where(is_linear, 0.0, tolerance["atol"]) + tolerance["rtol"] * size)
        if theirs.is_measured or (theirs.is_double and not is_level):
            return out
        return np.fmax(out, UNNOTED if is_level else UNNOTED * size * is_linear)

    def _float_limits(self, theirs: Theirs, size: np.ndarray, is_level: bool, is_energy: np.ndarray) -> np.ndarray:
        """The effect of FLOAT_SHARE and FILTER_SHARE. Peaks and neighbours come from the library's rows, so that an error in
        ours cannot widen its own limit."""
        o, linear = self.settings, size
        factor = {"log10": 1.0, "db": o["db_factor"] or 20 / o["power"]}.get(o["log"], np.log(10)) / np.log(10)
        if is_level:
            linear = np.exp((theirs.values * self.divisor + self.mean) / factor)
        bands = np.where(is_energy, 0.0, linear)
        peak = np.fmax.reduce(bands, axis=1, keepdims=True, initial=0.0)
        if self.is_cepstrum:
            return np.broadcast_to(FLOAT_SHARE * peak, size.shape)
        is_single = self.precision == "float" or not (theirs.is_double or theirs.is_noted or theirs.is_measured)
        share = (FLOAT_SHARE if is_single else DOUBLE_SHARE) * peak ** (1 / o["power"])
        out = (linear ** (1 / o["power"]) + share) ** o["power"] - linear
        if o["output"] == "mel":
            beside = np.pad(bands, ((0, 0), (1, 1)))
            out = np.fmax(out, FILTER_SHARE * np.fmax(beside[:, :-2], beside[:, 2:]))
        if is_level:
            out = np.log1p(out / linear) * factor
            if o["normalize"] in ("per_feature", "all_features") and len(theirs.frames) == len(self.values):
                out = out + self._of_statistics(size, out)
            out = out / self.divisor
        return np.where(is_energy, 0.0, out)

    def _of_statistics(self, size: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """What errors of all frames' levels make of each normalised value by the mean and the deviation, which are over the recording: a quiet
        frame is off by errors of loud ones. Errors of rounding are independent, so of n their mean is the root of the sum of squares, by n."""
        axis = 0 if self.settings["normalize"] == "per_feature" else None

        def mean(of: np.ndarray) -> np.ndarray:
            return np.sqrt((of ** 2).mean(axis, keepdims=True) / (of.shape[0] if axis == 0 else of.size))

        return mean(errors) + size * mean(size * errors) if self.settings["norm_variance"] else mean(errors)


class Worst(NamedTuple):
    value: Dict[str, Any]  # with the largest share of its limit
    largest: float  # |ours - theirs| of all values


def worst(ours: np.ndarray, theirs: Theirs, limits: np.ndarray, precision: str) -> Optional[Worst]:
    """The value that exceeds the library's own error by the largest share of its limit; None without values. ours: [rows, columns]."""
    if not theirs.values.size:
        return None
    limits = limits + NOTED_DIGITS * theirs.own_errors
    difference = np.abs(ours - theirs.values)
    errors = np.where(difference <= theirs.own_errors, 0.0, difference - theirs.own_errors)
    shares = np.where(errors == 0, 0.0, errors / limits)
    shares[np.isnan(shares)] = np.inf
    at = np.unravel_index(np.argmax(shares), shares.shape)
    return Worst({"frame": int(theirs.frames[at[0]]), "column": int(at[1]), "precision": precision, "ours": float(ours[at]),
                  "theirs": float(theirs.values[at]), "own_error": float(theirs.own_errors[at]), "error": float(errors[at]),
                  "limit": float(limits[at]), "share": float(shares[at])}, float(np.fmax.reduce(difference, axis=None, initial=0.0)))


def given_rows(samples: np.ndarray, sample_rate: int, rows: Any) -> np.ndarray:
    """A function for the stage python that gives these rows, whatever the samples."""
    return np.array(rows, np.float32)


def deltas(rows: np.ndarray, options: Mapping[str, Any]) -> np.ndarray:
    """The derivatives of the highest order that the stage deltas appends to these rows, [frames, columns]."""
    given = {"call": "melflow.parity_rows:given_rows", "gives": "rows", "columns": rows.shape[1], "arguments": {"rows": rows.tolist()}}
    made, _, _ = chain(("python", given), ("deltas", options)).rows_of_samples(UNLIMITED, None, np.zeros(1, np.int16), 16000)
    return made[:, -rows.shape[1]:].astype(float)
