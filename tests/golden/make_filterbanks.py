"""Mel filters as librosa, torchaudio, Kaldi, HTK, Whisper and SpeechBrain build them.

In:  mel_filters.npz of openai-whisper (setup.sh puts it under openai-whisper/).
Out: filterbanks.json beside this file:
     {"filterbanks": [{name, library, version, function, options, dtype, own_error, n_bins,
                       sums, moments, "bands": [{band, first, weights}]}]}
     options: melflow's names, the ones that the filters depend on. Of every band the sum of its
     weights, and of its weights times their bins; of some bands, the last among them, the
     weights of bins first, first + 1, ...; all others are 0, and an empty band has no weights.
     dtype: what the library builds them in. own_error: the largest distance of a weight from
     definition.py's, which is in double precision.

Compare weights, zeros included, and not where bands begin: at a triangle's corner rounding decides
whether there is a weight of 1e-7 or none.
"""

import argparse
import math
import pathlib

import kaldi_native_fbank as knf
import librosa
import numpy as np
import torch
import torchaudio
import torchaudio.compliance.kaldi as torchaudio_kaldi

import definition
import golden_text
import libraries
import option_table

DIGITS = 9
DIGITS_OF_SUMS = 7
NEGLIGIBLE = 1e-12  # relative to a band's largest weight: a corner that rounding moved off its bin
SHOWN = 3  # bands whose weights are written, in addition to the last
GEOMETRIES = ((22050, 2048, 128), (16000, 400, 80))  # sample_rate, n_fft, n_mels
KALDI = dict(sample_rate=16000, n_fft=512, fmin=20.0, mel_scale="kaldi", triangles="mel")
WHISPER = dict(sample_rate=16000, n_fft=400, mel_scale="slaney", norm="slaney")


def geometry(rate, n_fft, n_mels, mel_scale, norm, **more):
    return dict(sample_rate=rate, n_fft=n_fft, n_mels=n_mels, mel_scale=mel_scale, norm=norm,
                **more)


def by_librosa(o):
    return librosa.filters.mel(
        sr=o["sample_rate"], n_fft=o["n_fft"], n_mels=o["n_mels"], fmin=o["fmin"], fmax=o["fmax"],
        htk=o["mel_scale"] == "htk", norm=libraries.librosa_norm(o), dtype=np.float64)


def by_torchaudio(o):
    return torchaudio.functional.melscale_fbanks(
        o["n_fft"] // 2 + 1, o["fmin"], o["fmax"], o["n_mels"], o["sample_rate"],
        libraries.none_is_none(o["norm"]), o["mel_scale"]).T.double().numpy()


def by_torchaudio_kaldi(o):
    torch.set_default_dtype(torch.float64)
    bank, _ = torchaudio_kaldi.get_mel_banks(
        o["n_mels"], o["n_fft"], o["sample_rate"], o["fmin"], o["fmax"], o["vtln_low"],
        o["vtln_high"], o["vtln_warp"])
    torch.set_default_dtype(torch.float32)
    assert bank.dtype == torch.float64
    return np.pad(bank.numpy(), ((0, 0), (0, 1)))


def by_kaldi(o):
    frame, mel = knf.FrameExtractionOptions(), knf.MelBanksOptions()
    frame.samp_freq, frame.frame_length_ms = o["sample_rate"], 1000.0 * o["n_fft"] / o["sample_rate"]
    mel.num_bins, mel.low_freq, mel.high_freq = o["n_mels"], o["fmin"], o["fmax"]
    mel.vtln_low, mel.vtln_high, mel.htk_mode = o["vtln_low"], o["vtln_high"], o["htk_mode"] == "kaldi"
    return knf.MelBanks(mel, frame, o["vtln_warp"]).get_matrix().astype(float)


