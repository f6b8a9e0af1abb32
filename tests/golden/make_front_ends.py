#!/usr/bin/env python3
"""Makes front_ends.json: a few values of every configuration of front_end_cases.py by the libraries in double precision.

In:  make_front_ends.py [NAME...]            writes the file anew, or only these configurations of it
     make_front_ends.py --compare FILE...    prints how far melflow is from the libraries on the signals and these recordings
     With, each by pip install --no-deps, torch, torchaudio, transformers 5.24, librosa 0.11, speechbrain, lhotse,
     nemo_toolkit and torchlibrosa, and what they import: of speechbrain, lhotse and NeMo one file is run. For --compare also
     melflow and soundfile.
Out: front_ends.json beside it: {name: {source, rate, nodes, masked: rows of zeros that a mask leaves out, columns: [those stored], signals: {signal: {rows: [all there
     are, those stored...], values, bounds} or {refused}}}}, values row by row. A bound is a letter: 2^(its place after "A"
     - 20), the criterion of the study: an error of 1e-6 of the frame's largest amplitude, or of rounding before pre-emphasis,
     carried through power, bank, logarithm, normalisation and what follows, and 2e-7 of the value, and 1e-5 of a level.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import scipy.fft

import definition
import front_end_cases
import front_end_libraries
import front_end_signals
import option_table

ROWS, COLUMNS = 5, 7
# The library ends with a row of zeros, with which a batch is filled: its mask leaves it out.
MASKED = {"hf_parakeet", "hf_cohere", "hf_nemotron", "nemo_fastconformer80", "nemo_parakeet128", "nemo_streaming", "nemo_quartznet64",
          "nemo_allfeat", "nemo_fastpitch", "nemo_exactpad", "hf_gemma4"}
PATH = pathlib.Path(__file__).with_name("front_ends.json")


def features(name):
    import melflow
    rate, _, _ = front_end_libraries.FRONT_ENDS[name]
    return melflow.Features(front_end_cases.pipeline(front_end_cases.CASES[name], rate))


def flat(rows):
    return rows.reshape(-1, rows.shape[-1]) if rows.ndim == 3 else rows.reshape(len(rows), -1)


def rounding_of_frames(o, x):
    """What single precision makes of a frame's samples, as an amplitude of each frame: two roundings of each at most, all in one direction. It counts
    where pre-emphasis leaves little: of a sound at the edge of a frame remains the mean that was removed, the same in all samples, times 0.03."""
    frames = definition.frames_of(o, np.asarray(x, dtype=float) * o["input_scale"])
    window = definition.window_of(o)
    if not o["preemphasis"] or o["preemphasis_of"] != "frame" or frames.shape[1] != len(window):
        return np.zeros((len(frames), 1))
    frames = frames - frames.mean(axis=1, keepdims=True) if o["remove_dc"] else frames
    return 2.0 ** -23 * np.abs(frames * window).sum(axis=1, keepdims=True)


def error_of_bands(o, x):
    """How far 1e-6 of the frame's largest amplitude, or what rounding makes of its samples, moves each level or value of mel."""
    power, _ = definition.spectra(o, x)
    amplitude = power ** (1 / o["power"])
    peak = amplitude.max(axis=1, keepdims=True) if amplitude.size else amplitude
    off = np.maximum(1e-6 * peak, rounding_of_frames(o, x)) if amplitude.size else amplitude
    bank = None if o["output"] == "spectrogram" else definition.filters(o).T
    bands = [p if bank is None else p @ bank for p in (power, (amplitude + off) ** o["power"])]
    free = dict(o, top_db=None, ref=1.0)
    low, high = bands if o["log"] == "none" else (definition.logarithm(free, np.maximum(b, definition.floor_of(o))) for b in bands)
    error = high - low + (0 if o["log"] == "none" else 1e-5)
    if o["use_energy"]:
        column = np.full((len(error), 1), 1e-5)
        error = np.concatenate([error, column] if o["htk_compat"] else [column, error], axis=1)
    if o["normalize"] == "fixed":
        return error / np.abs(np.asarray(o["norm_std"] or 1.0))
    if o["normalize"] == "none" or not len(error):
        return error
    rows = definition.logarithm(o, bands[0])
    axis = 0 if o["normalize"] == "per_feature" else None
    mean = error.mean(axis=axis, keepdims=True)  # how far mean and deviation are moved
    if not o["norm_variance"]:
        return error + mean
    deviation = np.maximum(rows.std(axis=axis, keepdims=True), 1e-5)
    size = np.abs(rows - rows.mean(axis=axis, keepdims=True)) / deviation
    return (error + mean * (1 + size)) / deviation


