#!/usr/bin/env python3
"""Features by the libraries that melflow's presets are named after: for melflow verify-parity --reference.

In:  parity_reference.py REQUEST ANSWER; REQUEST is JSON:
     {"reference": one of REFERENCES, "options": melflow's mel options, all of them, by name,
      "changed": [names of those that the user set],
      "inputs": [{"samples": PATH of raw float32 mono samples in -1 .. 1, "rows": PATH to write,
                  "own_errors": PATH to write}]}
Out: each PATH of rows as raw float32 [frames, columns]; of IN_DOUBLE likewise own_errors, how far each value
     is from what the library's own code makes of the same samples in double precision; ANSWER is JSON:
     {"library", "version", "function",
      "outputs": [{"frames", "columns", "has_own_errors"} or {"refused": why}],
      "unknown": [changed options that the library was not told, having nothing like them]},
     or {"missing": [[module, pip name, why]]} when Python lacks something.

A function by_...(o, x) takes the options and float32 samples and returns [frames, columns] float64.
NeMo and HiFi-GAN: of their packages the one file is run that computes features (module_alone), which needs
torch and librosa and nothing else of what they ask for.

tests/golden makes the golden vectors by these same functions.
"""

import functools
import importlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import sys
import warnings

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
logging.disable(logging.INFO)
for ignored in ("n_fft=.* is too large", ".*all zero values.*", "Empty filters"):
    warnings.filterwarnings("ignore", message=ignored)


def version(package):
    return importlib.metadata.version(package)


def none_is_none(value):
    return None if value == "none" else value


class HasNone(ValueError):
    """Raised for an option that the library has no counterpart for."""


def only(library, o, **has):
    """Refuses options with other values than the library has."""
    for name, values in has.items():
        if o[name] not in values:
            texts = ("true" if v is True else "false" if v is False else str(v) for v in values)
            raise HasNone(f"{library} has no {name}: {o[name]}; it has {', '.join(texts)}")


def decibels(library, o):
    """The factor of log10: 10 for a power, 20 for a magnitude."""
    factor = o["db_factor"] or 20 / o["power"]
    if factor not in (10, 20):
        raise HasNone(f"{library} has no db_factor: {factor:g}; it has 10, 20")
    return factor


def window_values(o):
    """The window's values: the list itself, or the contents of the .npy file if there is a path instead."""
    import numpy as np
    values = o["window_values"]
    return np.load(values) if isinstance(values, str) else np.array(values)


# librosa

def librosa_window(o):
    import librosa
    if o["window"] == "values":
        return window_values(o)
    if o["window"] in ("povey", "sine"):
        raise HasNone(f"librosa has no window: {o['window']}")
    c = o["blackman_coeff"]
    kind = dict(blackman=("general_cosine", [c, 0.5, 0.5 - c]),
                kaiser=("kaiser", o["kaiser_beta"]), gauss=("gaussian", o["gauss_std"]),
                tukey=("tukey", o["tukey_alpha"]), hamming=("general_hamming", o["hamming_alpha"]),
                blackman_harris="blackmanharris").get(o["window"], o["window"])
    return kind if o["periodic"] else librosa.filters.get_window(kind, o["win_length"],
                                                                 fftbins=False)


def librosa_norm(o):
    return o["norm"] if o["norm"] == "slaney" else none_is_none(o["norm"]) and float(o["norm"])


def librosa_db(o):
    """The name of librosa's function that converts these rows to decibels."""
    return "power_to_db" if decibels("librosa", o) == 10 else "amplitude_to_db"


def librosa_calls(o):
    first = "librosa.stft" if o["output"] == "spectrogram" else "librosa.feature.melspectrogram"
    return first if o["log"] == "none" else f"{first}, librosa.{librosa_db(o)}"


def by_librosa(o, x):
    import librosa
    import numpy as np
    only("librosa", o, log=("none", "db"))
    stft = dict(n_fft=o["n_fft"], hop_length=o["hop"], win_length=o["win_length"],
                window=librosa_window(o), center=o["center"], pad_mode=o["pad_mode"])
    if o["output"] == "spectrogram":
        out = np.abs(librosa.stft(x, **stft)) ** o["power"]
    else:
        out = librosa.feature.melspectrogram(
            y=x, sr=o["sample_rate"], power=o["power"], n_mels=o["n_mels"], fmin=o["fmin"],
            fmax=o["fmax"], htk=o["mel_scale"] == "htk", norm=librosa_norm(o), **stft)
    if o["log"] == "db":
        out = getattr(librosa, librosa_db(o))(
            out, ref=np.max if o["ref"] == "max" else o["ref"], amin=o["amin"], top_db=o["top_db"])
    return out.T.astype(float)


# torchaudio

