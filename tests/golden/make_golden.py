"""Mel spectrograms of real recordings by librosa and torchaudio, for mel_golden_test.cpp.

In:  AUDIO, a folder filled by tests/support/fetch_audio.sh.
Out: mel_golden.json beside this file:
     {"recordings": [{package, path, sha256, sample_rate, samples}],
      "sets": [{name, library, version, function, options,
                "results": [{recording, sample_rate, frames,
                             "rows": [{frame, peak, own_error_db, "values": [n_mels]}]}]}]}
     options are those that differ from the program's defaults. sample_rate is the recording's, unless
     a set says otherwise. peak is the row's maximum as the library has it.
     own_error_db, where it is not small: how far the library in its usual single precision is
     from itself in double precision. torchaudio rounds the triangles' corners to float32, which
     shows where a strong bin just reaches into a narrow band.

The options of a set are written down once; the library's arguments follow from them.
"""

import argparse
import json
import pathlib

import librosa
import numpy as np
import scipy.signal
import torch
import torchaudio

import golden_text
import option_table

RECORDINGS = [
    ("asterisk-core-sounds-en-wav",
     "usr/share/asterisk/sounds/en_US_f_Allison/vm-review.wav"),
    ("alsa-utils", "usr/share/sounds/alsa/Front_Center.wav"),
]
ROWS = (0, 1 / 4, 1 / 2, 1)  # relative to the last frame
RANGE_DB = 60.0  # bands further below their frame's peak are not compared
WORTH_NOTING_DB = 5e-4

SLANEY = dict(mel_scale="slaney", norm="slaney")

SETS = [
    ("librosa defaults", "librosa",
     dict(SLANEY, n_fft=2048, hop=512, pad_mode="constant", n_mels=128)),
    ("librosa db, reference is the maximum, top 80 dB", "librosa",
     dict(SLANEY, n_fft=1024, hop=256, n_mels=64, log="db", ref="max", top_db=80.0)),
    ("librosa amplitude, db, edge padding", "librosa",
     dict(n_fft=512, hop=128, n_mels=40, power=1.0, pad_mode="edge", log="db", amin=1e-5)),
    ("librosa short hamming window, ln", "librosa",
     dict(SLANEY, n_fft=512, win_length=400, hop=160, window="hamming", n_mels=40, log="ln",
          amin=1e-5)),
    ("librosa not centred, band limits, log10", "librosa",
     dict(n_fft=256, hop=64, center=False, fmin=100.0, fmax=3800.0, n_mels=32, log="log10")),
    ("librosa 80 bands, log10, as speech recognisers use", "librosa",
     dict(SLANEY, n_fft=400, hop=160, n_mels=80, log="log10")),
    ("librosa amplitude, ln, as vocoders use", "librosa",
     dict(SLANEY, n_fft=1024, hop=256, center=False, power=1.0, fmax=3900.0, n_mels=80, log="ln",
          amin=1e-5)),
    ("librosa odd n_fft, symmetric blackman", "librosa",
     dict(n_fft=401, hop=133, window="blackman", periodic=False, mel_scale="slaney", n_mels=32,
          log="db", ref=0.1)),
    ("torchaudio defaults", "torchaudio", dict(n_mels=128)),
    ("torchaudio 4096 Hz, not centred, 32 bands, db", "torchaudio",
     dict(sample_rate=4096, n_fft=512, hop=512, center=False, n_mels=32, log="db")),
    ("torchaudio db, top 80 dB", "torchaudio",
     dict(SLANEY, n_fft=1024, hop=512, n_mels=64, log="db", top_db=80.0)),
    ("torchaudio amplitude, db, top 60 dB", "torchaudio",
     dict(n_fft=512, hop=256, n_mels=40, power=1.0, log="db", top_db=60.0)),
    ("torchaudio short hamming window, band limits, ln of x + 1e-6", "torchaudio",
     dict(n_fft=512, win_length=320, hop=160, window="hamming", fmin=20.0, fmax=3900.0, n_mels=40,
          log="ln", log_offset=1e-6, amin=1e-30)),
    ("torchaudio normalized by the window, constant padding, log10", "torchaudio",
     dict(n_fft=256, hop=100, pad_mode="constant", normalized="window", n_mels=32, log="log10")),
    ("torchaudio normalized by the frame length, edge padding", "torchaudio",
     dict(n_fft=2048, hop=1024, pad_mode="edge", normalized="frame_length", mel_scale="slaney",
          n_mels=64)),
    ("torchaudio amplitude, not centred, symmetric window", "torchaudio",
     dict(n_fft=400, hop=100, center=False, power=1.0, periodic=False, n_mels=23)),
    ("torchaudio 80 bands, slaney norm on htk scale", "torchaudio",
     dict(n_fft=1024, hop=160, win_length=640, window="blackman", norm="slaney", n_mels=80,
          log="ln")),
]


