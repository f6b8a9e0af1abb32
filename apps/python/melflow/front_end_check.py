"""Compares code of one's own, as a service or another language has it, with a front end."""

from __future__ import annotations

import json
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from . import arguments, parity_signals
from ._melflow import ConfigError, RunError, mel_settings, preset_rate
from ._melflow import version as _version
from .features import Features, features

# Mistakes that look right: each is tried alone where rows differ.
_VARIANTS: "Tuple[Dict[str, Any], ...]" = tuple(
    {name: value}
    for name, values in (("periodic", (True, False)), ("drop_last", (True, False)), ("center", (True, False)),
                         ("pad_mode", ("reflect", "constant", "symmetric")), ("mel_scale", ("htk", "slaney", "kaldi")),
                         ("norm", ("none", "slaney")), ("triangles", ("hz", "mel")), ("power", (1, 2)), ("window", ("hann", "hamming", "povey")),
                         ("preemphasis_of", ("signal", "frame")), ("remove_dc", (True, False)), ("input_scale", (1, 32768)),
                         ("log", ("ln", "log10", "db")), ("top_db", (None,)), ("normalize", ("none",)))
    for value in values)


class Difference(NamedTuple):
    """What differs for one signal: the numbers of rows, or values of rows that both have."""
    signal: str
    rows: int                 # of melflow
    their_rows: int
    frames: "List[int]"       # that differ by more than atol
    largest: float            # difference, of the rows that both have
    at: "Tuple[int, int]"     # its row and column


