"""Calls of the real libraries, each with arguments that follow from melflow's options.

In:  resolved options (definition.resolve) and float32 samples in [-1, 1).
Out: [frames, bands] as the library computed it, in float64.

NeMo and HiFi-GAN have no package that installs without their whole framework: by_nemo and
by_hifigan are the definitions that they publish, written here with torch in single precision and
librosa's filters, as theirs are.
"""

import importlib.metadata
import logging
import os
import warnings

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
logging.disable(logging.INFO)
warnings.filterwarnings("ignore", message="n_fft=.* is too large")
warnings.filterwarnings("ignore", message=".*all zero values.*")
warnings.filterwarnings("ignore", message="Empty filters")

import kaldi_native_fbank as knf
import librosa
import numpy as np
import torch
import torchaudio
import torchaudio.compliance.kaldi as torchaudio_kaldi
import transformers

torch.set_num_threads(1)


def version(package):
    return importlib.metadata.version(package)


def none_is_none(value):
    return None if value == "none" else value


# librosa

def librosa_window(o):
    kind = dict(kaiser=("kaiser", o["kaiser_beta"]), gauss=("gaussian", o["gauss_std"]),
                blackman_harris="blackmanharris").get(o["window"], o["window"])
    return kind if o["periodic"] else librosa.filters.get_window(kind, o["win_length"],
                                                                 fftbins=False)


def by_librosa(o, x):
    stft = dict(n_fft=o["n_fft"], hop_length=o["hop"], win_length=o["win_length"],
                window=librosa_window(o), center=o["center"], pad_mode=o["pad_mode"])
    if o["output"] == "spectrogram":
        out = np.abs(librosa.stft(x, **stft)) ** o["power"]
    else:
        out = librosa.feature.melspectrogram(
            y=x, sr=o["sample_rate"], power=o["power"], n_mels=o["n_mels"], fmin=o["fmin"],
            fmax=o["fmax"], htk=o["mel_scale"] == "htk", norm=none_is_none(o["norm"]), **stft)
    if o["log"] == "db":
        to_db = librosa.power_to_db if o["power"] == 2 else librosa.amplitude_to_db
        out = to_db(out, ref=o["ref"], amin=o["amin"], top_db=o["top_db"])
    else:
        assert o["log"] == "none"
    return out.T.astype(float)


def mfcc_by_librosa(o, mfcc, x):
    assert mfcc["lifter_style"] == "librosa" and o["log"] == "db" and o["top_db"] == 80
    return librosa.feature.mfcc(
        y=x, sr=o["sample_rate"], n_mfcc=mfcc["n_mfcc"], dct_type=mfcc["dct_type"],
        norm="ortho" if mfcc["ortho"] else None, lifter=mfcc["lifter"], n_fft=o["n_fft"],
        hop_length=o["hop"], n_mels=o["n_mels"]).T.astype(float)


# torchaudio

TORCH_WINDOWS = dict(hann=torch.hann_window, hamming=torch.hamming_window,
                     blackman=torch.blackman_window, kaiser=torch.kaiser_window)


def torchaudio_stft(o):
    extra = dict(beta=o["kaiser_beta"]) if o["window"] == "kaiser" else {}
    return dict(n_fft=o["n_fft"], win_length=o["win_length"], hop_length=o["hop"],
                power=o["power"], center=o["center"], window_fn=TORCH_WINDOWS[o["window"]],
                wkwargs=dict(periodic=o["periodic"], **extra),
                pad_mode=dict(edge="replicate").get(o["pad_mode"], o["pad_mode"]),
                normalized=False if o["normalized"] == "none" else o["normalized"])


def by_torchaudio(o, x):
    if o["output"] == "spectrogram":
        transform = torchaudio.transforms.Spectrogram(**torchaudio_stft(o))
    else:
        transform = torchaudio.transforms.MelSpectrogram(
            sample_rate=o["sample_rate"], f_min=o["fmin"], f_max=o["fmax"], n_mels=o["n_mels"],
            norm=none_is_none(o["norm"]), mel_scale=o["mel_scale"], **torchaudio_stft(o))
    out = transform(torch.from_numpy(x))
    if o["log"] == "db":
        assert o["amin"] == 1e-10 and o["ref"] == 1
        kind = "power" if o["power"] == 2 else "magnitude"
        out = torchaudio.transforms.AmplitudeToDB(kind, o["top_db"])(out)
    else:
        assert o["log"] == "none"
    return out.T.double().numpy()