def by_htk(o):
    """InitFBank and Wave2FBank of HTK 3.4.1: each bin is shared by the bands below and above it."""
    rate, n, count = o["sample_rate"], o["n_fft"], o["n_mels"]

    def mel(hz):
        return 1127.0 * math.log(1.0 + hz / 700.0)

    low, high = mel(o["fmin"]), mel(o["fmax"])
    centres = [low + (high - low) * c / (count + 1) for c in range(count + 2)]
    bank = np.zeros((count, n // 2 + 1))
    first = max(2, int(o["fmin"] * n / rate + 2.5))
    last = min(n // 2, int(o["fmax"] * n / rate + 0.5))
    for k in range(first, last + 1):  # counted from 1, which is 0 Hz
        at = mel((k - 1) * rate / n)
        below = max(c for c in range(count + 1) if centres[c] < at)
        share = (centres[below + 1] - at) / (centres[below + 1] - centres[below])
        if below > 0:
            bank[below - 1, k - 1] = share
        if below < count:
            bank[below, k - 1] = 1.0 - share
    return bank


def by_speechbrain(o):
    from speechbrain.processing.features import Filterbank
    bank = Filterbank(n_mels=o["n_mels"], log_mel=False, f_min=o["fmin"], f_max=o["fmax"],
                      n_fft=o["n_fft"], sample_rate=o["sample_rate"])
    return bank(torch.eye(o["n_fft"] // 2 + 1)[None])[0].T.double().numpy()


def by_lhotse(o):
    return libraries.lhotse_layers().create_mel_scale(
        o["n_mels"], o["n_fft"], o["sample_rate"], o["fmin"], o["fmax"],
        norm_filters=o["norm"] == "1").T.double().numpy()


def plan(whisper):
    """(name, library, version, function, dtype, call, options)"""
    def by_whisper(o):
        return whisper[f"mel_{o['n_mels']}"].astype(float)

    with_librosa = ("librosa", librosa.__version__, "librosa.filters.mel", "float64", by_librosa)
    for rate, n_fft, n_mels in GEOMETRIES:
        for scale in ("htk", "slaney"):
            for norm in ("none", "slaney"):
                usual = (scale, norm) in (("htk", "none"), ("slaney", "slaney"))
                if usual or n_fft < 2048:
                    yield (f"librosa {scale}, norm {norm}, {rate} Hz", *with_librosa,
                           geometry(rate, n_fft, n_mels, scale, norm))
    for norm in ("1", "2", "inf"):
        yield (f"librosa slaney, norm {norm}, 16000 Hz", *with_librosa,
               geometry(16000, 400, 80, "slaney", norm))
    yield ("librosa htk, norm 1, empty bands", *with_librosa, geometry(8000, 64, 40, "htk", "1"))
    yield ("librosa as hifigan", *with_librosa,
           geometry(22050, 1024, 80, "slaney", "slaney", fmax=8000.0))

    with_torchaudio = ("torchaudio", torchaudio.__version__,
                       "torchaudio.functional.melscale_fbanks", "float32", by_torchaudio)
    for rate, n_fft, n_mels in GEOMETRIES:
        for scale, norm in (("htk", "none"), ("slaney", "slaney")):
            yield (f"torchaudio {scale}, norm {norm}, {rate} Hz", *with_torchaudio,
                   geometry(rate, n_fft, n_mels, scale, norm))
    for rate, n_fft in ((11025, 512), (11025, 401), (16000, 401)):
        yield (f"torchaudio {rate} Hz, n_fft {n_fft}", *with_torchaudio,
               dict(geometry(rate, n_fft, 40, "htk", "none"), bin_hz="torchaudio"))
    for scale, norm in (("htk", "slaney"), ("slaney", "none")):
        yield (f"torchaudio {scale}, norm {norm}, 16000 Hz", *with_torchaudio,
               geometry(16000, 400, 80, scale, norm))

    for name, more in (("", dict(n_mels=23)),
                       (", 80 bands to 400 Hz below Nyquist", dict(n_mels=80, fmax=-400.0)),
                       (", 128 bands as ast", dict(n_mels=128)),
                       (", vtln_warp 0.9", dict(n_mels=23, vtln_warp=0.9)),
                       (", vtln_warp 1.1", dict(n_mels=23, vtln_warp=1.1))):
        yield (f"torchaudio kaldi{name}", "torchaudio", torchaudio.__version__,
               "torchaudio.compliance.kaldi.get_mel_banks", "float64", by_torchaudio_kaldi,
               dict(KALDI, **more))
    for name, more in (("", dict(n_mels=23)), (", vtln_warp 0.9", dict(n_mels=23, vtln_warp=0.9)),
                       (", htk_mode", dict(n_mels=23, htk_mode="kaldi")),
                       (", htk_mode from 0 Hz", dict(n_mels=23, htk_mode="kaldi", fmin=0.0))):
        yield (f"kaldi-native-fbank{name}", "kaldi-native-fbank",
               libraries.version("kaldi-native-fbank"), "MelBanks", "float32", by_kaldi,
               dict(KALDI, **more))
    for n_mels, fmin, fmax in ((26, 0.0, 8000.0), (26, 20.0, 7800.0), (26, 64.0, 8000.0),
                               (26, 125.0, 7600.0), (23, 133.0, 6855.0), (80, 60.0, 7990.0)):
        yield (f"HTK, {n_mels} bands, {fmin:g} to {fmax:g} Hz", "HTK", "3.4.1", "InitFBank",
               "float64", by_htk,
               dict(KALDI, n_mels=n_mels, fmin=fmin, fmax=fmax, htk_mode="htk"))
    for n_mels in (80, 128):
        yield (f"whisper, {n_mels} bands", "openai-whisper", "20250625", "assets/mel_filters.npz",
               "float32", by_whisper, dict(WHISPER, n_mels=n_mels))
    for n_mels, n_fft in ((40, 400), (80, 512)):
        yield (f"speechbrain, {n_mels} bands", "speechbrain", libraries.version("speechbrain"),
               "speechbrain.processing.features.Filterbank", "float32", by_speechbrain,
               dict(sample_rate=16000, n_fft=n_fft, n_mels=n_mels, triangles="left_width"))
    yield ("speechbrain, 11025 Hz, n_fft 401", "speechbrain", libraries.version("speechbrain"),
           "speechbrain.processing.features.Filterbank", "float32", by_speechbrain,
           dict(sample_rate=11025, n_fft=401, n_mels=40, triangles="left_width",
                bin_hz="speechbrain"))
    for norm in ("none", "1"):
        yield (f"lhotse, norm {norm}", "lhotse", libraries.version("lhotse"), "create_mel_scale",
               "float32", by_lhotse,
               dict(KALDI, n_mels=80, fmax=-400.0, bin_hz="lhotse", norm=norm))


def band_text(band, weights):
    used = np.flatnonzero(np.abs(weights) > NEGLIGIBLE * np.abs(weights).max(initial=0.0))
    first, end = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 0)
    return golden_text.line(dict(
        band=band, first=first, weights=golden_text.numbers(weights[first:end], DIGITS).encode()))


def bank_text(name, library, version, function, dtype, call, options):
    o = option_table.resolve(options)
    bank = call(o)
    error = np.abs(bank - definition.filters(o)).max()
    print(f"{name}: {bank.shape[0]} x {bank.shape[1]}, at most {error:.2g} of {bank.max():.2g}")
    fields = dict(name=name, library=library, version=version, function=function, options=options,
                  dtype=dtype, own_error=float(f"{error:.2g}"), n_bins=bank.shape[1])
    for key, totals in (("sums", bank.sum(axis=1)),
                        ("moments", bank @ np.arange(bank.shape[1]))):
        fields[key] = golden_text.numbers(totals, DIGITS_OF_SUMS).encode()
    shown = sorted({*range(0, len(bank), len(bank) // SHOWN), len(bank) - 1})
    return golden_text.block(fields, "bands", [band_text(m, bank[m]) for m in shown], "  ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("whisper", type=pathlib.Path)
    whisper = np.load(parser.parse_args().whisper)
    banks = [bank_text(*bank) for bank in plan(whisper)]
    golden_text.write("filterbanks.json", dict(filterbanks=banks))


if __name__ == "__main__":
    main()
