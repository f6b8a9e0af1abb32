#!/usr/bin/env python3
"""Plants defects in real recordings and looks whether `quality` finds them, and what it finds in the recordings as they are.

In:  planted_defects.py MELFLOW AUDIO [--count 10000] [--seed 1] [--kinds REGEX] [--processes 2] [--json FILE] [--keep FOLDER]
     AUDIO: a folder with unpacked packages of Debian (tests/support/fetch_audio.sh; PACKAGES below). Needs numpy, soundfile, h5py and, for
     G.722, FFmpeg's program.
Out: two tables, as docs/quality.md has them: of each kind of defect and strength how many were found, with the right place and value; and of
     the same recordings without it, how many of each kind are found, how many of these NumPy confirms from the samples (CONFIRMED), how many are on
     the list of true ones and of those only an ear could decide (planted_defects.json: kind, recording, "true" or "ear", what was seen in its
     samples or spectrum), and how many are false. Exit status 1 where fewer than 99 % of the clear ones are
     found or right, or more than 0.1 % of the others are false.
     --json: also what each of these recordings was and measured. --keep: the WAV files of what was missed or false go there.

A recording is a file of the packages, or 6 s of one that is longer than 20 s, as 16 bits. Each gets one defect, the kinds in turn; a kind passes over
recordings in which it could not be told, such as a click in a burst (`fits`). What is right is computed here, by NumPy, from the samples.
"""

import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import soundfile

PACKAGES = ("alsa-utils asterisk-core-sounds-en-wav asterisk-core-sounds-es-wav asterisk-core-sounds-fr-wav asterisk-core-sounds-it-wav "
            "asterisk-core-sounds-ru-wav asterisk-core-sounds-en-g722 asterisk-moh-opsound-wav fillets-ng-data-cs fillets-ng-data-nl klettres-data "
            "sonic-pi-samples sound-icons asc-music wesnoth-1.16-music").split()
PIECE, LONGEST, BATCH = 6, 20, 300  # [s], [s], recordings
PIPELINE = """version: 1
graph:
  files: {stage: file_list, root: "${DATA}", manifest: "${DATA}/list.jsonl", columns: [text]}
  read: {stage: disk_read, from: files}
  decode: {stage: decode, from: read, truncated: keep}
  measure: {stage: quality, from: decode}
  resample: {stage: resample, from: measure, rate: 8kHz, quality: quick}
  mel: {stage: mel, from: resample, sample_rate: 8000, n_fft: 256, hop: 256, n_mels: 4, power: 1}
  write: {stage: hdf5_write, from: mel, path: "${OUT}", overwrite: true}
"""
KINDS = {}
STRENGTHS = ("weak", "clear", "gross")


# ---- recordings


def read_audio(path):
    """Returns samples [frames, channels] of 16 bits and the rate."""
    if path.suffix == ".g722":
        raw = subprocess.run(["ffmpeg", "-v", "error", "-f", "g722", "-i", path, "-f", "s16le", "-"], capture_output=True, check=True).stdout
        return np.frombuffer(raw, "<i2").reshape(-1, 1), 16000
    samples, rate = soundfile.read(path, always_2d=True)  # as floating point: decoders' overshoots wrap around in 16 bits
    return as_int16(samples), rate