def torchaudio_stft(o):
    import torch
    def given(length, **_):
        assert length == o["win_length"]
        return torch.tensor(window_values(o), dtype=torch.float32)

    windows = dict(hann=torch.hann_window, hamming=torch.hamming_window,
                   blackman=torch.blackman_window, kaiser=torch.kaiser_window,
                   bartlett=torch.bartlett_window, values=given)
    only("torchaudio", o, window=windows)
    extra = {}
    if o["window"] == "kaiser":
        extra = dict(beta=o["kaiser_beta"])
    if o["window"] == "hamming":
        extra = dict(alpha=o["hamming_alpha"], beta=1.0 - o["hamming_alpha"])
    return dict(n_fft=o["n_fft"], win_length=o["win_length"], hop_length=o["hop"],
                pad=o["pad_zeros"], power=o["power"], center=o["center"], window_fn=windows[o["window"]],
                wkwargs=dict(periodic=o["periodic"], **extra),
                pad_mode=dict(edge="replicate").get(o["pad_mode"], o["pad_mode"]),
                normalized=False if o["normalized"] == "none" else o["normalized"])


def by_torchaudio(o, x):
    import torch
    import torchaudio
    only("torchaudio", o, log=("none", "db"))
    if o["bin_hz"] != "torchaudio" and (o["sample_rate"] % 2 or o["n_fft"] % 2):
        only("torchaudio", o, bin_hz=("torchaudio",))
    if o["log"] == "db":
        only("torchaudio", o, amin=(1e-10,), ref=(1,))
    stft = torchaudio_stft(o)
    if o["output"] == "spectrogram":
        transform = torchaudio.transforms.Spectrogram(**stft)
    else:
        transform = torchaudio.transforms.MelSpectrogram(
            sample_rate=o["sample_rate"], f_min=o["fmin"], f_max=o["fmax"], n_mels=o["n_mels"],
            norm=none_is_none(o["norm"]), mel_scale=o["mel_scale"], **stft)
    out = transform(torch.from_numpy(x))
    if o["log"] == "db":
        kind = "power" if decibels("torchaudio", o) == 10 else "magnitude"
        out = torchaudio.transforms.AmplitudeToDB(kind, o["top_db"])(out)
    return out.T.double().numpy()


# Kaldi

KALDI_WINDOWS = dict(hann="hanning", boxcar="rectangular")


def kaldi_times(o):
    """Frame length and shift [ms] that give o's samples, the defaults where those do."""
    rate = o["sample_rate"]
    if (o["win_length"], o["hop"]) == (int(rate * 0.025), int(rate * 0.01)):
        return 25.0, 10.0
    return 1000.0 * o["win_length"] / rate, 1000.0 * o["hop"] / rate


def set_kaldi(options, o):
    only("kaldi-native-fbank", o, n_fft=(1 << (o["win_length"] - 1).bit_length(),),
         htk_mode=(False, "kaldi"), vtln_warp=(1,), log=("none", "ln"), power=(1, 2))
    if abs(o["amin"] - 2.0**-23) > 1e-15:
        only("kaldi-native-fbank", o, amin=(2.0**-23,))
    frame, mel = options.frame_opts, options.mel_opts
    frame.samp_freq = o["sample_rate"]
    frame.frame_length_ms, frame.frame_shift_ms = kaldi_times(o)
    frame.dither = 0.0
    frame.preemph_coeff = o["preemphasis"]
    frame.remove_dc_offset = o["remove_dc"]
    frame.window_type = KALDI_WINDOWS.get(o["window"], o["window"])
    frame.blackman_coeff = o["blackman_coeff"]
    frame.snip_edges = o["snip_edges"] is not False  # not set: `center` decides, which is off
    mel.num_bins = o["n_mels"]
    mel.low_freq, mel.high_freq = o["fmin"], o["fmax"]
    mel.vtln_low, mel.vtln_high = o["vtln_low"], o["vtln_high"]
    mel.htk_mode = o["htk_mode"] == "kaldi"
    for name in ("use_energy", "raw_energy", "energy_floor", "htk_compat"):
        setattr(options, name, o[name])
    return options


def kaldi_frames(computer, o, x, bands):
    import numpy as np
    computer.accept_waveform(o["sample_rate"], (x * np.float32(o["input_scale"])).tolist())
    computer.input_finished()
    rows = [computer.get_frame(i) for i in range(computer.num_frames_ready)]
    return np.array(rows, dtype=float).reshape(-1, bands)


def by_kaldi(o, x):
    import kaldi_native_fbank as knf
    options = set_kaldi(knf.FbankOptions(), o)
    options.use_log_fbank = o["log"] == "ln"
    options.use_power = o["power"] == 2
    return kaldi_frames(knf.OnlineFbank(options), o, x, o["n_mels"] + o["use_energy"])