def mfcc_by_torchaudio(o, mfcc, x):
    assert mfcc["dct_type"] == 2 and not mfcc["lifter"] and o["top_db"] == 80
    return torchaudio.transforms.MFCC(
        sample_rate=o["sample_rate"], n_mfcc=mfcc["n_mfcc"],
        norm="ortho" if mfcc["ortho"] else None,
        melkwargs=dict(n_mels=o["n_mels"], n_fft=o["n_fft"], hop_length=o["hop"]),
    )(torch.from_numpy(x)).T.double().numpy()


# Kaldi

KALDI_WINDOWS = dict(hann="hanning", boxcar="rectangular")


def kaldi_times(o):
    """Frame length and shift [ms] that give o's samples, the defaults where those do."""
    rate = o["sample_rate"]
    if (o["win_length"], o["hop"]) == (int(rate * 0.025), int(rate * 0.01)):
        return 25.0, 10.0
    return 1000.0 * o["win_length"] / rate, 1000.0 * o["hop"] / rate


def set_kaldi(options, o):
    frame, mel = options.frame_opts, options.mel_opts
    frame.samp_freq = o["sample_rate"]
    frame.frame_length_ms, frame.frame_shift_ms = kaldi_times(o)
    frame.dither = 0.0
    frame.preemph_coeff = o["preemphasis"]
    frame.remove_dc_offset = o["remove_dc"]
    frame.window_type = KALDI_WINDOWS.get(o["window"], o["window"])
    frame.snip_edges = o["snip_edges"]
    mel.num_bins = o["n_mels"]
    mel.low_freq, mel.high_freq = o["fmin"], o["fmax"]
    mel.vtln_low, mel.vtln_high = o["vtln_low"], o["vtln_high"]
    mel.htk_mode = o["htk_mode"]
    for name in ("use_energy", "raw_energy", "energy_floor", "htk_compat"):
        setattr(options, name, o[name])
    assert o["vtln_warp"] == 1 and o["amin"] == 2.0**-23
    return options


def kaldi_frames(computer, o, x, bands):
    computer.accept_waveform(o["sample_rate"], (x * np.float32(o["input_scale"])).tolist())
    computer.input_finished()
    rows = [computer.get_frame(i) for i in range(computer.num_frames_ready)]
    return np.array(rows, dtype=float).reshape(-1, bands)


def by_kaldi(o, x):
    options = set_kaldi(knf.FbankOptions(), o)
    options.use_log_fbank = o["log"] == "ln"
    options.use_power = o["power"] == 2
    return kaldi_frames(knf.OnlineFbank(options), o, x, o["n_mels"] + o["use_energy"])


def mfcc_by_kaldi(o, mfcc, x):
    options = set_kaldi(knf.MfccOptions(), o)
    options.num_ceps, options.cepstral_lifter = mfcc["n_mfcc"], mfcc["lifter"]
    assert mfcc["dct_type"] == 2 and mfcc["ortho"] and mfcc["lifter_style"] == "kaldi"
    return kaldi_frames(knf.OnlineMfcc(options), o, x, mfcc["n_mfcc"])


def by_torchaudio_kaldi(o, x):
    assert not o["htk_mode"]
    length, shift = kaldi_times(o)
    return torchaudio_kaldi.fbank(
        torch.from_numpy(x)[None] * o["input_scale"], dither=0.0, sample_frequency=o["sample_rate"],
        frame_length=length, frame_shift=shift, energy_floor=o["energy_floor"],
        high_freq=o["fmax"], low_freq=o["fmin"], htk_compat=o["htk_compat"],
        num_mel_bins=o["n_mels"], preemphasis_coefficient=o["preemphasis"],
        raw_energy=o["raw_energy"], use_energy=o["use_energy"], remove_dc_offset=o["remove_dc"],
        snip_edges=o["snip_edges"], use_log_fbank=o["log"] == "ln", use_power=o["power"] == 2,
        vtln_low=o["vtln_low"], vtln_high=o["vtln_high"], vtln_warp=o["vtln_warp"],
        window_type=KALDI_WINDOWS.get(o["window"], o["window"])).double().numpy()


# Whisper, AST

def by_whisper(o, x):
    extractor = transformers.WhisperFeatureExtractor(
        feature_size=o["n_mels"], sampling_rate=o["sample_rate"], hop_length=o["hop"],
        n_fft=o["n_fft"])
    return extractor._np_extract_fbank_features(x[None], "cpu")[0].T.astype(float)