def files(folder):
    """Yields the path of each file and how many recordings it makes: 1, or pieces."""
    for package in PACKAGES:
        here = folder / package
        if not here.is_dir():
            sys.exit(f"{here} is missing; bash tests/support/fetch_audio.sh {folder} {package}")
        for path in sorted(here.rglob("*")):
            if path.suffix not in (".wav", ".ogg", ".flac", ".g722") or not path.is_file() or path.is_symlink():
                continue
            if path.suffix == ".g722":
                seconds = path.stat().st_size / 8000
            else:
                try:
                    seconds = soundfile.info(path).duration
                except soundfile.LibsndfileError:
                    continue
            if seconds >= 0.5:
                yield path, 1 if seconds <= LONGEST else int(seconds // PIECE)


def recordings(folder, chosen):
    """Yields name, samples and rate of the chosen recordings, by their numbers."""
    number = 0
    for path, count in files(folder):
        mine = [k for k in range(count) if number + k in chosen]
        number += count
        if not mine:
            continue
        samples, rate = read_audio(path)
        name = str(path.relative_to(folder))
        for k in mine:
            if count == 1:
                yield name, samples, rate
            else:
                yield f"{name}#{k * PIECE}", samples[k * PIECE * rate:(k + 1) * PIECE * rate], rate


def as_float(x):
    return x.astype(np.float64) / 32768


def as_int16(y):
    return np.clip(np.round(y * 32768), -32768, 32767).astype("<i2")


def rms(y):
    return math.sqrt(np.mean(np.square(y))) if y.size else 0.0


def stereo(x):
    return np.repeat(x[:, :1], 2, axis=1)


def noise(random, shape, db):
    return random.normal(0, 10 ** (db / 20), shape)


def wav(path, samples, rate):
    soundfile.write(path, samples, rate, subtype="PCM_16")


# ---- places where a defect can be told


def loud_places(x, rate, seconds, level):
    """Begins of stretches whose edges (4 ms on either side) have an rms of `level` or more, and whose inside is a sound, too."""
    length, edge = max(1, int(seconds * rate)), max(1, int(0.004 * rate))
    power = np.cumsum(np.concatenate([[0], np.square(as_float(x)).mean(axis=1)]))
    places = np.arange(edge + rate // 50, len(x) - length - edge - rate // 50, max(1, rate // 1000))
    if not len(places):
        return places
    before = (power[places] - power[places - edge]) / edge
    after = (power[places + length + edge] - power[places + length]) / edge
    # The halves of the edges next to the stretch are what `dropouts` looks at.
    half = edge // 2
    near = np.minimum(power[places] - power[places - half], power[places + length + half] - power[places + length]) / half
    return places[np.minimum(np.minimum(before, after), near) >= level * level]


def second_difference(y):
    out = np.zeros(len(y))
    out[2:] = np.abs(y[2:] - 2 * y[1:-1] + y[:-2])
    return out


def smooth_places(x, rate, most):
    """Places around which, to 12 ms, all second differences of all channels are at most `most`; and what they are there."""
    d = np.max([second_difference(c) for c in as_float(x).T], axis=0)
    width = int(0.024 * rate)
    if len(d) < 3 * width:
        return np.zeros(0, int), d[:0]
    windows = np.lib.stride_tricks.sliding_window_view(d, width)[::max(1, rate // 500)].max(axis=1)
    at = np.arange(len(windows)) * max(1, rate // 500) + width // 2
    good = (windows <= most) & (at > rate // 50) & (at < len(d) - rate // 50)
    return at[good], windows[good]


# ---- kinds of defects
#
# Each returns what is written, and what is true of it: {measure: (value, tolerance)}. `found`: the condition that a recording with the defect fulfils.


def kind(name, figures, found, fits=lambda x, rate: True, among=""):
    def add(plant):
        KINDS[name] = dict(name=name, figures=figures, found=found, fits=fits, among=among, plant=plant)
        return plant

    return add


def is_sound(x, rate):
    return rms(as_float(x)) >= 0.01


def clipped_truth(y, rate):
    """Runs of 3 or more samples at the highest or lowest value of a channel: count, share, first."""
    runs = samples = 0
    first = None
    for c in y.T.astype(np.int32):
        for side in (np.minimum(c, 32767), np.minimum(-c, 32767)):
            top = side.max()
            if top < 0.25 * 32768:
                continue
            edges = np.flatnonzero(np.diff(np.concatenate([[0], (side == top).astype(np.int8), [0]])))
            for begin, end in zip(edges[::2], edges[1::2]):
                if end - begin >= 3:
                    runs += 1
                    samples += end - begin
                    first = begin if first is None else min(first, begin)
    out = {"clipped_runs": (runs, 0), "clipped_share": (samples / y.size, 1e-7)}
    if first is not None:
        out["clipped_at"] = (first / rate, 1e-4)
    return out


def clip(x, share, gain):
    y = as_float(x)
    ceiling = np.quantile(np.abs(y), 1 - share)
    return as_int16(np.clip(y / ceiling, -1, 1) * gain)


CLIPPED = ("0.1 %", "2 %", "10 % of the samples beyond the limit")


@kind("clipping at full scale", CLIPPED, ("clipped_share", ">", 0.0001), is_sound)
def plant_clipping(x, rate, strength, random):
    y = clip(x, (0.001, 0.02, 0.1)[strength], 1)
    return y, clipped_truth(y, rate)


@kind("clipping, then 6 dB down", CLIPPED, ("clipped_share", ">", 0.0001), is_sound)
def plant_clipping_below(x, rate, strength, random):
    y = clip(x, (0.001, 0.02, 0.1)[strength], 0.5)
    return y, clipped_truth(y, rate)


@kind("offset", ("0.005", "0.03", "0.1"), ("dc", ">", 0.01), lambda x, rate: np.max(np.abs(x.astype(int))) < 0.85 * 32768)
def plant_dc(x, rate, strength, random):
    y = as_int16(as_float(x) + (0.005, 0.03, 0.1)[strength])
    return y, {"dc": (np.max(np.abs(as_float(y).mean(axis=0))), 1e-6)}


def silence_truth(y, rate, floor):
    """The longest stretch of frames of 10 ms below a floor: seconds and begin."""
    frame = rate // 100
    power = np.square(as_float(y)).mean(axis=1)
    whole = len(power) // frame
    below = np.square(as_float(y[:whole * frame])).mean(axis=1).reshape(whole, frame).mean(axis=1) < 10 ** (floor / 10)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], below.astype(np.int8), [0]])))
    if not len(edges):
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    longest = int(np.argmax(lengths))
    return lengths[longest] * frame / rate, edges[2 * longest] * frame / rate


def with_pause(x, rate, seconds, random, db=None):
    at = int(random.integers(len(x) // 4, 3 * len(x) // 4))
    pause = np.zeros((int(seconds * rate), x.shape[1])) if db is None else noise(random, (int(seconds * rate), x.shape[1]), db)
    return np.concatenate([x[:at], as_int16(pause), x[at:]])


@kind("dead air", ("1 s", "3 s", "10 s of zeros"), ("silent_longest", ">", 2), is_sound)
def plant_silence(x, rate, strength, random):
    y = with_pause(x, rate, (1, 3, 10)[strength], random)
    longest, at = silence_truth(y, rate, -80)
    return y, {"silent_longest": (longest, 0.011), "silent_at": (at, 1e-3)}


@kind("a long pause", ("2 s", "7 s", "20 s at -60 dB"), ("quiet_longest", ">", 5), is_sound)
def plant_pause(x, rate, strength, random):
    y = with_pause(x, rate, (2, 7, 20)[strength], random, -60)
    return y, {"quiet_longest": (silence_truth(y, rate, -50)[0], 0.011)}


@kind("dead channel", ("noise at -75 dB", "at -90 dB", "zeros"), ("dead_channels", ">", 0), is_sound)
def plant_dead(x, rate, strength, random):
    y = stereo(x)
    which = int(random.integers(2))
    y[:, which] = 0 if strength == 2 else as_int16(noise(random, len(x), (-75, -90)[strength]))
    return y, {"dead_channels": (1, 0)}


@kind("equal channels", ("other by noise 45 dB below", "60 dB below", "the same"), ("equal_channels", ">", 0), is_sound)
def plant_equal(x, rate, strength, random):
    y = as_float(stereo(x))
    if strength < 2:
        y[:, 1] += noise(random, len(x), (-45, -60)[strength]) * rms(y[:, 0])
    return as_int16(y), {"equal_channels": (1, 0)}


@kind("inverted channel", ("noise 6 dB below", "20 dB below", "none"), ("inverted_channels", ">", 0), is_sound)
def plant_inverted(x, rate, strength, random):
    y = as_float(stereo(x))
    y[:, 1] *= -1
    if strength < 2:
        y[:, 1] += noise(random, len(x), (-6, -20)[strength]) * rms(y[:, 0])
    return as_int16(y), {"inverted_channels": (1, 0)}


DROPOUT = (0.0012, 0.010, 0.050)


@kind("dropout", ("1.2 ms", "10 ms", "50 ms of zeros in a sound of -34 dB or more"), ("dropouts", ">", 0),
      lambda x, rate: len(loud_places(x, rate, DROPOUT[2], 0.02)) > 0)
def plant_dropout(x, rate, strength, random):
    length = max(int(DROPOUT[strength] * rate), 17)
    at = int(random.choice(loud_places(x, rate, length / rate, 0.02)))
    y = x.copy()
    y[at:at + length] = 0
    return y, {"dropouts": (1, 0), "dropout_at": (at / rate, 2.5 / rate)}


REPEAT = (0.006, 0.020, 0.100)


@kind("repeated stretch", ("6 ms", "20 ms", "100 ms of a sound of -40 dB or more, twice"), ("repeats", ">", 0),
      lambda x, rate: len(loud_places(x, rate, 2 * REPEAT[2], 0.01)) > 0)
def plant_repeat(x, rate, strength, random):
    length = int(REPEAT[strength] * rate)
    at = int(random.choice(loud_places(x, rate, 2 * REPEAT[strength], 0.01)))
    y = x.copy()
    y[at + length:at + 2 * length] = y[at:at + length]
    return y, {"repeats": (1, 0), "repeat_at": ((at + length) / rate, 0.002)}


CLICK = (6, 16, 40)


def plant_at(x, rate, strength, random, shape, share):
    """Adds a shape whose second difference is so many times that of the 12 ms around, and 0.04 at least."""
    places, around = smooth_places(x, rate, 0.9 / CLICK[strength])
    which = int(random.integers(len(places)))
    at = int(places[which])
    height = max(CLICK[strength] * around[which], 0.04) * share
    y = as_float(x)
    tail = shape(len(y) - at, rate) * height
    if np.max(np.abs(y[at, :] + tail[0])) > 0.999:
        tail = -tail
    y[at:] += tail[:, None]
    return as_int16(y), {"clicks": (1, 0), "click_at": (at / rate, 0.0021)}


@kind("click", ("6", "16", "40 times the second differences around, at least 0.04; one sample"), ("clicks", ">", 0),
      lambda x, rate: len(smooth_places(x, rate, 0.9 / CLICK[2])[0]) > 0)
def plant_click(x, rate, strength, random):
    return plant_at(x, rate, strength, random, lambda n, rate: np.eye(1, n)[0], 0.5)


@kind("jump", ("6", "16", "40 times, as above; a step that fades in 20 ms"), ("clicks", ">", 0),
      lambda x, rate: len(smooth_places(x, rate, 0.9 / CLICK[2])[0]) > 0)
def plant_jump(x, rate, strength, random):
    return plant_at(x, rate, strength, random, lambda n, rate: np.exp(-np.arange(n) / (0.02 * rate)), 1)


@kind("hum", ("25 dB", "12 dB", "3 dB below the recording; 50 or 60 Hz and multiples to the fifth, as 1/m"), ("hum", ">", 9),
      lambda x, rate: len(x) >= 3 * rate and is_sound(x, rate))
def plant_hum(x, rate, strength, random):
    hz = (50, 60)[int(random.integers(2))]
    t = np.arange(len(x)) / rate
    line = sum(np.sin(2 * np.pi * m * hz * t + random.uniform(0, 6.28)) / m for m in range(1, 6))
    y = as_float(x)
    y += (line * rms(y) * 10 ** (-(25, 12, 3)[strength] / 20) / rms(line))[:, None]
    y *= min(1, 0.99 / np.max(np.abs(y)))
    return as_int16(y), {"hum_hz": (hz, 0)}


def has_highs(x, rate):
    """Whether the highest tenth of the spectrum has anything, 10 dB above the rounding or more."""
    y = as_float(x)[:, 0]
    if len(y) < 2 * 2048 or not is_sound(x, rate):
        return False
    frames = y[:len(y) // 2048 * 2048].reshape(-1, 2048) * np.hanning(2048)
    power = np.mean(np.square(np.abs(np.fft.rfft(frames))), axis=0)
    rounding = 2048 * 0.375 / 12 / 32768 ** 2
    least = max(30 * rounding, 1e-7 * power.max())
    return all(np.median(part) > least for part in np.array_split(power[200:-10], 40))


BAND = (0.9, 0.7, 0.4)


@kind("band limit", ("0.9", "0.7", "0.4 of half the rate; above it nothing"), ("band", "<", 0.8), has_highs)
def plant_band(x, rate, strength, random):
    spectrum = np.fft.rfft(as_float(x), axis=0)
    limit = BAND[strength] * rate / 2
    spectrum[np.fft.rfftfreq(len(x), 1 / rate) > limit] = 0
    y = np.fft.irfft(spectrum, len(x), axis=0)
    return as_int16(y * min(1, 0.99 / np.max(np.abs(y)))), {"bandwidth": (limit, 0.02 * rate / 2)}


@kind("noise", ("15 dB", "3 dB", "-5 dB below the sound; white, Gaussian"), ("snr", "<", 10),
      lambda x, rate: is_sound(x, rate) and len(x) >= rate, among="core-sounds|fillets|klettres")
def plant_noise(x, rate, strength, random):
    db = (15, 3, -5)[strength]
    y = as_float(x)
    y += noise(random, y.shape, -db) * rms(y)
    y *= min(1, 0.99 / np.max(np.abs(y)))
    return as_int16(y), {"snr": (db, 6)}


USUAL = (8000, 11025, 16000, 22050, 44100, 48000)


def is_usual(x, rate):
    return rate in USUAL


@kind("rate against name", ("the next usual rate", "twice or half", "44.1 or 48 kHz for 8, and 8 for others"), ("rate_ratio", "not", 0.01), is_usual)
def plant_rate(x, rate, strength, random):
    if strength == 0:
        said = USUAL[USUAL.index(rate) + (1 if rate < 48000 else -1)]
    elif strength == 1:
        said = rate * 2 if 2 * rate in USUAL else rate // 2
    else:
        said = 48000 if rate < 22050 else 8000
    return x, {"rate_ratio": (rate / said, 1e-3), "name": f"{said / 1000:g}kHz"}


@kind("duration against list", ("3 %", "15 %", "100 % more in the list"), ("length_ratio", "not", 0.05))
def plant_duration(x, rate, strength, random):
    said = len(x) / rate * (1.03, 1.15, 2)[strength]
    return x, {"length_ratio": (len(x) / rate / said, 1e-3), "duration": said}


@kind("file cut off", ("0.5 %", "10 %", "60 % of its bytes missing"), ("lost_share", ">", 0.001))
def plant_cut(x, rate, strength, random):
    missing = (0.005, 0.1, 0.6)[strength]
    kept = max(1, int(len(x) * (1 - missing)))
    return x, {"lost_share": (1 - kept / len(x), 2e-3), "bytes": 44 + kept * 2 * x.shape[1]}


@kind("text of another", ("twice", "5 times", "20 times as long as it can be said"), ("seconds_per_character", "not in", (0.03, 0.25)))
def plant_text(x, rate, strength, random):
    seconds = len(x) / rate
    count = max(1, round(seconds / 0.07)) * (2, 5, 20)[strength]
    return x, {"seconds_per_character": (seconds / count, 1e-4), "text": "ä" * count}


# ---- defects that recordings have of themselves
#
# Whether NumPy finds the defect in the samples, by a rule of its own.


def levels(x, rate):
    """Levels of frames of 10 ms [dB], without their offset."""
    frame = rate // 100
    whole = len(x) // frame
    y = as_float(x[:whole * frame]).reshape(whole, frame, -1)
    return 10 * np.log10(y.var(axis=1).mean(axis=1) + 1e-12)


def is_noisy(x, rate):
    """Whether levels of 10 ms lie within 20 dB, or the mean is at most 16 dB (6 more than the limit) above the tenth percentile."""
    quiet, loud = np.percentile(levels(x, rate), (10, 90))
    power = 10 ** (levels(x, rate) / 10)
    noise = max(1e-12, np.percentile(power, 10))
    return loud - quiet < 20 or 10 * np.log10(max(1e-12, power.mean() - noise) / noise) <= 16


def correlation(x):
    if x.shape[1] != 2:
        return 0
    a, b = as_float(x).T
    return np.dot(a, b) / max(1e-20, math.sqrt(np.dot(a, a) * np.dot(b, b)))


def difference(x):
    a, b = as_float(x[:, :1]), as_float(x[:, -1:])
    return rms(a - b) / max(1e-20, rms(x / 32768))


def is_repeated(x, rate, own):
    """Whether a stretch of 5 to 500 ms from the place that was found, no silence, equals the one before, sample by sample."""
    y = x[:, 0]
    at = round(own["repeat_at"] * rate)
    for lag in range(max(8, rate // 200), min(at, rate // 2) + 1):
        if np.array_equal(y[at:at + 8], y[at - lag:at - lag + 8]) and np.array_equal(y[at:at + lag], y[at - lag:at]):
            return np.ptp(y[at:at + lag].astype(int)) > 4
    return False


def share_above(x, rate, share):
    """The mean of the powers above a share of half the rate, beside that of the strongest frequency."""
    y = as_float(x)[:, 0]
    frames = y[:len(y) // 2048 * 2048].reshape(-1, 2048) * np.hanning(2048)
    power = np.mean(np.square(np.abs(np.fft.rfft(frames))), axis=0)
    return power[int(share * 1024) + 8:].mean() / max(1e-20, power.max()), power[int(share * 1024) + 8:].mean()


CONFIRMED = {
    "clipping at full scale": lambda x, rate, own: clipped_truth(x, rate)["clipped_share"][0] > 0.0001,
    "clipping, then 6 dB down": lambda x, rate, own: clipped_truth(x, rate)["clipped_share"][0] > 0.0001,
    "offset": lambda x, rate, own: np.max(np.abs(as_float(x).mean(axis=0))) > 0.01,
    "dead air": lambda x, rate, own: silence_truth(x, rate, -80)[0] > 2,
    "a long pause": lambda x, rate, own: silence_truth(x, rate, -50)[0] > 5,
    "dead channel": lambda x, rate, own: np.min(np.square(as_float(x)).mean(axis=0)) < 1e-8,
    "equal channels": lambda x, rate, own: x.shape[1] == 2 and difference(x) < 10 ** -2.4,
    "inverted channel": lambda x, rate, own: correlation(x) < -0.9,
    "repeated stretch": is_repeated,
    "band limit": lambda x, rate, own: share_above(x, rate, 0.8)[0] < 2e-8 or share_above(x, rate, 0.8)[1] < 15 * 2048 * 0.375 / 12 / 32768 ** 2,
    "noise": lambda x, rate, own: is_noisy(x, rate),
}


# ---- running and judging


def column(values, name, rate):
    return values["bandwidth"] / (rate / 2) if name == "band" else values[name]


def is_found(what, values, rate):
    name, how, limit = what["found"]
    v = column(values, name, rate)
    if not np.isfinite(v):
        return False
    if how == "not":
        return abs(v - 1) > limit
    if how == "not in":
        return not limit[0] <= v <= limit[1]
    return v > limit if how == ">" else v < limit


def is_right(value, truth):
    return abs(value - truth[0]) <= truth[1] + 1e-6 * abs(truth[0])


def measured(melflow, folder, lines):
    (folder / "list.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "pipeline.yaml").write_text(PIPELINE)
    out = folder / "out.h5"
    done = subprocess.run([melflow, "run", folder / "pipeline.yaml", "--var", f"DATA={folder}", "--var", f"OUT={out}", "--no-progress", "-q"],
                          capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"melflow: {done.stderr}")
    with h5py.File(out) as f:
        paths = f["files/path"].asstr()[:]
        columns = {name[8:]: f["files"][name][:] for name in f["files"] if name.startswith("quality.")}
    out.unlink()
    return {path: {name: float(values[i]) for name, values in columns.items()} for i, path in enumerate(paths)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("melflow")
    parser.add_argument("audio", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kinds", help="a regular expression: only kinds whose name it finds")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    kinds = kinds_of(options)
    total = sum(pieces for _, pieces in files(options.audio))
    chosen = set(np.random.default_rng(options.seed).permutation(total)[:options.count].tolist())
    print(f"{total} recordings, {len(chosen)} of them chosen", file=sys.stderr, flush=True)

    cells = collections.defaultdict(collections.Counter)
    rows, false = [], collections.defaultdict(list)
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        waiting = collections.deque()

        def take():
            of_batch, rows_of_batch, false_of_batch = waiting.popleft().result()
            for cell, counts in of_batch.items():
                cells[cell] += counts
            rows.extend(rows_of_batch)
            for name, ones in false_of_batch.items():
                false[name] += ones
            print(".", end="", file=sys.stderr, flush=True)

        for number, batch in enumerate(batches(recordings(options.audio, chosen))):
            waiting.append(pool.submit(judge, options, batch, number))
            if len(waiting) > options.processes:
                take()
        while waiting:
            take()
    ok = report(kinds, cells, false, len(chosen))
    if options.json:
        options.json.write_text(json.dumps({"planted": rows, "untouched": false}, indent=1))
    sys.exit(0 if ok else 1)


def batches(of):
    batch = []
    for recording in of:
        batch.append(recording)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def kinds_of(options):
    return [k for k in KINDS.values() if not options.kinds or re.search(options.kinds, k["name"])]


def judge(options, batch, number):
    """Plants, measures and compares the recordings of a batch: counts by kind and strength, what was missed or wrong, and what is found untouched."""
    kinds = kinds_of(options)
    random = np.random.default_rng([options.seed, number])
    turn, cells, rows, false = collections.Counter(), collections.defaultdict(collections.Counter), [], collections.defaultdict(list)
    kinds = kinds[number % len(kinds):] + kinds[:number % len(kinds)]
    with tempfile.TemporaryDirectory(dir=options.keep and options.keep.parent) as temp:
        folder = pathlib.Path(temp)
        lines, planted = [], {}
        for i, (name, x, rate) in enumerate(batch):
            wav(folder / f"{i}.wav", x, rate)
            lines.append({"audio_filepath": f"{i}.wav", "duration": len(x) / rate, "text": "a" * max(1, round(len(x) / rate / 0.07))})
            # The kind of which there are fewest, of those that can be told in this recording.
            for what in sorted(kinds, key=lambda k: sum(turn[k["name"], s] for s in range(3))):
                if re.search(what["among"], name) and what["fits"](x, rate):
                    break
            else:
                continue
            strength = min(((s + number) % 3 for s in range(3)), key=lambda s: turn[what["name"], s])
            turn[what["name"], strength] += 1
            y, truth = what["plant"](x, rate, strength, random)
            said = truth.pop("name", None)
            file = f"{i}_planted{'_' + said if said else ''}.wav"
            wav(folder / file, y, rate)
            if size := truth.pop("bytes", None):
                with open(folder / file, "r+b") as f:
                    f.truncate(size)
            planted[i] = (file, what, strength, truth)
            lines.append({"audio_filepath": file, "duration": truth.pop("duration", len(y) / rate),
                          "text": truth.pop("text", "a" * max(1, round(len(y) / rate / 0.07)))})
        values = measured(options.melflow, folder, lines)
        for i, (name, x, rate) in enumerate(batch):
            own = values[f"{i}.wav"]
            for what in kinds:
                if re.search(what["among"], name) and is_found(what, own, rate):
                    confirm = CONFIRMED.get(what["name"])
                    false[what["name"]].append({"name": name, "rate": rate, "confirmed": bool(confirm and confirm(x, rate, own)), **own})
                    if not false[what["name"]][-1]["confirmed"]:
                        keep(options, folder / f"{i}.wav", f"untouched {what['name']} {name}")
            if i not in planted:
                continue
            file, what, strength, truth = planted[i]
            got = values[file]
            cell = cells[what["name"], strength]
            found = is_found(what, got, rate)
            had_it = is_found(what, own, rate)
            wrong = [m for m, t in truth.items() if not is_right(got[m], t)]
            cell["all"] += 1
            cell["found"] += found
            # Where the recording had such a defect before, the first one and the number are not the planted one's.
            if found and not had_it:
                cell["judged"] += 1
                cell["right"] += not wrong
            if not found or (wrong and not had_it):
                rows.append({"kind": what["name"], "strength": STRENGTHS[strength], "name": name, "rate": rate, "found": bool(found), "wrong": wrong,
                             "truth": truth, "got": got})
                if strength > 0:
                    keep(options, folder / file, f"{STRENGTHS[strength]} {what['name']} {name}")
    return cells, rows, false


def keep(options, path, name):
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        (options.keep / (re.sub(r"[^\w.#-]+", "_", name)[-150:] + ".wav")).write_bytes(path.read_bytes())


def report(kinds, cells, false, count):
    def share(n, of):
        return f"{100 * n / of:.1f} %" if of else "-"

    listed = {(of, name): verdict for of, name, verdict, _ in json.loads(LISTED.read_text())}
    ok = True
    print("| defect | found where | " + " | ".join(f"{s}: found, right" for s in STRENGTHS) + " |")
    print("|---|---|" + "---|" * len(STRENGTHS))
    for what in kinds:
        row = []
        for s in range(3):
            cell = cells[what["name"], s]
            row.append(f"{share(cell['found'], cell['all'])}, {share(cell['right'], cell['judged'])} of {cell['all']}")
            if s == 1 and cell["all"] and (cell["found"] < 0.99 * cell["all"] or cell["right"] < 0.99 * cell["judged"]):
                ok = False
                row[-1] += " ✗"
        name, how, limit = what["found"]
        print(f"| {what['name']} | `{name}` {how} {limit} | " + " | ".join(row) + " |")
    print(f"\n| defect | found in the {count} recordings as they are | confirmed | on the list | only by ear | false |\n|---|---|---|---|---|---|")
    for what in kinds:
        here = false[what["name"]]
        of = "click" if what["name"] == "jump" else what["name"]
        verdicts = collections.Counter("confirmed" if one["confirmed"] else listed.get((of, one["name"]), "false") for one in here)
        ok &= verdicts["false"] <= 0.001 * count
        print(f"| {what['name']} | {len(here)} | {verdicts['confirmed']} | {verdicts['true']} | {verdicts['ear']} | "
              f"{verdicts['false']} ({100 * verdicts['false'] / count:.2f} %) |")
    return ok


LISTED = pathlib.Path(__file__).with_suffix(".json")

if __name__ == "__main__":
    main()