def by_librosa(o, samples):
    window = scipy.signal.get_window(o["window"], o["win_length"], fftbins=o["periodic"])
    mel = librosa.feature.melspectrogram(
        y=samples, sr=o["sample_rate"], n_fft=o["n_fft"], win_length=o["win_length"],
        hop_length=o["hop"], window=window, center=o["center"], pad_mode=o["pad_mode"],
        power=o["power"], n_mels=o["n_mels"], fmin=o["fmin"], fmax=o["fmax"],
        htk=o["mel_scale"] == "htk", norm=None if o["norm"] == "none" else o["norm"])
    assert o["normalized"] == "none"
    if o["log"] == "db":
        to_db = librosa.power_to_db if o["power"] == 2 else librosa.amplitude_to_db
        ref = np.max if o["ref"] == "max" else o["ref"]
        return to_db(mel, ref=ref, amin=o["amin"], top_db=o["top_db"])
    if o["log"] == "none":
        return mel
    log = np.log if o["log"] == "ln" else np.log10
    return log(np.maximum(mel + o["log_offset"], o["amin"]))


def by_torchaudio(o, samples, dtype=torch.float32):
    torch.set_default_dtype(dtype)
    windows = dict(hann=torch.hann_window, hamming=torch.hamming_window,
                   blackman=torch.blackman_window)
    mel = torchaudio.transforms.MelSpectrogram(
        sample_rate=o["sample_rate"], n_fft=o["n_fft"], win_length=o["win_length"],
        hop_length=o["hop"], f_min=o["fmin"], f_max=o["fmax"], n_mels=o["n_mels"],
        window_fn=windows[o["window"]], wkwargs=dict(periodic=o["periodic"]), power=o["power"],
        normalized=False if o["normalized"] == "none" else o["normalized"], center=o["center"],
        pad_mode=dict(edge="replicate").get(o["pad_mode"], o["pad_mode"]),
        norm=None if o["norm"] == "none" else o["norm"], mel_scale=o["mel_scale"],
    )(torch.from_numpy(samples).to(dtype))
    assert o["ref"] == 1
    if o["log"] == "db":
        kind = "power" if o["power"] == 2 else "magnitude"
        assert o["amin"] == 1e-10  # AmplitudeToDB's own
        mel = torchaudio.transforms.AmplitudeToDB(stype=kind, top_db=o["top_db"])(mel)
    elif o["log"] != "none":
        log = torch.log if o["log"] == "ln" else torch.log10
        mel = log(torch.clamp(mel + o["log_offset"], min=o["amin"]))
    return mel.numpy()


LIBRARIES = {
    "librosa": (by_librosa, librosa.__version__, "librosa.feature.melspectrogram"),
    "torchaudio": (by_torchaudio, torchaudio.__version__,
                   "torchaudio.transforms.MelSpectrogram"),
}


def number(value, log):
    """Six significant digits; of logarithms as many decimals as keep 0.0001 dB."""
    if log == "none":
        return float(f"{value:.6g}")
    return round(float(value), 4 if log == "db" else 5)


def level_db(o, values):
    factor = 20 / o["power"]
    with np.errstate(divide="ignore"):
        return {"none": lambda: factor * np.log10(values), "log10": lambda: factor * values,
                "ln": lambda: factor * values / np.log(10), "db": lambda: values}[o["log"]]()


def own_errors(library, o, samples, mel):
    """Per frame [dB], over the bands that the test compares."""
    if library == "librosa":  # librosa computes its filters in double precision
        return np.zeros(mel.shape[1])
    exact = level_db(o, by_torchaudio(o, samples, torch.float64))
    rounded = level_db(o, mel.astype(np.float64))
    compared = exact >= exact.max(axis=0) - RANGE_DB
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.where(compared, np.abs(exact - rounded), 0)).max(axis=0)


def result_of(library, options, index, samples, file_rate):
    o = option_table.resolve({"sample_rate": file_rate, **options})
    mel = LIBRARIES[library][0](o, samples)  # [n_mels, frames]
    errors = own_errors(library, o, samples, mel)
    frames = mel.shape[1]
    rows = []
    for t in sorted({round((frames - 1) * part) for part in ROWS}):
        row = dict(frame=t, peak=number(mel[:, t].max(), o["log"]))
        if errors[t] > WORTH_NOTING_DB:
            row["own_error_db"] = number(errors[t], "ln")
        values = [number(v, o["log"]) for v in mel[:, t]]
        row["values"] = json.dumps(values, separators=(",", ":")).encode()
        rows.append(golden_text.line(row))
    fields = dict(recording=index, sample_rate=o["sample_rate"], frames=frames)
    return golden_text.block(fields, "rows", rows, "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("audio", type=pathlib.Path)
    audio = parser.parse_args().audio

    recordings, signals = [], []
    for package, path in RECORDINGS:
        text, samples, rate = golden_text.recording(audio, package, path)
        signals.append((samples, rate))
        recordings.append(text)

    sets = []
    for name, library, options in SETS:
        results = [result_of(library, options, i, samples, rate)
                   for i, (samples, rate) in enumerate(signals)]
        shown = {key: value for key, value in options.items() if key != "sample_rate"}
        _, version, function = LIBRARIES[library]
        fields = dict(name=name, library=library, version=version, function=function,
                      options=shown)
        sets.append(golden_text.block(fields, "results", results, ""))
    golden_text.write("mel_golden.json", dict(recordings=recordings, sets=sets))


if __name__ == "__main__":
    main()