class FrontEndCheck(NamedTuple):
    differences: "List[Difference]"
    signals: int
    as_with: "List[str]"      # options that, changed alone, give the rows of the function

    @property
    def ok(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self.ok:
            return f"equal on {self.signals} signals"
        lines = [f"differs on {len(self.differences)} of {self.signals} signals"]
        for d in self.differences:
            text = f"{d.signal}: "
            if d.rows != d.their_rows:
                text += f"{d.their_rows} rows, not {d.rows}; "
            some = ", ".join(map(str, d.frames[:5])) + (", ..." if len(d.frames) > 5 else "")
            text += f"{len(d.frames)} of {min(d.rows, d.their_rows)} frames differ ({some}), by {d.largest:.3g} at row {d.at[0]}, column {d.at[1]}" \
                if d.frames else "the rows that both have are equal"
            lines.append(text)
        lines += [f"as with {of}" for of in self.as_with]
        return "\n".join(lines)


def _difference(name: str, mine: np.ndarray, theirs: np.ndarray, atol: float) -> Optional[Difference]:
    both = min(len(mine), len(theirs))
    apart = np.abs(mine[:both].astype(np.float64) - theirs[:both])
    apart[~np.isfinite(apart)] = np.inf
    frames = np.flatnonzero((apart > atol).any(axis=1)).tolist()
    if len(mine) == len(theirs) and not frames:
        return None
    row, column = np.unravel_index(np.argmax(apart), apart.shape) if apart.size else (0, 0)
    return Difference(name, len(mine), len(theirs), frames, float(apart[row, column]) if apart.size else 0.0, (int(row), int(column)))


def _rate_of(sample_rate: Any, options: "Dict[str, Any]") -> int:
    preset = options.get("preset")
    rate = arguments.rate("sample_rate", sample_rate) if sample_rate is not None else preset and preset_rate(arguments.text_of(preset))
    if not rate:
        raise TypeError("this needs a preset of a model, or sample_rate, the rate [Hz] of the samples")
    return rate


def check_front_end(function: Callable[[np.ndarray, int], Any], *, sample_rate: Optional[int] = None, atol: float = 1e-3,
                    **options: Any) -> FrontEndCheck:
    """Compares a function of yours, function(samples, sample_rate) -> rows [frames, bands], with the rows of melflow.features for
    built-in signals: a voice, noise, silence, a click, full scale, a constant, and less than a window. samples: float32, 1 is full
    scale.

        print(melflow.check_front_end(my_mel, preset="whisper"))

    options: those of the stage mel, with sample_rate where the preset has none. atol: the largest difference that counts as equal, in
    the unit of the rows; libraries' single precision is 1e-4 to 1e-2 off in silence. Signals that melflow refuses (no preset pads
    them) are left out. The result says which frames differ by how much and, where a single changed option of mel explains it,
    which."""
    rate = _rate_of(sample_rate, options)
    differences: "List[Difference]" = []
    given: "Dict[str, Tuple[np.ndarray, np.ndarray]]" = {}
    for name, make in parity_signals.SIGNALS.items():
        samples = make(rate).astype(np.float32) / np.float32(32768)
        try:
            mine = features(samples, rate, **options)
        except RunError:  # shorter than a frame
            continue
        theirs = np.asarray(function(samples.copy(), rate), dtype=np.float64)
        if theirs.ndim != 2 or theirs.shape[1] != mine.shape[1]:
            advice = "; transpose it" if theirs.ndim == 2 and theirs.shape[0] == mine.shape[1] else ""
            raise ValueError(f"the function gives the shape {theirs.shape} for {name}, not [frames, {mine.shape[1]}]{advice}")
        given[name] = samples, theirs
        if found := _difference(name, mine, theirs, atol):
            differences.append(found)

    def explains(change: "Dict[str, Any]") -> bool:
        try:
            return all(_difference(name, features(samples, rate, **{**options, **change}), theirs, atol) is None
                       for name, (samples, theirs) in given.items())
        except (ConfigError, RunError, TypeError, ValueError):  # not together with the other options
            return False

    tried = _VARIANTS if differences else ()
    as_with = [f"{name}: {'null' if value is None else str(value).lower() if isinstance(value, bool) else value}"
               for change in tried for name, value in change.items() if explains(change)]
    return FrontEndCheck(differences, len(given), as_with)


def vectors(*, sample_rate: Optional[int] = None, **options: Any) -> "Dict[str, Any]":
    """20 cases to test a port in another language, of plain numbers: json.dump(melflow.vectors(preset="whisper"), file).

    sample_rate, options: as of melflow.check_front_end. Gives `mel`, all options of the front end resolved; `signals`, int16
    samples (1 is 1/32768 of full scale); and `cases`: the first `count` samples of a `signal`, and their `rows`."""
    rate = _rate_of(sample_rate, options)
    mel = json.loads(mel_settings(json.dumps(arguments.plain({**options, "sample_rate": rate})), "options."))
    window, hop = int(mel["win_length"]), int(mel["hop"])
    signals = {name: make(rate) for name, make in parity_signals.SIGNALS.items() if name not in ("short", "one")}
    cuts = (1, hop, window // 2, window // 2 + 1, window - 1, window, window + 1, window + hop - 1, window + hop, 2 * window + 1, 3 * window,
            3 * window + hop // 2, 4 * window, 5 * window + 3)
    cases = []
    for name, count in [*((name, len(x)) for name, x in signals.items()), *(("voice", n) for n in cuts)]:
        samples = signals[name][:count]
        try:
            rows = features(samples, rate, **options)
        except RunError:  # shorter than a frame
            rows = np.zeros((0, 0), np.float32)
        # The shortest decimals that are these floats.
        cases.append({"signal": name, "count": len(samples), "rows": [[float(str(x)) for x in row] for row in rows]})
    return {"format": 1, "melflow": _version, "sample_rate": rate, "mel": mel, "signals": {n: x.tolist() for n, x in signals.items()}, "cases": cases}


def of_verb(words: str) -> "Tuple[int, str, str]":
    """Runs the verb vectors, or --decibels of compare, with its arguments as JSON. Gives the exit status, the printed text and the
    error message."""
    given = json.loads(words, strict=False)
    if "decibels" in given:
        return 0, "\n".join(_decibels(*given["decibels"])), ""
    options: "Dict[str, Any]" = {"preset": given["preset"]} if given["preset"] else {}
    for option in given["options"]:
        name, is_set, value = option.partition("=")
        if not is_set:
            raise ConfigError(f"--set: {arguments.shown(option)} is not OPTION=VALUE")
        options[name] = _value(value)
    rate = given["sample_rate"]
    return 0, json.dumps(vectors(sample_rate=(int(rate) if rate.isdecimal() else rate) if rate else None, **options)), ""


def _rows_of(side: "Dict[str, Any]", x: np.ndarray, rate: int) -> np.ndarray:
    with warnings.catch_warnings():  # said by the comparison of settings
        warnings.simplefilter("ignore")
        by = Features(side["text"] or side["path"], sets=side["sets"])
    rows = by(x, rate)
    return rows.reshape(-1, rows.shape[-1]).astype(np.float64) if rows.ndim > 1 else rows[:, None].astype(np.float64)


def _decibels(a: "Dict[str, Any]", b: "Dict[str, Any]") -> "List[str]":
    """How much the rows of two pipelines differ on the built-in signals, at the rate of the first."""
    rate, out = a["sample_rate"] or b["sample_rate"] or 16000, []
    for name, make in parity_signals.SIGNALS.items():
        x = make(rate)
        try:
            one, other = _rows_of(a, x, rate), _rows_of(b, x, rate)
        except RunError as error:
            out.append(f"{name}: {error}")
            continue
        if one.shape != other.shape:
            out.append(f"{name}: {one.shape[0]} rows of {one.shape[1]}, and {other.shape[0]} of {other.shape[1]}")
            continue
        apart, level = np.abs(one - other), float(np.sqrt(np.mean(one ** 2)))
        if not apart.any():
            out.append(f"{name}: equal bit for bit")
            continue
        decibels = 20 * np.log10(float(np.sqrt(np.mean(apart ** 2))) / level) if level else np.inf
        row, column = np.unravel_index(np.argmax(apart), apart.shape)
        out.append(f"{name}: {decibels:.1f} dB of the rows' level; at most {apart.max():.6g}, in row {row}, column {column}")
    return out


def _value(text: str) -> Any:
    """A number, list, true, false or null as JSON has it, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