# Whisper, AST

def by_whisper(o, x):
    import transformers
    extractor = transformers.WhisperFeatureExtractor(
        feature_size=o["n_mels"], sampling_rate=o["sample_rate"], hop_length=o["hop"],
        n_fft=o["n_fft"])
    return extractor._np_extract_fbank_features(x[None], "cpu")[0].T.astype(float)


def by_ast(o, x):
    import transformers
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
    import torch
    from speechbrain.lobes.features import Fbank
    fbank = Fbank(sample_rate=o["sample_rate"], n_fft=o["n_fft"], n_mels=o["n_mels"],
                  f_min=o["fmin"], f_max=o["fmax"],
                  win_length=1000.0 * o["win_length"] / o["sample_rate"],
                  hop_length=1000.0 * o["hop"] / o["sample_rate"])
    return fbank(torch.from_numpy(x)[None])[0].double().numpy()


# NeMo, HiFi-GAN

def module_alone(name, **stand_ins):
    """The module `name` of an installed package, run without the packages that it is in.

    Their own imports are whole frameworks. stand_ins: module=object, for those that it imports beyond torch
    and librosa, with dots written as two underscores; features need none of them.
    """
    import unittest.mock
    package, *inside = name.split(".")
    for folder in importlib.util.find_spec(package).submodule_search_locations:
        path = os.path.join(folder, *inside) + ".py"
        if os.path.exists(path):
            break
    else:
        raise ImportError(f"{package} has no {'/'.join(inside)}.py")
    spec = importlib.util.spec_from_file_location(name.replace(".", "_") + "_alone", path)
    module = importlib.util.module_from_spec(spec)
    named = {key.replace("__", "."): value for key, value in stand_ins.items()}
    with unittest.mock.patch.dict(sys.modules, named):
        spec.loader.exec_module(module)
    return module


@functools.cache
def nemo_features():
    from unittest.mock import MagicMock
    return module_alone(
        "nemo.collections.asr.parts.preprocessing.features", nemo=MagicMock(),
        nemo__utils=MagicMock(), nemo__collections__asr__parts__preprocessing__perturb=MagicMock(),
        nemo__collections__asr__parts__preprocessing__segment=MagicMock())


def by_nemo(o, x):
    """The valid frames of AudioToMelSpectrogramPreprocessor in evaluation mode."""
    import torch
    only("NeMo", o, window=("hann", "hamming", "blackman"))
    featurizer = nemo_features().FilterbankFeatures(
        sample_rate=o["sample_rate"], n_window_size=o["win_length"], n_window_stride=o["hop"],
        window=o["window"], normalize=none_is_none(o["normalize"]), n_fft=o["n_fft"],
        preemph=o["preemphasis"], nfilt=o["n_mels"], lowfreq=o["fmin"], highfreq=o["fmax"],
        log_zero_guard_value=o["log_offset"], mag_power=o["power"], mel_norm=none_is_none(o["norm"]),
        dither=0.0, pad_to=0)
    featurizer.eval()
    out, lengths = featurizer(torch.from_numpy(x)[None], torch.tensor([len(x)]))
    return out[0, :, :int(lengths[0])].T.double().numpy()


class EarlierTorch:
    """torch, whose stft() answers as it did when HiFi-GAN was written: in pairs of real numbers."""

    def __getattr__(self, name):
        import torch
        return getattr(torch, name)

    @staticmethod
    def stft(*args, **kwargs):
        import torch
        return torch.view_as_real(torch.stft(*args, **kwargs, return_complex=True))


@functools.cache
def hifigan_meldataset():
    import librosa
    module = module_alone("hifi_gan.meldataset")
    module.torch = EarlierTorch()
    # Newer versions of librosa accept these arguments by name only.
    module.librosa_mel_fn = lambda sr, n_fft, n_mels, fmin, fmax: librosa.filters.mel(
        sr=sr, n_fft=n_fft, n_mels=n_mels, fmin=fmin, fmax=fmax)
    return module