def by_ast(o, x):
    frames = max(0, 1 + (len(x) - o["win_length"]) // o["hop"])
    extractor = transformers.ASTFeatureExtractor(
        sampling_rate=o["sample_rate"], num_mel_bins=o["n_mels"], max_length=frames)
    assert hasattr(extractor, "do_normalize") and not hasattr(extractor, "mel_filters")
    out = extractor._extract_fbank_features(x, max_length=frames)  # by torchaudio
    if o["normalize"] == "fixed":
        out = extractor.normalize(out)
    return out.astype(float)


# SpeechBrain

def by_speechbrain(o, x):
    from speechbrain.lobes.features import Fbank
    fbank = Fbank(sample_rate=o["sample_rate"], n_fft=o["n_fft"], n_mels=o["n_mels"],
                  f_min=o["fmin"], f_max=o["fmax"],
                  win_length=1000.0 * o["win_length"] / o["sample_rate"],
                  hop_length=1000.0 * o["hop"] / o["sample_rate"])
    return fbank(torch.from_numpy(x)[None])[0].double().numpy()


# Definitions of NeMo 2 and HiFi-GAN

def mel_power(o, spectrum):
    bank = torch.from_numpy(librosa.filters.mel(
        sr=o["sample_rate"], n_fft=o["n_fft"], n_mels=o["n_mels"], fmin=o["fmin"],
        fmax=o["fmax"]))
    return bank @ spectrum


def by_nemo(o, x):
    """AudioToMelSpectrogramPreprocessor in evaluation: dither 0, pad_to 0.

    All of torch.stft's frames but the last are valid; the statistics are over the valid ones.
    """
    x = torch.from_numpy(x)
    x = torch.cat([x[:1], x[1:] - o["preemphasis"] * x[:-1]])
    window = torch.hann_window(o["win_length"], periodic=False)
    spectrum = torch.stft(x, o["n_fft"], o["hop"], o["win_length"], window, center=True,
                          pad_mode="constant", return_complex=True)
    magnitude = torch.view_as_real(spectrum).pow(2).sum(-1).sqrt()
    out = torch.log(mel_power(o, magnitude.pow(2)) + o["log_offset"])[:, :len(x) // o["hop"]]
    if o["normalize"] == "per_feature" and out.numel():
        mean = out.sum(1, keepdim=True) / out.shape[1]
        deviation = ((out - mean).pow(2).sum(1, keepdim=True) / (out.shape[1] - 1)).sqrt()
        out = (out - mean) / (deviation + o["norm_eps"])
    elif o["normalize"] == "all_features":
        out = (out - out.mean()) / (out.std() + o["norm_eps"])
    return out.T.double().numpy()


def by_hifigan(o, x):
    """mel_spectrogram of the published meldataset.py, at its 22 kHz configuration."""
    padded = torch.nn.functional.pad(torch.from_numpy(x)[None, None], (o["pad"], o["pad"]),
                                     mode="reflect")[0, 0]
    spectrum = torch.stft(padded, o["n_fft"], o["hop"], o["win_length"],
                          torch.hann_window(o["win_length"]), center=False, return_complex=True)
    magnitude = torch.sqrt(torch.view_as_real(spectrum).pow(2).sum(-1) + o["power_offset"])
    return torch.log(torch.clamp(mel_power(o, magnitude), min=o["amin"])).T.double().numpy()


# preset: call, library, version, what was called
LIBRARIES = dict(
    librosa=(by_librosa, "librosa", version("librosa"), "librosa.feature.melspectrogram"),
    torchaudio=(by_torchaudio, "torchaudio", torchaudio.__version__,
                "torchaudio.transforms.MelSpectrogram"),
    kaldi=(by_kaldi, "kaldi-native-fbank", version("kaldi-native-fbank"), "OnlineFbank"),
    kaldi_htk=(by_kaldi, "kaldi-native-fbank", version("kaldi-native-fbank"), "OnlineFbank"),
    whisper=(by_whisper, "transformers", transformers.__version__,
             "WhisperFeatureExtractor._np_extract_fbank_features"),
    whisper_large_v3=(by_whisper, "transformers", transformers.__version__,
                      "WhisperFeatureExtractor._np_extract_fbank_features"),
    nemo=(by_nemo, "definition of NeMo 2", "torch " + torch.__version__, "libraries.by_nemo"),
    speechbrain=(by_speechbrain, "speechbrain", version("speechbrain"),
                 "speechbrain.lobes.features.Fbank"),
    hifigan=(by_hifigan, "definition of HiFi-GAN", "torch " + torch.__version__,
             "libraries.by_hifigan"),
    ast=(by_ast, "transformers", transformers.__version__,
         "ASTFeatureExtractor._extract_fbank_features, normalize"))
MFCCS = dict(
    librosa=(mfcc_by_librosa, "librosa.feature.mfcc"),
    torchaudio=(mfcc_by_torchaudio, "torchaudio.transforms.MFCC"),
    kaldi=(mfcc_by_kaldi, "OnlineMfcc"))
