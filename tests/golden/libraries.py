"""Calls of the real libraries, each with arguments that follow from melflow's options.

In:  resolved options (definition.resolve) and float32 samples in [-1, 1).
Out: [frames, bands] as the library computed it, in float64.

What users can call as well, with verify-parity --reference, is in apps/python/melflow/parity_reference.py; here are
cepstra, and which function stands for which preset.
"""

import functools
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[2] / "apps/python/melflow"))

from parity_reference import (KALDI_WINDOWS, by_ast, by_hifigan, by_kaldi, by_librosa, by_nemo,
                              by_speechbrain, by_torchaudio, by_whisper, kaldi_frames, kaldi_times,
                              librosa_norm, module_alone, none_is_none, set_kaldi, version)

import kaldi_native_fbank as knf
import librosa
import torch
import torchaudio
import torchaudio.compliance.kaldi as torchaudio_kaldi
import transformers

torch.set_num_threads(1)


def mfcc_by_librosa(o, mfcc, x):
    assert mfcc["lifter_style"] == "librosa" and o["log"] == "db" and o["top_db"] == 80
    return librosa.feature.mfcc(
        y=x, sr=o["sample_rate"], n_mfcc=mfcc["n_mfcc"], dct_type=mfcc["dct_type"],
        norm="ortho" if mfcc["ortho"] else None, lifter=mfcc["lifter"], n_fft=o["n_fft"],
        hop_length=o["hop"], n_mels=o["n_mels"]).T.astype(float)


def mfcc_by_torchaudio(o, mfcc, x):
    assert mfcc["dct_type"] == 2 and not mfcc["lifter"] and o["top_db"] == 80
    return torchaudio.transforms.MFCC(
        sample_rate=o["sample_rate"], n_mfcc=mfcc["n_mfcc"],
        norm="ortho" if mfcc["ortho"] else None,
        melkwargs=dict(n_mels=o["n_mels"], n_fft=o["n_fft"], hop_length=o["hop"]),
    )(torch.from_numpy(x)).T.double().numpy()


def mfcc_by_kaldi(o, mfcc, x):
    options = set_kaldi(knf.MfccOptions(), o)
    options.num_ceps, options.cepstral_lifter = mfcc["n_mfcc"], mfcc["lifter"]
    assert mfcc["dct_type"] == 2 and mfcc["ortho"] and mfcc["lifter_style"] == "kaldi"
    return kaldi_frames(knf.OnlineMfcc(options), o, x, mfcc["n_mfcc"])


def by_torchaudio_kaldi(o, x):
    assert o["htk_mode"] is False
    length, shift = kaldi_times(o)
    return torchaudio_kaldi.fbank(
        torch.from_numpy(x)[None] * o["input_scale"], dither=0.0, sample_frequency=o["sample_rate"],
        frame_length=length, frame_shift=shift, energy_floor=o["energy_floor"],
        high_freq=o["fmax"], low_freq=o["fmin"], htk_compat=o["htk_compat"],
        num_mel_bins=o["n_mels"], preemphasis_coefficient=o["preemphasis"],
        raw_energy=o["raw_energy"], use_energy=o["use_energy"], remove_dc_offset=o["remove_dc"],
        snip_edges=o["snip_edges"], use_log_fbank=o["log"] == "ln", use_power=o["power"] == 2,
        blackman_coeff=o["blackman_coeff"], vtln_low=o["vtln_low"], vtln_high=o["vtln_high"], vtln_warp=o["vtln_warp"],
        window_type=KALDI_WINDOWS.get(o["window"], o["window"])).double().numpy()


@functools.cache
def lhotse_layers():
    from unittest.mock import MagicMock
    return module_alone("lhotse.features.kaldi.layers", lhotse=MagicMock(),
                        lhotse__utils=MagicMock())


def by_lhotse(o, x):
    """Fbank's Wav2LogFilterBank; energy as its first column."""
    import torch
    if o["n_fft"] != 1 << (o["win_length"] - 1).bit_length():
        raise ValueError("Lhotse's n_fft is win_length, rounded up to a power of two")
    length, shift = kaldi_times(o)
    assert o["norm"] in ("none", "1") and (o["bin_hz"] == "lhotse" or o["norm"] == "none")
    layers = lhotse_layers().Wav2LogFilterBank(
        sampling_rate=o["sample_rate"], frame_length=length / 1000, frame_shift=shift / 1000,
        remove_dc_offset=o["remove_dc"], preemph_coeff=o["preemphasis"],
        window_type=KALDI_WINDOWS.get(o["window"], o["window"]),
        snip_edges=o["snip_edges"] is not False, energy_floor=o["energy_floor"],
        raw_energy=o["raw_energy"], use_energy=o["use_energy"], use_fft_mag=o["power"] == 1,
        low_freq=o["fmin"], high_freq=o["fmax"], num_filters=o["n_mels"],
        norm_filters=o["norm"] == "1", torchaudio_compatible_mel_scale=o["bin_hz"] != "lhotse")
    return layers(torch.from_numpy(x)[None])[0].double().numpy()


def by_seamless(o, x):
    """Of 80 bands, each with its own mean and deviation; frames are not stacked."""
    assert o["n_mels"] == 80 and o["norm_eps"] == 1e-7 and o["norm_eps_to"] == "variance"
    extractor = transformers.SeamlessM4TFeatureExtractor(stride=1)
    return extractor(x, sampling_rate=o["sample_rate"], pad_to_multiple_of=None,
                     return_tensors="np")["input_features"][0].astype(float)


def by_speech2text(o, x):
    assert o["norm_eps"] == 0 and o["norm_ddof"] == 0
    extractor = transformers.Speech2TextFeatureExtractor(num_mel_bins=o["n_mels"])
    out = extractor._extract_fbank_features(x)
    return extractor.utterance_cmvn(out, len(out), True, o["norm_variance"]).astype(float)


# preset: call, library, version, called function
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
    nemo=(by_nemo, "NeMo", version("nemo_toolkit"), "FilterbankFeatures"),
    speechbrain=(by_speechbrain, "speechbrain", version("speechbrain"),
                 "speechbrain.lobes.features.Fbank"),
    hifigan=(by_hifigan, "HiFi-GAN", version("hifi-gan"), "meldataset.mel_spectrogram"),
    ast=(by_ast, "transformers", transformers.__version__,
         "ASTFeatureExtractor._extract_fbank_features, normalize"))
# Libraries that are compared by the options of another library's preset.
OTHERS = dict(
    lhotse=(by_lhotse, "lhotse", version("lhotse"), "Wav2LogFilterBank"),
    seamless=(by_seamless, "transformers", transformers.__version__, "SeamlessM4TFeatureExtractor"),
    speech2text=(by_speech2text, "transformers", transformers.__version__,
                 "Speech2TextFeatureExtractor"))
MFCCS = dict(
    librosa=(mfcc_by_librosa, "librosa.feature.mfcc"),
    torchaudio=(mfcc_by_torchaudio, "torchaudio.transforms.MFCC"),
    kaldi=(mfcc_by_kaldi, "OnlineMfcc"))