def by_hifigan(o, x):
    """mel_spectrogram of meldataset.py."""
    import torch
    only("HiFi-GAN", o, pad=((o["n_fft"] - o["hop"]) // 2,))
    out = hifigan_meldataset().mel_spectrogram(
        torch.from_numpy(x)[None], o["n_fft"], o["n_mels"], o["sample_rate"], o["hop"],
        o["win_length"], o["fmin"], o["fmax"] or None)
    return out[0].T.double().numpy()


# name: call, library, package with the version, called function, [module, name for pip]
NUMPY, TORCH, TORCHAUDIO = ("numpy", "numpy"), ("torch", "torch"), ("torchaudio", "torchaudio")
LIBROSA, TRANSFORMERS = ("librosa", "librosa"), ("transformers", "transformers")
REFERENCES = {
    "librosa": (by_librosa, "librosa", "librosa", "librosa.feature.melspectrogram",
                [NUMPY, LIBROSA]),
    "torchaudio": (by_torchaudio, "torchaudio", "torchaudio",
                   "torchaudio.transforms.MelSpectrogram", [NUMPY, TORCH, TORCHAUDIO]),
    "kaldi-native-fbank": (by_kaldi, "kaldi-native-fbank", "kaldi-native-fbank", "OnlineFbank",
                           [NUMPY, ("kaldi_native_fbank", "kaldi-native-fbank")]),
    "whisper": (by_whisper, "transformers", "transformers",
                "WhisperFeatureExtractor._np_extract_fbank_features", [NUMPY, TRANSFORMERS]),
    "nemo": (by_nemo, "NeMo", "nemo_toolkit", "FilterbankFeatures",
             [NUMPY, TORCH, LIBROSA, ("nemo", "nemo_toolkit")]),
    "speechbrain": (by_speechbrain, "speechbrain", "speechbrain",
                    "speechbrain.lobes.features.Fbank",
                    [NUMPY, TORCH, TORCHAUDIO, ("speechbrain", "speechbrain")]),
    "hifigan": (by_hifigan, "HiFi-GAN", "hifi-gan", "meldataset.mel_spectrogram",
                [NUMPY, TORCH, LIBROSA, ("scipy", "scipy"), ("hifi_gan", "hifi-gan")]),
    "ast": (by_ast, "transformers", "transformers",
            "ASTFeatureExtractor._extract_fbank_features, normalize",
            [NUMPY, TORCH, TORCHAUDIO, TRANSFORMERS]),
}


def missing(modules):
    out = []
    for module, pip in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # a damaged installation may raise anything
            out.append([module, pip, f"{type(error).__name__}: {error}"])
    return out


def version_text(package):
    text = version(package)
    return "torch " + text if package == "torch" else text


class Noted(dict):
    """Options that remember which of them were asked for."""

    def __init__(self, options):
        super().__init__(options)
        self.asked = {"sample_rate"}

    def __getitem__(self, key):
        self.asked.add(key)
        return super().__getitem__(key)


# Libraries that compute in double precision throughout when the samples and torch's default type are double.
IN_DOUBLE = {"torchaudio", "speechbrain", "ast"}


def own_errors(call, options, x, rows):
    """|rows - those in double precision|, None where the library has none."""
    import numpy as np
    import torch
    torch.set_default_dtype(torch.float64)
    try:
        exact = call(options, x.astype(np.float64))
    except (RuntimeError, TypeError, ValueError):  # some version of the library keeps a float somewhere
        return None
    finally:
        torch.set_default_dtype(torch.float32)
    return np.abs(rows.astype(float) - exact) if exact.shape == rows.shape else None


def rows_of(call, options, one, in_double):
    import numpy as np
    x = np.fromfile(one["samples"], dtype="<f4")
    try:
        rows = call(options, x)
    except HasNone as error:
        return dict(refused=str(error))
    except Exception as error:  # any error that a library raises for audio that it refuses
        lines = str(error).splitlines()
        return dict(refused=f"{type(error).__name__}: {lines[0]}" if lines else
                    f"{type(error).__name__}, without a text")
    rows = rows.astype("<f4")
    rows.tofile(one["rows"])
    errors = own_errors(call, options, x, rows) if in_double else None
    if errors is not None:
        errors.astype("<f4").tofile(one["own_errors"])
    return dict(frames=rows.shape[0], columns=rows.shape[1], has_own_errors=errors is not None)


def answer(request):
    call, library, package, function, modules = REFERENCES[request["reference"]]
    lacks = missing(modules)
    if lacks:
        return dict(missing=lacks)
    options = Noted(request["options"])
    in_double = request["reference"] in IN_DOUBLE
    outputs = [rows_of(call, options, one, in_double) for one in request["inputs"]]
    is_refused = all("refused" in one for one in outputs)  # perhaps without having tried all of them
    if call is by_librosa and not is_refused:
        function = librosa_calls(options)
    return dict(library=library, version=version_text(package), function=function,
                outputs=outputs,
                unknown=[name for name in request["changed"]
                         if not is_refused and name not in options.asked])


def main():
    # Python looks for modules beside this file first, where are those of melflow.
    sys.path[:] = [path for path in sys.path if os.path.realpath(path) != os.path.dirname(os.path.realpath(__file__))]
    request_path, answer_path = sys.argv[1:]
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    with open(answer_path, "w", encoding="utf-8") as file:
        json.dump(answer(request), file)


if __name__ == "__main__":
    main()
