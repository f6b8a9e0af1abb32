"""The front ends of today's packages, each called in double precision: the judges of front_ends.json.

Out: FRONT_ENDS: name -> (rate [Hz], source, function of float64 samples in [-1, 1) that gives [rows, columns]).

Double precision: modules are run from their source with float32 replaced (DOUBLE), and torch's default is float64. What
needs more than a source file is written anew here, from the source that is named; `anew` says so.
"""

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import math
import re
import sys
import types

import numpy as np

DOUBLE = re.compile(r"transformers\.(audio_utils|feature_extraction_sequence_utils|models\.\w+\.feature_extraction_\w+)$"
                    r"|speechbrain\.(processing|lobes)\.features$|torchlibrosa\.stft$|lhotse\.features\.kaldi\.layers$"
                    r"|nemo\.collections\.asr\.parts\.preprocessing\.features$")
# Of these packages nothing else is run: they import whole frameworks.
ALONE = re.compile(r"(speechbrain|lhotse|nemo)(\.|$)")


class Doubled(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        text = self.get_data(self.get_filename(fullname)).decode()
        for single, double in (("float32", "float64"), ("complex64", "complex128"), (".float()", ".double()")):
            text = text.replace(single, double)
        return compile(text, self.get_filename(fullname), "exec")


class Anything:
    """Stands in for what is imported and not used: a decorator that changes nothing, a logger."""

    def __call__(self, *given, **options):
        return given[0] if len(given) == 1 and callable(given[0]) and not options else self

    def __getattr__(self, name):
        return self


class AnyModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class StandIn(importlib.abc.Loader):
    def create_module(self, spec):
        return AnyModule(spec.name)

    def exec_module(self, module):
        pass


class InDouble(importlib.abc.MetaPathFinder):
    """Finds modules whose source gets double precision in place of single, and stand-ins."""

    def find_spec(self, name, path, target=None):
        if DOUBLE.match(name):
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            spec.loader = Doubled(name, spec.origin)
            return spec
        if not ALONE.match(name):
            return None
        package, *inside = name.split(".")
        spec = importlib.machinery.ModuleSpec(name, StandIn(), is_package=True)
        places = importlib.machinery.PathFinder.find_spec(package).submodule_search_locations
        spec.submodule_search_locations = ["/".join([place, *inside]) for place in places]
        return spec


try:
    import numba  # noqa: F401
except ImportError:  # librosa's compiled loops are not among what is called
    sys.modules["numba"] = AnyModule("numba")
sys.meta_path.insert(0, InDouble())

import torch  # noqa: E402

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
torch.version.cuda = None  # torchaudio compares it with its own
import torchaudio  # noqa: E402
import torchaudio.compliance.kaldi as ta_kaldi  # noqa: E402
import librosa  # noqa: E402
import scipy.signal  # noqa: E402
import transformers  # noqa: E402

FRONT_ENDS = {}


def front_end(name, rate, source):
    def add(function):
        assert name not in FRONT_ENDS, name
        FRONT_ENDS[name] = (rate, source, function)
        return function
    return add


def tensor(x):
    return torch.from_numpy(np.ascontiguousarray(x, dtype=np.float64))


def array(out):
    return np.asarray(out.detach().numpy() if isinstance(out, torch.Tensor) else out, dtype=np.float64)


# ---- transformers

@functools.cache
def extractor(kind, **options):
    return getattr(transformers, kind)(**options)


def hf(name, kind, key="input_features", rate=16000, given=None, transposed=False, call=None, **options):
    """The class of that name, called as its documentation does; rows are the valid ones and those that padding adds."""
    @front_end(name, rate, f"transformers {transformers.__version__}, {kind}")
    def rows(x):
        one = extractor(kind, **options)
        out = one(x, sampling_rate=rate, return_tensors="pt", **(call or {}))[key][0]
        out = array(out)
        if given is not None:
            out = given(out)
        return out.T if transposed else out


def samples(out):
    return np.ravel(out)[:, None]


WINDOWS = dict(transposed=True, call=dict(do_normalize=False))
hf("hf_whisper80", "WhisperFeatureExtractor", transposed=True)
hf("hf_whisper128", "WhisperFeatureExtractor", transposed=True, feature_size=128)
hf("hf_whisper_norm", "WhisperFeatureExtractor", transposed=True, call=dict(do_normalize=True))
hf("hf_qwen25omni", "WhisperFeatureExtractor", transposed=True, feature_size=128, chunk_length=300)
hf("hf_qwen3asr", "Qwen3ASRFeatureExtractor", transposed=True)
hf("hf_dots3", "Dots3NoteFeatureExtractor", transposed=True)
hf("hf_voxtral_rt", "VoxtralRealtimeFeatureExtractor", transposed=True, call=dict(padding=False))
hf("hf_ast", "ASTFeatureExtractor", "input_values")
hf("hf_seamless", "SeamlessM4TFeatureExtractor")
hf("hf_s2t", "Speech2TextFeatureExtractor", num_mel_bins=80)
for _name, _options in dict(pad=dict(padding="pad"), repeatpad={}, rand=dict(truncation="rand_trunc"),
                            repeat=dict(truncation="rand_trunc", padding="repeat")).items():
    hf(f"hf_clap_{_name}", "ClapFeatureExtractor", rate=48000, given=lambda out: out[0], call=dict(_options))
hf("hf_wav2vec2", "Wav2Vec2FeatureExtractor", "input_values", given=samples)
hf("hf_wav2vec2_raw", "Wav2Vec2FeatureExtractor", "input_values", given=samples, do_normalize=False)
hf("hf_omniasr", "OmniASRFeatureExtractor", "input_values", given=samples)
hf("hf_encodec", "EncodecFeatureExtractor", "input_values", 24000, samples)
hf("hf_dac", "DacFeatureExtractor", "input_values", 16000, samples)
hf("hf_kyutai", "KyutaiSpeechToTextFeatureExtractor", "input_values", 24000, samples, audio_delay_seconds=2.5,
   audio_silence_prefix_seconds=1.0)
hf("hf_vibevoice", "VibeVoiceAcousticTokenizerFeatureExtractor", "input_values", 24000, samples)
hf("hf_univnet", "UnivNetFeatureExtractor", rate=24000, call=dict(return_noise=False))
hf("hf_univnet_norm", "UnivNetFeatureExtractor", rate=24000, call=dict(return_noise=False, do_normalize=True))
hf("hf_parakeet", "ParakeetFeatureExtractor")
hf("hf_cohere", "CohereAsrFeatureExtractor", dither=0.0)
hf("hf_nemotron", "NemotronAsrStreamingFeatureExtractor")
hf("hf_lasr", "LasrFeatureExtractor")
hf("hf_gemma3n", "Gemma3nAudioFeatureExtractor")
hf("hf_inkling", "InklingFeatureExtractor")
hf("hf_phi4", "Phi4MultimodalFeatureExtractor", "audio_input_features")
hf("hf_granite5", "GraniteSpeech5FeatureExtractor")
hf("hf_funasr_nano", "FunAsrNanoFeatureExtractor")
hf("hf_neucodec", "NeuCodecFeatureExtractor")
hf("hf_xcodec2", "Xcodec2FeatureExtractor")
hf("hf_peaudio", "PeAudioFeatureExtractor", "input_values", 48000, samples)


@front_end("hf_gemma4", 16000, f"transformers {transformers.__version__}, Gemma4AudioFeatureExtractor")
def gemma4(x):
    return array(extractor("Gemma4AudioFeatureExtractor")([x], sampling_rate=16000, return_tensors="pt")["input_features"][0])


@front_end("hf_granite", 16000, f"transformers {transformers.__version__}, GraniteSpeechFeatureExtractor")
def granite(x):
    return array(extractor("GraniteSpeechFeatureExtractor")(tensor(x))["input_features"][0])


@front_end("hf_speecht5_mel", 16000, f"transformers {transformers.__version__}, SpeechT5FeatureExtractor(audio_target)")
def speecht5(x):
    return array(extractor("SpeechT5FeatureExtractor")(audio_target=x, sampling_rate=16000, return_tensors="pt")["input_values"][0])


@front_end("hf_pop2piano_mel", 22050, f"transformers {transformers.__version__}, Pop2PianoFeatureExtractor.mel_spectrogram")
def pop2piano(x):
    # The class itself asks for essentia, which finds beats.
    module = importlib.import_module("transformers.models.pop2piano.feature_extraction_pop2piano")
    kind = module.Pop2PianoFeatureExtractor
    one = kind.__new__(getattr(kind, "__wrapped__", kind))
    from transformers.audio_utils import mel_filter_bank
    one.window_size, one.hop_length = 4096, 1024
    one.use_mel, one.sampling_rate = True, 22050
    one.mel_filters = mel_filter_bank(2049, 512, 10.0, 11025.0, 22050, norm=None, mel_scale="htk")
    return np.log(np.clip(module.Pop2PianoFeatureExtractor.mel_spectrogram(one, x[None])[0], 1e-6, None)).T


@front_end("hf_gemma4u", 16000, f"anew from transformers {transformers.__version__}, Gemma4UnifiedAudioFeatureExtractor")
def gemma4_unified(x):
    return np.pad(x, (0, -len(x) % 640)).reshape(-1, 640)


NORMS = [round(0.5 + (7 * i % 80) / 40, 4) for i in range(80)]
hf("hf_clvp", "ClvpFeatureExtractor", rate=22050, transposed=True)
hf("hf_clvp_norms", "ClvpFeatureExtractor", rate=22050, transposed=True, mel_norms=tuple(NORMS))


# ---- Kaldi and what follows it

def kaldi_fbank(x, scale=32768, sample_frequency=16000, **options):
    return ta_kaldi.fbank(tensor(x)[None] * scale, sample_frequency=sample_frequency, **options)


def kaldi(name, source, function, rate=16000):
    front_end(name, rate, source)(lambda x: array(function(x)))


TA_KALDI = f"torchaudio {torchaudio.__version__}, compliance.kaldi"


def less_mean(rows):
    return rows - rows.mean(0)


def mfcc(x, rate=16000, **options):
    return ta_kaldi.mfcc(tensor(x)[None] * 32768, sample_frequency=rate, **options)


HIRES = dict(num_mel_bins=40, num_ceps=40, low_freq=20, high_freq=-400)
VOX = dict(num_mel_bins=30, num_ceps=30, low_freq=20, high_freq=7600, snip_edges=False, use_energy=True)
kaldi("kaldi_fbank23", TA_KALDI, kaldi_fbank)
kaldi("kaldi_fbank40", TA_KALDI, lambda x: kaldi_fbank(x, num_mel_bins=40))
kaldi("kaldi_fbank80", TA_KALDI, lambda x: kaldi_fbank(x, num_mel_bins=80))
kaldi("kaldi_mfcc13", TA_KALDI, lambda x: mfcc(x, use_energy=True))
kaldi("kaldi_mfcc_hires40", TA_KALDI, lambda x: mfcc(x, **HIRES))
kaldi("kaldi_8k", TA_KALDI, lambda x: mfcc(x, 8000, **HIRES), 8000)
kaldi("kaldi_vox30", TA_KALDI, lambda x: mfcc(x, **VOX))
kaldi("kaldi_vox30_cmvn", TA_KALDI + ", functional.sliding_window_cmn",
      lambda x: torchaudio.functional.sliding_window_cmn(mfcc(x, **VOX), 300, center=True, norm_vars=False))
kaldi("wenet_fbank80", "WeNet's compute_fbank: " + TA_KALDI, lambda x: kaldi_fbank(x, num_mel_bins=80, energy_floor=0.0))
kaldi("wespeaker", "WeSpeaker's compute_fbank: " + TA_KALDI,
      lambda x: less_mean(kaldi_fbank(x, num_mel_bins=80, window_type="hamming")))
kaldi("3dspeaker_campplus", "3D-Speaker's FBank: " + TA_KALDI, lambda x: less_mean(kaldi_fbank(x, 1, num_mel_bins=80)))
kaldi("beats", "BEATs' preprocess: " + TA_KALDI,
      lambda x: (kaldi_fbank(x, num_mel_bins=128) - 15.41663) / (2 * 6.55582))
kaldi("eat_audiomae", "EAT's loader: " + TA_KALDI, lambda x: (torch.nn.functional.pad(
    f := kaldi_fbank(x - x.mean(), 1, num_mel_bins=128, window_type="hanning", htk_compat=True, use_energy=False),
    (0, 0, 0, max(0, 1024 - len(f))))[:1024] + 4.268) / (2 * 4.569))
kaldi("sherpa_fbank80", "sherpa-onnx's FeatureExtractorConfig: " + TA_KALDI,
      lambda x: kaldi_fbank(x, 1, num_mel_bins=80, high_freq=-400, snip_edges=False))


def low_frame_rate(rows, m, n):
    """FunASR's apply_lfr."""
    count = math.ceil(len(rows) / n)
    left = (m - 1) // 2
    rows = torch.cat([rows[:1].repeat(left, 1), rows])
    rows = torch.cat([rows, rows[-1:].repeat(max(0, (count - 1) * n + m - len(rows)), 1)])
    return torch.stack([rows[i * n:i * n + m].reshape(-1) for i in range(count)])


kaldi("funasr_lfr76", "anew from FunASR 1.4.16, wav_frontend.py, on " + TA_KALDI, lambda x: low_frame_rate(
    kaldi_fbank(x, num_mel_bins=80, window_type="hamming", energy_floor=0.0), 7, 6))
hf("wenet_w2vbert", "SeamlessM4TFeatureExtractor", stride=1, call=dict(pad_to_multiple_of=1))


# ---- Lhotse

@functools.cache
def one_of(module, kind, **options):
    return getattr(importlib.import_module(module), kind)(**options)


def by_lhotse(name, kind, **options):
    front_end(name, 16000, f"lhotse 1.33.0, {kind}")(lambda x: array(one_of("lhotse.features.kaldi.layers", kind, **options)(tensor(x)[None])[0]))


by_lhotse("lh_fbank80", "Wav2LogFilterBank", num_filters=80, snip_edges=False, energy_floor=1e-10)
by_lhotse("lh_fbank_own", "Wav2LogFilterBank", num_filters=80, snip_edges=False, energy_floor=1e-10, torchaudio_compatible_mel_scale=False)
by_lhotse("lh_mfcc", "Wav2MFCC", snip_edges=False, energy_floor=1e-10, num_filters=23, num_ceps=13, use_energy=False)
by_lhotse("lh_logspec", "Wav2LogSpec", snip_edges=False, energy_floor=1e-10, use_energy=False)


# ---- SpeechBrain

def by_speechbrain(name, kind="Fbank", **options):
    front_end(name, 16000, f"speechbrain 1.1.2, lobes.features.{kind}")(
        lambda x: array(one_of("speechbrain.lobes.features", kind, **options).eval()(tensor(x)[None])[0]))


by_speechbrain("sb_fbank40")
by_speechbrain("sb_ecapa80", n_mels=80)
by_speechbrain("sb_asr80_512", n_mels=80, n_fft=512, win_length=32)
by_speechbrain("sb_xvector24", n_mels=24)
by_speechbrain("sb_fbank_deltas", deltas=True)
by_speechbrain("sb_mfcc", "MFCC")


# ---- NeMo

def by_nemo(name, rate=16000, **options):
    front_end(name, rate, "NeMo 3.0.0, FilterbankFeatures")(lambda x: array(one_of(
        "nemo.collections.asr.parts.preprocessing.features", "FilterbankFeatures",
        **{"sample_rate": rate, "n_window_size": 400, "n_window_stride": 160, "n_fft": 512, "normalize": "per_feature", "dither": 0.0,
           "pad_to": 0, **options}).eval()(tensor(x)[None], torch.tensor([len(x)]))[0][0].T))


VOCODER = dict(rate=22050, n_window_size=1024, n_window_stride=256, n_fft=1024, nfilt=80, highfreq=8000, mag_power=1.0, preemph=None,
               normalize=None, log_zero_guard_type="add", log_zero_guard_value=1e-5)
by_nemo("nemo_fastconformer80", nfilt=80)
by_nemo("nemo_parakeet128", nfilt=128)
by_nemo("nemo_padto16", nfilt=80, pad_to=16)
by_nemo("nemo_streaming", nfilt=80, normalize="NA")
by_nemo("nemo_quartznet64", nfilt=64, n_window_size=320)
by_nemo("nemo_allfeat", nfilt=80, normalize="all_features")
by_nemo("nemo_fastpitch", **VOCODER)
by_nemo("nemo_exactpad", **{**VOCODER, "exact_pad": True, "log_zero_guard_type": "clamp"})


# ---- torchaudio, librosa and what calls them

TA = f"torchaudio {torchaudio.__version__}"


def ta_mel(x, **options):
    return torchaudio.transforms.MelSpectrogram(**options)(tensor(x)).T


def rows_of(name, rate, source):
    return front_end(name, rate, source)


@rows_of("ta_mel", 16000, TA + ", transforms.MelSpectrogram")
def _(x):
    return array(ta_mel(x))


@rows_of("ta_mfcc", 16000, TA + ", transforms.MFCC")
def _(x):
    return array(torchaudio.transforms.MFCC()(tensor(x)).T)


@rows_of("ta_emformer_rnnt", 16000, "anew from torchaudio's rnnt_pipeline.py, on " + TA)
def _(x):
    out = ta_mel(x, sample_rate=16000, n_fft=400, n_mels=80, hop_length=160) * 10 ** (2 * 20 * math.log10(32767) / 20)
    out[out > math.e] = torch.log(out[out > math.e])
    out[out <= math.e] = out[out <= math.e] / math.e
    return array(out)


@rows_of("vocos24", 24000, "Vocos' feature_extractors.py, on " + TA)
def _(x):
    return array(ta_mel(x, sample_rate=24000, n_fft=1024, hop_length=256, n_mels=100, power=1).clip(1e-7).log())


@rows_of("vocos_same", 24000, "Vocos' feature_extractors.py, padding same, on " + TA)
def _(x):
    return array(ta_mel(np.pad(x, 384, mode="reflect"), sample_rate=24000, n_fft=1024, hop_length=256, n_mels=100, power=1, center=False).clip(1e-7).log())


@rows_of("f5tts", 24000, "F5-TTS' modules.py, on " + TA)
def _(x):
    return array(ta_mel(x, sample_rate=24000, n_fft=1024, hop_length=256, n_mels=100, power=1).clip(1e-5).log())


@rows_of("tortoise_xtts", 22050, "Tortoise's TorchMelSpectrogram, on " + TA)
def _(x):
    return array(ta_mel(x, sample_rate=22050, n_fft=1024, hop_length=256, n_mels=80, f_max=8000, norm="slaney").clip(1e-5).log() / torch.tensor(NORMS))


@rows_of("styletts2", 24000, "StyleTTS 2's meldataset.py, on " + TA)
def _(x):
    return array((torch.log(1e-5 + ta_mel(x, n_mels=80, n_fft=2048, win_length=1200, hop_length=300)) + 4) / 4)


@rows_of("dasheng_ced", 16000, "Dasheng's front end, on " + TA)
def _(x):
    return array(torchaudio.transforms.AmplitudeToDB(top_db=120)(ta_mel(x, sample_rate=16000, win_length=512, n_fft=512, hop_length=160, n_mels=64)))


@rows_of("ecapa_taoruijie", 16000, "anew from ECAPA-TDNN's model.py (TaoRuijie), on " + TA)
def _(x):
    x = np.concatenate([[x[0] - 0.97 * x[1]], x[1:] - 0.97 * x[:-1]])
    return array(less_mean((ta_mel(x, sample_rate=16000, n_fft=512, win_length=400, hop_length=160, f_min=20, f_max=7600, n_mels=80,
                                   window_fn=torch.hamming_window) + 1e-6).log()))


@rows_of("passt", 32000, "anew from hear21passt 0.0.26, AugmentMelSTFT, on " + TA_KALDI)
def _(x):
    x = tensor(x[1:] - 0.97 * x[:-1])
    power = torch.stft(x, 1024, 320, 800, torch.hann_window(800, periodic=False), return_complex=True).abs() ** 2
    bank = torch.nn.functional.pad(ta_kaldi.get_mel_banks(128, 1024, 32000, 0.0, 15500.0, 100.0, -500.0, 1.0)[0], (0, 1))
    return array((((bank.to(power.dtype) @ power + 1e-5).log() + 4.5) / 5).T)


LIBROSA = f"librosa {librosa.__version__}"


@rows_of("librosa_mel", 22050, LIBROSA + ", feature.melspectrogram")
def _(x):
    return librosa.feature.melspectrogram(y=x, sr=22050).T


@rows_of("librosa_logmel", 22050, LIBROSA + ", power_to_db(ref=np.max)")
def _(x):
    return librosa.power_to_db(librosa.feature.melspectrogram(y=x, sr=22050, n_mels=80), ref=np.max).T


@rows_of("librosa_mfcc", 22050, LIBROSA + ", feature.mfcc")
def _(x):
    return librosa.feature.mfcc(y=x, sr=22050).T


@rows_of("resemblyzer", 16000, "Resemblyzer 0.1.4, wav_to_mel_spectrogram: " + LIBROSA)
def _(x):
    return librosa.feature.melspectrogram(y=x, sr=16000, n_fft=400, hop_length=160, n_mels=40).T


@rows_of("pwg24", 24000, "ParallelWaveGAN's logmelfilterbank: " + LIBROSA)
def _(x):
    spectrum = np.abs(librosa.stft(x, n_fft=2048, hop_length=300, win_length=1200, window="hann", pad_mode="reflect")).T
    return np.log10(np.maximum(1e-10, spectrum @ bank_of(24000, 2048, 80, 80, 7600).T))


def bank_of(rate, n_fft, n_mels, fmin=0.0, fmax=None):
    return librosa.filters.mel(sr=rate, n_fft=n_fft, n_mels=n_mels, fmin=fmin, fmax=fmax, dtype=np.float64)


def magnitudes(x, n_fft, hop, win=None, pad=0, offset=0.0, center=False, window=torch.hann_window):
    if pad:
        x = np.pad(x, pad, mode="reflect")
    win = win or n_fft
    spectrum = torch.stft(tensor(x), n_fft, hop, win, window(win) if window else None, center=center, return_complex=True)
    return torch.sqrt(torch.view_as_real(spectrum).pow(2).sum(-1) + offset).T.numpy()


def vocoder(name, rate, source, n_fft, hop, n_mels, fmin=0.0, fmax=None, log=np.log, floor=1e-5, offset=1e-9, center=False):
    @front_end(name, rate, "anew from " + source)
    def rows(x):
        pad = 0 if center else (n_fft - hop) // 2
        bands = magnitudes(x, n_fft, hop, pad=pad, offset=offset, center=center) @ bank_of(rate, n_fft, n_mels, fmin, fmax).T
        return log(np.maximum(bands, floor))


vocoder("hifigan22", 22050, "HiFi-GAN's meldataset.py", 1024, 256, 80, fmax=8000)
vocoder("bigvgan24_100", 24000, "BigVGAN's meldataset.py", 1024, 256, 100, fmax=12000)
vocoder("bigvgan44_128", 44100, "BigVGAN's meldataset.py", 2048, 512, 128)
vocoder("cosyvoice2", 24000, "Matcha-TTS' audio.py, as CosyVoice 2 sets it", 1920, 480, 80, fmax=8000)
vocoder("melgan", 22050, "MelGAN's Audio2Mel", 1024, 256, 80, log=np.log10, offset=0.0)
vocoder("tacotron2", 22050, "Tacotron 2's layers.py", 1024, 256, 80, fmax=8000, offset=0.0, center=True)


# ---- others, anew

@functools.cache
def panns(rate, hop, fmax):
    import torchlibrosa
    return (torchlibrosa.Spectrogram(n_fft=1024, hop_length=hop), torchlibrosa.LogmelFilterBank(
        sr=rate, n_fft=1024, n_mels=64, fmin=50, fmax=fmax, ref=1.0, amin=1e-10, top_db=None))


def by_panns(name, rate, hop, fmax):
    @front_end(name, rate, "torchlibrosa 0.1.0")
    def rows(x):
        spectrogram, bank = panns(rate, hop, fmax)
        return array(bank.double()(spectrogram.double()(tensor(x)[None]))[0, 0])


by_panns("panns_cnn14", 32000, 320, 14000)
by_panns("laion_clap_htsat", 48000, 480, 14000)  # without its rounding of samples to 16 bits
by_panns("msclap2023", 44100, 320, 8000)


def hertz_to_mel(hz):
    return 1127.0 * np.log(1.0 + np.asarray(hz) / 700.0)


def tensorflow_bank(rate, bins, n_mels, low, high):
    """torchvggish's spectrogram_to_mel_matrix, tf.signal.linear_to_mel_weight_matrix."""
    at = hertz_to_mel(np.linspace(0.0, rate / 2, bins))[:, None]
    edges = np.linspace(hertz_to_mel(low), hertz_to_mel(high), n_mels + 2)
    rise, fall = (at - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - at) / (edges[2:] - edges[1:-1])
    out = np.maximum(0.0, np.minimum(rise, fall))
    out[0] = 0.0
    return out


def framed(x, size, hop):
    return np.lib.stride_tricks.sliding_window_view(x, size)[::hop] if len(x) >= size else np.zeros((0, size))


def vggish(x, offset):
    window = 0.5 - 0.5 * np.cos(2 * np.pi / 400 * np.arange(400))
    spectrum = np.abs(np.fft.rfft(framed(x, 400, 160) * window, 512))
    return np.log(spectrum @ tensorflow_bank(16000, 257, 64, 125, 7500) + offset)


front_end("vggish", 16000, "anew from torchvggish 0.2, mel_features.py")(lambda x: vggish(x, 0.01))
front_end("yamnet", 16000, "anew from YAMNet's features.py")(lambda x: vggish(x, 0.001))


@front_end("perch_melspec", 32000, "anew from chirp's frontend.py (kernel 2048, 60 to 10000 Hz)")
def perch(x):
    _, _, z = scipy.signal.stft(x, nperseg=2048, noverlap=2048 - 320, window="hann", padded=False, boundary="zeros")
    bands = np.abs(z.T) @ tensorflow_bank(32000, 1025, 160, 60, 10000)
    bands = bands[:-1] if len(x) % 320 == 0 else bands
    return 0.1 * np.log(np.maximum(bands, 1e-2))


def espnet(x, win, hop, window):
    power = magnitudes(x, 512, hop, win, center=True, window=window) ** 2
    return np.log(np.maximum(power @ bank_of(16000, 512, 80, 0, 8000).T, 1e-10))


front_end("espnet_default", 16000, "anew from ESPnet's Stft and LogMel")(lambda x: espnet(x, 512, 128, torch.hann_window))
front_end("espnet_asr_400_160", 16000, "anew from ESPnet's Stft, LogMel, utterance_mvn")(
    lambda x: less_mean(espnet(x, 400, 160, torch.hann_window)))


@front_end("espnet_tts", 24000, "anew from ESPnet's LogMelFbank")
def espnet_tts(x):
    amplitude = np.sqrt(np.maximum(magnitudes(x, 1024, 256, center=True) ** 2, 1e-10))
    return np.log10(np.maximum(amplitude @ bank_of(24000, 1024, 80, 80, 7600).T, 1e-10))


@front_end("redimnet_tfmel", 16000, "anew from ReDimNet's TFMelBanks")
def redimnet(x):
    import front_end_cases
    x = np.pad(np.concatenate([[x[0] - 0.97 * x[1]], x[1:] - 0.97 * x[:-1]]), 80)
    power = np.abs(np.fft.rfft(framed(x, 400, 160) * scipy.signal.windows.hamming(400), 512))[:, :256] ** 2
    bands = np.clip(np.clip(power, 1e-8, 1e8) @ front_end_cases.redimnet_filters()[:, :256].T, 1e-8, 1e8)
    return less_mean(np.log(bands + 1e-8))


@front_end("psf_mfcc", 16000, "python_speech_features 0.6, mfcc")
def psf_mfcc(x):
    raise NotImplementedError("its energy is of the spectrum")


@front_end("lh_whisper", 16000, "anew from lhotse 1.33.0, whisper_fbank.py")
def lhotse_whisper(x):
    padded = x
    power = magnitudes(padded, 400, 160, center=True) ** 2
    log = np.log10(np.maximum(power[:-1] @ bank_of(16000, 400, 80).T, 1e-10))
    return (np.maximum(log, log.max() - 8) + 4) / 4