def stacked(rows, frames, hop=None, left=0, tail="drop", order="frame_major", **_):
    hop = hop or frames
    count = (len(rows) + left - frames) // hop + 1 if tail == "drop" else -(-len(rows) // hop)
    at = np.clip(hop * np.arange(count)[:, None] - left + np.arange(frames), 0, len(rows) - 1)
    out = rows[at]
    return (out if order == "frame_major" else out.transpose(0, 2, 1)).reshape(count, -1)


def length(text, rate):
    text = str(text)
    return int(text[:-2]) * rate // 1000 if text.endswith("ms") else int(text[:-1]) * rate if text.endswith("s") else int(text)


def conditioned(stage, options, x, rate):
    """fit_samples and normalize_samples, as far as the cases use them."""
    if stage == "normalize_samples":
        return (x - x.mean()) / np.sqrt(x.var() + options.get("eps", 1e-7))
    left, right, extra = (length(options.get(key, 0), rate) for key in ("pad_left", "pad_right", "extra"))
    if "length" in options:
        whole = length(options["length"], rate)
        if options.get("pad_mode", "constant") == "constant":
            return np.pad(x, (0, max(0, whole - len(x))))[:whole]
        copies = np.tile(x, whole // len(x) + 1)[:whole]
        if options["pad_mode"] == "repeat_whole":
            copies[whole // len(x) * len(x):] = 0
        return copies
    multiple = length(options.get("multiple", 1), rate)
    return np.pad(x, (left, extra + -(len(x) + extra) % multiple + right))


def error_of(name, x):
    """The error allowed in each value, before the part in proportion to it."""
    nodes, (rate, _, _) = front_end_cases.CASES[name], front_end_libraries.FRONT_ENDS[name]
    if "samples" in nodes:
        return None
    options = {"sample_rate": rate, **front_end_cases.mel_options(nodes)}
    o = option_table.resolve({k: v for k, v in options.items() if k != "filters"})
    o["filters"] = getattr(front_end_cases, options["filters"] + "_filters")() if "filters" in options else []
    before, after = front_end_cases.around(nodes["mel"]["preset"]) if "preset" in nodes["mel"] else ([], [])
    names = list(nodes)
    written = [(n, nodes[n]) for n in names[:names.index("mel")]]
    heard = len(x)  # what follows is the window's padding
    for stage, options in [*written, *before]:
        if stage == "segment":
            window = length(options["length"], rate)
            x = np.pad(x, (0, -len(x) % window))
        elif stage == "normalize_samples":
            x = np.concatenate([conditioned(stage, options, x[:heard], rate), x[heard:]])
        else:
            x = conditioned(stage, options, x, rate)
            heard = len(x)
    error = np.concatenate([error_of_bands(o, part) for part in x.reshape(-1, window)]) if "segment" in nodes else error_of_bands(o, x)
    for stage, options in [*after, *((n, nodes[n]) for n in names[names.index("mel") + 1:])]:
        if stage == "mfcc":
            bands = error if not o["use_energy"] else error[:, 1:]
            size = np.abs(scipy.fft.dct(np.eye(bands.shape[1]), type=2, norm="ortho", axis=1)[:, :options["n_mfcc"]])
            lifter = options.get("lifter", 0)
            error = bands @ size * (1 + lifter / 2)
        elif stage == "deltas":
            error = np.concatenate([error] + [np.full_like(error, error.max(initial=0))] * options["order"], axis=1)
        elif stage == "stack":
            error = stacked(error, **options)
        elif stage == "fit_rows":
            up = -1 if options.get("rest", "fill") == "fill" else 1
            rows = options.get("rows") or up * (up * (len(error) + options.get("extra", 0)) // options["multiple"]) * options["multiple"]
            error = np.concatenate([error, np.zeros((max(0, rows - len(error)), error.shape[1]))])[:rows]
        elif stage == "sliding_cmvn":
            error = 2 * error + 1e-6
    return error


def judged(name, x):
    """Rows by the library, and the bound of each value."""
    _, _, function = front_end_libraries.FRONT_ENDS[name]
    x = x.astype(np.float64) / 32768
    theirs = flat(function(x))
    if not np.isfinite(theirs).all():
        raise ValueError("values that are not finite")
    error = error_of(name, x)
    bound = 2e-7 * np.abs(theirs) + (1e-7 if error is None else 0)
    if error is not None:  # rows that the library adds for a batch are zero
        rows = min(len(error), len(theirs))
        bound[:rows] += error[:rows]
    return theirs, np.maximum(bound, 1e-12)


def difference(ours, theirs, bound):
    """The largest error in bounds, and the number of rows of zeros that only the library has."""
    extra = len(theirs) - len(ours)
    if ours.shape[1:] != theirs.shape[1:] or extra < 0 or np.any(theirs[len(ours):]):
        return np.inf, extra
    if not len(ours):
        return 0.0, extra
    return float((np.abs(ours - theirs[:len(ours)]) / bound[:len(ours)]).max()), extra


def letter(bound):
    place = int(np.ceil(np.log2(bound))) + 20
    return chr(ord("A") + min(max(place, 0), 57))


def spread(count, of):
    return sorted({int(round(i)) for i in np.linspace(0, of - 1, count)})


def chosen_rows(count, samples, whole):
    """Of a window that is filled up, most are where the recording is."""
    heard = min(count, max(1, round(count * samples / whole) + 2)) if whole else count
    return sorted({*spread(ROWS - 1, heard), count - 1})


def case(name):
    rate, source, _ = front_end_libraries.FRONT_ENDS[name]
    nodes = front_end_cases.CASES[name]
    out = dict(source=source, rate=rate, nodes=nodes, masked=int(name in MASKED), columns=[], signals={})
    for signal, make in front_end_signals.SIGNALS.items():
        x = make()
        try:
            theirs, bound = judged(name, x)
        except Exception as error:  # pylint: disable=broad-except
            out["signals"][signal] = dict(refused=f"{type(error).__name__}: {error}"[:60])
            continue
        out["columns"] = spread(COLUMNS, theirs.shape[1])
        window = str(nodes.get("segment", {}).get("length", ""))
        rows = chosen_rows(len(theirs), len(x), int(window[:-1]) * rate if window.endswith("s") else 0) if len(theirs) else []
        at = np.ix_(rows, out["columns"])
        values = [float(f"{v:.8g}") for v in np.ravel(theirs[at])]
        out["signals"][signal] = dict(rows=[len(theirs), *rows], values=[0.0 if v == 0 else v for v in values],
                                      bounds="".join(letter(b) for b in np.ravel(bound[at])))
    return out


def compare(paths):
    import melflow
    import soundfile
    signals = {name: make() for name, make in front_end_signals.SIGNALS.items()}
    signals.update({path: soundfile.read(path, dtype="int16")[0] for path in paths})
    verdicts = {}
    for name in front_end_libraries.FRONT_ENDS:
        if name not in front_end_cases.CASES:
            verdicts[name] = "refused"
            print(f"| {name} | refused | | no option yet |", flush=True)
            continue
        worst, where, refused, extra = 0.0, "", [], 0
        try:
            of = features(name)
        except melflow.ConfigError as error:
            verdicts[name] = "refused"
            print(f"| {name} | refused | | {str(error)[:200]} |", flush=True)
            continue
        rate = front_end_libraries.FRONT_ENDS[name][0]
        for signal, x in signals.items():
            try:
                theirs, bound = judged(name, x)
            except Exception as error:  # pylint: disable=broad-except
                refused.append(f"{signal}: {type(error).__name__} {str(error)[:60]}")
                continue
            try:
                ours = flat(of(x, rate)).astype(np.float64)
            except melflow.RunError as error:
                if np.any(theirs):
                    worst, where = np.inf, f"{signal}: {error}"
                continue
            ratio, more = difference(ours, theirs, bound)
            extra = max(extra, more)
            if not ratio <= worst:
                worst, where = ratio, signal + ("" if np.isfinite(ratio) else f" {ours.shape} {theirs.shape}")
        verdicts[name] = "exact" if worst <= 1 else "OTHER"
        print(f"| {name} | {verdicts[name]} | {worst:.3g} | {where if worst > 0.5 else ''}"
              f"{f' +{extra} masked' if extra else ''}{f' library refuses {len(refused)}: {refused[0]}' if refused else ''} |", flush=True)
    for verdict in sorted(set(verdicts.values())):
        print(verdict, sum(v == verdict for v in verdicts.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.compare:
        return compare(given.names)
    made = json.loads(PATH.read_text(encoding="utf-8")) if given.names else {}
    for name in given.names or front_end_cases.CASES:
        made[name] = case(name)
        print(name, flush=True)
    lines = [f"{json.dumps(name)}:{json.dumps(made[name], separators=(',', ':'))}" for name in front_end_cases.CASES if name in made]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return print(f"{PATH.name}: {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    sys.exit(main())
