"""Models' own files as their libraries write them, and what the library computes from each.

Out: FILES: name -> (rate [Hz], source, write(folder), judge(folder, x)): `write` writes the files by the library, `judge` has the library
     read them again and compute rows of float64 samples in [-1, 1), in double precision.
     PRESETS: name -> the value of `preset` where it is not the folder; "FILE" stands for the folder.
     REFUSED: names of files that melflow refuses, with a part of the message.
"""

import importlib
import io
import json
import os
import subprocess
import sys

import numpy as np
import torch
import torchaudio
import transformers
import yaml

import front_end_libraries as libraries

FILES, PRESETS, REFUSED = {}, {}, {}
array, tensor = libraries.array, libraries.tensor


def add(name, rate, source, write, judge, preset=None):
    assert name not in FILES, name
    FILES[name] = (rate, source, write, judge)
    if preset is not None:
        PRESETS[name] = preset


def text_file(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


# ---- Transformers

def hf(name, kind, key="input_features", rate=16000, given=None, transposed=False, call=None, preset=None, nested=False, read=None, **options):
    """`read`: arguments beside the file's when the library reads it, as the preset says them."""
    one = getattr(transformers, kind)

    def write(folder):
        of = one(**options)
        if nested:
            text_file(folder, "processor_config.json", json.dumps({"feature_extractor": json.loads(of.to_json_string()),
                                                                   "processor_class": "Processor"}, indent=2))
        else:
            of.save_pretrained(folder)

    def judge(folder, x):
        path = os.path.join(folder, "processor_config.json" if nested else "preprocessor_config.json")
        with open(path, encoding="utf-8") as file:
            fields = json.load(file)
        fields = fields["feature_extractor"] if nested else fields
        of = one.from_dict({**fields, **(read or {})})
        out = of(x, sampling_rate=of.sampling_rate, return_tensors="pt", **(call or {}))[key][0]
        out = array(out)
        out = given(out) if given is not None else out
        return out.T if transposed else out

    add(name, rate, f"transformers {transformers.__version__}, {kind}", write, judge, preset)


def samples(out):
    return np.ravel(out)[:, None]


hf("hf_whisper", "WhisperFeatureExtractor", transposed=True)
hf("hf_whisper128", "WhisperFeatureExtractor", transposed=True, feature_size=128)
hf("hf_whisper_nested", "WhisperFeatureExtractor", transposed=True, nested=True, feature_size=128)
hf("hf_whisper_5s", "WhisperFeatureExtractor", transposed=True, chunk_length=5, feature_size=64, hop_length=200)
hf("hf_whisper_norm", "WhisperFeatureExtractor", transposed=True, chunk_length=5, call=dict(do_normalize=True),
   preset={"file": "FILE", "do_normalize": True})
hf("hf_qwen3asr", "Qwen3ASRFeatureExtractor", transposed=True)
hf("hf_dots3", "Dots3NoteFeatureExtractor", transposed=True)
hf("hf_voxtral_rt", "VoxtralRealtimeFeatureExtractor", transposed=True, call=dict(padding=False))
hf("hf_voxtral_rt_max", "VoxtralRealtimeFeatureExtractor", transposed=True, call=dict(padding=False), global_log_mel_max=None)
hf("hf_ast", "ASTFeatureExtractor", "input_values")
hf("hf_ast_raw", "ASTFeatureExtractor", "input_values", do_normalize=False, num_mel_bins=64, max_length=128)
hf("hf_ast_other", "ASTFeatureExtractor", "input_values", mean=-5.5, std=3.25, max_length=200)
hf("hf_seamless", "SeamlessM4TFeatureExtractor")
hf("hf_seamless_stride1", "SeamlessM4TFeatureExtractor", stride=1, padding_value=0.5)
hf("hf_seamless_stride3", "SeamlessM4TFeatureExtractor", stride=3, num_mel_bins=40)
hf("hf_s2t", "Speech2TextFeatureExtractor")
hf("hf_s2t_means", "Speech2TextFeatureExtractor", normalize_vars=False, num_mel_bins=40)
hf("hf_s2t_plain", "Speech2TextFeatureExtractor", do_ceptral_normalize=False)
hf("hf_clap", "ClapFeatureExtractor", rate=48000, given=lambda out: out[0])
hf("hf_clap_rand", "ClapFeatureExtractor", rate=48000, given=lambda out: out[0], truncation="rand_trunc", padding="repeat")
hf("hf_clap_pad", "ClapFeatureExtractor", rate=48000, given=lambda out: out[0], padding="pad", frequency_min=50, max_length_s=3)
hf("hf_clvp", "ClvpFeatureExtractor", rate=22050, transposed=True)
hf("hf_clvp_norms", "ClvpFeatureExtractor", rate=22050, transposed=True, mel_norms=[0.5 + i / 64 for i in range(80)])
hf("hf_univnet", "UnivNetFeatureExtractor", rate=24000, call=dict(return_noise=False))
hf("hf_univnet_norm", "UnivNetFeatureExtractor", rate=24000, call=dict(return_noise=False), do_normalize=True, compression_factor=2.0)
hf("hf_univnet_factor", "UnivNetFeatureExtractor", rate=24000, call=dict(return_noise=False), compression_factor=0.5, fmax=8000.0, num_mel_bins=80)
hf("hf_parakeet", "ParakeetFeatureExtractor")
hf("hf_parakeet128", "ParakeetFeatureExtractor", feature_size=128, preemphasis=None, hop_length=200)
hf("hf_cohere", "CohereAsrFeatureExtractor", preset={"file": "FILE", "dither": 0}, read=dict(dither=0.0))
hf("hf_cohere_dither", "CohereAsrFeatureExtractor")
REFUSED["hf_cohere_dither"] = "dither: this needs the noise of torch's generator"
hf("hf_nemotron", "NemotronAsrStreamingFeatureExtractor", mel_filters_dtype="float32")
hf("hf_lasr", "LasrFeatureExtractor")
hf("hf_lasr_other", "LasrFeatureExtractor", feature_size=64, hop_length=200, win_length=512)
hf("hf_gemma3n", "Gemma3nAudioFeatureExtractor")
hf("hf_gemma3n_signal", "Gemma3nAudioFeatureExtractor", preemphasis_htk_flavor=False, fft_overdrive=False)
hf("hf_gemma3n_bins", "Gemma3nAudioFeatureExtractor", per_bin_mean=[-i / 16 for i in range(128)],
   per_bin_stddev=[1 + i / 64 for i in range(128)], preemphasis=0.0)
hf("hf_inkling", "InklingFeatureExtractor")
hf("hf_phi4", "Phi4MultimodalFeatureExtractor", "audio_input_features")
hf("hf_phi4_40", "Phi4MultimodalFeatureExtractor", "audio_input_features", feature_size=40, preemphasis=0.9)
hf("hf_granite5", "GraniteSpeech5FeatureExtractor")
REFUSED["hf_granite5"] = "no options give its number of frames"
hf("hf_funasr_nano", "FunAsrNanoFeatureExtractor")
hf("hf_funasr_nano_51", "FunAsrNanoFeatureExtractor", num_frames_lfr=5, stride_lfr=1, window="povey", frame_length=20)
hf("hf_neucodec", "NeuCodecFeatureExtractor")
hf("hf_xcodec2", "Xcodec2FeatureExtractor")
hf("hf_wav2vec2", "Wav2Vec2FeatureExtractor", "input_values", given=samples)
hf("hf_wav2vec2_raw", "Wav2Vec2FeatureExtractor", "input_values", given=samples, do_normalize=False)
hf("hf_omniasr", "OmniASRFeatureExtractor", "input_values", given=samples)
hf("hf_encodec", "EncodecFeatureExtractor", "input_values", 24000, samples)
hf("hf_encodec_chunks", "EncodecFeatureExtractor", "input_values", 24000, samples, chunk_length_s=0.25, overlap=0.125)
hf("hf_dac", "DacFeatureExtractor", "input_values", 16000, samples)
hf("hf_dia", "DiaFeatureExtractor", "input_values", 44100, samples, sampling_rate=44100, hop_length=600)
hf("hf_kyutai", "KyutaiSpeechToTextFeatureExtractor", "input_values", 24000, samples, audio_delay_seconds=2.5, audio_silence_prefix_seconds=1.0)
hf("hf_vibevoice", "VibeVoiceAcousticTokenizerFeatureExtractor", "input_values", 24000, samples)
hf("hf_vibevoice_plain", "VibeVoiceAcousticTokenizerFeatureExtractor", "input_values", 24000, samples, normalize_audio=False, pad_to_multiple_of=1600)
hf("hf_peaudio", "PeAudioFeatureExtractor", "input_values", 48000, samples)
hf("hf_muse", "MuseSparkFeatureExtractor", "input_values", 24000, samples)
hf("hf_wavtokenizer", "WavTokenizerFeatureExtractor", "input_values", 24000, samples, normalize_audio=True)
hf("hf_pockettts", "PocketTTSFeatureExtractor", "input_values", 24000, samples, end_on_pause=False)
hf("hf_pockettts_pause", "PocketTTSFeatureExtractor", "input_values", 24000, samples)
REFUSED["hf_pockettts_pause"] = "end_on_pause: this needs an end at the last loud stretch"
hf("hf_speecht5", "SpeechT5FeatureExtractor", "input_values", given=samples, do_normalize=True)


def of_target(folder, x):
    of = transformers.SpeechT5FeatureExtractor.from_pretrained(folder)
    return array(of(audio_target=x, sampling_rate=of.sampling_rate, return_tensors="pt")["input_values"][0])


add("hf_speecht5_target", 16000, "transformers, SpeechT5FeatureExtractor(audio_target)",
    lambda folder: transformers.SpeechT5FeatureExtractor(win_length=50, num_mel_bins=60, win_function="hamming_window").save_pretrained(folder),
    of_target, {"file": "FILE", "audio_target": True})


def gemma4(folder, x):
    of = transformers.Gemma4AudioFeatureExtractor.from_pretrained(folder)
    return array(of([x], sampling_rate=of.sampling_rate, return_tensors="pt")["input_features"][0])


add("hf_gemma4", 16000, "transformers, Gemma4AudioFeatureExtractor",
    lambda folder: transformers.Gemma4AudioFeatureExtractor(feature_size=64, preemphasis=0.9).save_pretrained(folder), gemma4)
add("hf_granite", 16000, "transformers, GraniteSpeechFeatureExtractor",
    lambda folder: transformers.GraniteSpeechFeatureExtractor().save_pretrained(folder),
    lambda folder, x: array(transformers.GraniteSpeechFeatureExtractor.from_pretrained(folder)(tensor(x))["input_features"][0]))


# ---- Lhotse: to_yaml in a process of its own, as its layers alone are read here.

LAYERS = {"kaldi-fbank": "Wav2LogFilterBank", "kaldi-mfcc": "Wav2MFCC", "kaldi-spectrogram": "Wav2Spec", "kaldi-log-spectrogram": "Wav2LogSpec"}


def lhotse(name, kind, **options):
    def write(folder):
        code = (f"import torch; torch.version.cuda = None\nimport lhotse\nfrom lhotse.features.kaldi.extractors import *\n"
                f"{kind}({kind}Config(**{options!r})).to_yaml({os.path.join(folder, 'feature_config.yaml')!r})")
        subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)

    def judge(folder, x):
        with open(os.path.join(folder, "feature_config.yaml"), encoding="utf-8") as file:
            fields = yaml.safe_load(file)
        fields.pop("device")
        layer = LAYERS[fields.pop("feature_type")]
        return array(getattr(importlib.import_module("lhotse.features.kaldi.layers"), layer)(**fields)(tensor(x)[None])[0])

    add(name, options.get("sampling_rate", 16000), f"lhotse 1.33.0, {kind}", write, judge)


lhotse("lh_fbank", "Fbank")
lhotse("lh_fbank_own", "Fbank", torchaudio_compatible_mel_scale=False, norm_filters=True, num_mel_bins=40, window_type="hamming")
lhotse("lh_fbank_8k", "Fbank", sampling_rate=8000, high_freq=0.0, snip_edges=True, window_type="blackman", use_fft_mag=True)
lhotse("lh_mfcc", "Mfcc")
lhotse("lh_mfcc_other", "Mfcc", num_ceps=20, num_filters=40, cepstral_lifter=10, preemph_coeff=0.0, remove_dc_offset=False)
lhotse("lh_spectrogram", "Spectrogram", round_to_power_of_two=False)
lhotse("lh_logspec", "LogSpectrogram", frame_length=0.02, window_type="hanning")


# ---- Kaldi: files as its recipes have them, computed by torchaudio's functions of the same options.

def kaldi(name, function, text, rate=16000, preset=None):
    def judge(folder, x):
        options = {"energy_floor": 0.0}
        with open(os.path.join(folder, name + ".conf"), encoding="utf-8") as file:
            for line in file:
                line = line.split("#")[0].strip()
                if line:
                    key, _, value = line[2:].partition("=")
                    value = value.strip()
                    known = {"true": True, "": True, "false": False}
                    options[key.strip().replace("-", "_")] = known[value.lower()] if value.lower() in known else value if value.isalpha() else (
                        float(value) if "." in value or "freq" in key else int(value))
        for not_there in ("allow_downsample", "output_format", "verbose"):
            options.pop(not_there, None)
        return array(getattr(torchaudio.compliance.kaldi, function)(tensor(x)[None] * 32768, **options))
    add(name, rate, "Kaldi's options, computed by torchaudio's compliance.kaldi", lambda folder: text_file(folder, name + ".conf", text), judge, preset)


kaldi("fbank_80", "fbank", "# 80 bands, as WeNet's and AISHELL's recipes\n--sample-frequency=16000\n--num-mel-bins=80\n--dither=0\n")
kaldi("fbank_hires", "fbank", "--use-energy=false   # no\n--num-mel-bins=40\n--low-freq=20\n--high-freq=-400\n--window-type=hamming\n--dither=0.0\n"
      "--use-log-fbank=true\n--snip-edges=false\n")
kaldi("fbank_energy", "fbank", "--use-energy\n--raw-energy=false\n--use-power=false\n--dither=0\n--frame-length=20\n--frame-shift=8\n")
kaldi("mfcc_13", "mfcc", "--use-energy=false   # only non-default option.\n--dither=0\n")
kaldi("mfcc_hires", "mfcc", "# config for high-resolution MFCC features, intended for neural network training\n--use-energy=false   # use average of log energy, not "
      "energy.\n--num-mel-bins=40     # similar to Google's setup.\n--num-ceps=40     # there is no dimensionality reduction.\n--low-freq=20     # low "
      "cutoff frequency for mel bins\n--high-freq=-400 # high cutoff frequently, relative to Nyquist of 8000 (=7600)\n--dither=0\n")
kaldi("mfcc_8k", "mfcc", "--sample-frequency=8000\n--frame-length=25 # the default is 25\n--low-freq=20\n--high-freq=3700\n--num-mel-bins=23\n"
      "--num-ceps=20\n--snip-edges=false\n--allow-downsample=false\n--dither=0\n--use-energy=true\n--cepstral-lifter=0\n", 8000)


# ---- NeMo: the part `preprocessor` of model_config.yaml; the class's own reading of its arguments is written anew.

FASTCONFORMER = dict(_target_="nemo.collections.asr.modules.AudioToMelSpectrogramPreprocessor", sample_rate=16000, normalize="per_feature",
                     window_size=0.025, window_stride=0.01, window="hann", features=80, n_fft=512, log=True, frame_splicing=1, dither=1e-5,
                     pad_to=0, pad_value=0.0)


# Arguments of the class that are not those of FilterbankFeatures, or have no influence on it.
OF_NEMO = {"_target_", "dither", "use_torchaudio", "stft_conv", "stft_exact_pad", "nb_augmentation_prob", "nb_max_freq", "rng", "frame_splicing"}


def nemo_rows(given, x):
    """By AudioToMelSpectrogramPreprocessor of these arguments, in evaluation; of its own code what it does with them is written anew."""
    o = {k: v for k, v in given.items() if k not in OF_NEMO}
    for length, samples, standard in (("window_size", "n_window_size", 0.02), ("window_stride", "n_window_stride", 0.01)):
        seconds = o.pop(length, standard)
        if seconds and o.get(samples):
            raise ValueError(f"both {length} and {samples}")
        o[samples] = int(seconds * o["sample_rate"]) if seconds else o[samples]
    o["nfilt"] = o.pop("features", 64)
    if isinstance(o.get("normalize"), dict):  # OmegaConf's lists
        o["normalize"] = {k: np.array(v) for k, v in o["normalize"].items()}
    return array(libraries.one_of("nemo.collections.asr.parts.preprocessing.features", "FilterbankFeatures", **o).eval()(
        tensor(x)[None], torch.tensor([len(x)]))[0][0].T)


def nemo(name, rate=16000, archive=False, refused=None, **options):
    fields = {k: v for k, v in {**FASTCONFORMER, **options}.items() if v != "left out"}

    def write(folder):
        text = yaml.safe_dump({"sample_rate": rate, "preprocessor": fields, "encoder": {"feat_in": fields["features"]},
                               "target": "nemo.collections.asr.models.EncDecCTCModelBPE", "nemo_version": "2.6.0"}, sort_keys=False)
        if archive:
            import tarfile
            with tarfile.open(os.path.join(folder, "model.nemo"), "w:") as tar:
                for member, data in (("./model_weights.ckpt", b"\x80\x02not to be read"), ("./model_config.yaml", text.encode())):
                    info = tarfile.TarInfo(member)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        else:
            text_file(folder, "model_config.yaml", text)

    def judge(folder, x):
        if archive:
            given = fields
        else:
            with open(os.path.join(folder, "model_config.yaml"), encoding="utf-8") as file:
                given = yaml.safe_load(file)["preprocessor"]
        return nemo_rows({**given, "sample_rate": rate if isinstance(given.get("sample_rate"), str) else given.get("sample_rate", 16000)}, x)

    add(name, rate, "NeMo 3.0.0, FilterbankFeatures", write, judge, {"file": "FILE/model.nemo"} if archive else None)


nemo("nemo_fastconformer")
nemo("nemo_archive", archive=True, features=128)
nemo("nemo_interpolated", sample_rate="${sample_rate}", pad_to=16, normalize="all_features")
nemo("nemo_streaming", normalize="NA", use_torchaudio=True, stft_conv=False)
nemo("nemo_quartznet", features=64, window_size=0.02, pad_to=16, n_fft="left out", nb_augmentation_prob=0.1)
nemo("nemo_clamp", log_zero_guard_type="clamp", log_zero_guard_value=1e-6, mag_power=1.0, preemph=None, normalize=None, window="hamming")
nemo("nemo_fastpitch", 22050, sample_rate=22050, window_size=None, window_stride=None, n_window_size=1024, n_window_stride=256, n_fft=1024, lowfreq=0,
     highfreq=8000, mag_power=1.0, preemph=None, normalize=None, log_zero_guard_type="add", log_zero_guard_value=1e-5, mel_norm="slaney")
nemo("nemo_exactpad", 22050, sample_rate=22050, window_size=None, window_stride=None, n_window_size=1024, n_window_stride=256, n_fft=1024, highfreq=None,
     mag_power=1.0, preemph=None, normalize=None, exact_pad=True, mel_norm=None, log=False)


# ---- SpeechBrain: hyperparams.yaml of recipes, read by hyperpyyaml.

def speechbrain(name, text, key="compute_features", rate=16000, preset=None):
    def judge(folder, x):
        import ruamel.yaml
        from hyperpyyaml import load_hyperpyyaml
        ruamel.yaml.Loader.max_depth = None  # which its newest versions ask for
        with open(os.path.join(folder, "hyperparams.yaml"), encoding="utf-8") as file:
            loaded = load_hyperpyyaml(file)
        rows = loaded[key].eval()(tensor(x)[None])
        return array((loaded["normalize"].eval()(rows) if "normalize" in loaded else rows)[0])
    add(name, rate, "speechbrain 1.1.2", lambda folder: text_file(folder, "hyperparams.yaml", text), judge, preset)


speechbrain("sb_ecapa", """
# Model from the VoxCeleb recipe
sample_rate: 16000
n_mels: 80
compute_features: !new:speechbrain.lobes.features.Fbank
    n_mels: !ref <n_mels>
""")
speechbrain("sb_asr", """
sample_rate: 16000
n_fft: 512
n_mels: 80
win_length: 32
compute_features: !new:speechbrain.lobes.features.Fbank
    sample_rate: !ref <sample_rate>
    n_fft: !ref <n_fft>
    n_mels: !ref <n_mels>
    win_length: !ref <win_length>
""")
speechbrain("sb_crdnn", """
rate: 8000
sample_rate: !ref <rate> * 2
n_fft: 400
bands: 20
compute_features: !new:speechbrain.lobes.features.Fbank
    sample_rate: !ref <sample_rate>
    n_fft: !ref <n_fft>
    n_mels: !ref <bands> * 2
    deltas: True
    context: True
    left_frames: 2
    right_frames: 1
    hop_length: 8
""")
speechbrain("sb_mfcc", """
mfcc: !new:speechbrain.lobes.features.MFCC
    n_mfcc: 13
    f_min: 40
    f_max: 7000
""", "mfcc")


for _name, _std in (("means", False), ("deviations", True)):
    speechbrain(f"sb_sentence_{_name}", f"""
compute_features: !new:speechbrain.lobes.features.Fbank
    n_mels: 80
normalize: !new:speechbrain.processing.features.InputNormalization
    norm_type: sentence
    std_norm: {_std}
""")


# ---- FunASR and ESPnet, written anew from their sources

def am_mvn(shift, scale):
    def line(values):
        return "<LearnRateCoef> 0 [ " + " ".join(repr(v) for v in values) + " ]"
    size = len(shift)
    return f"<Nnet>\n<Splice> {size} {size}\n[ 0 ]\n<AddShift> {size} {size}\n{line(shift)}\n<Rescale> {size} {size}\n{line(scale)}\n</Nnet>\n"


SHIFT, SCALE = [-8.25 - (7 * i % 16) / 8 for i in range(80)], [0.125 + (5 * i % 32) / 256 for i in range(80)]


def fields_of(folder, name, *keys):
    """The map of these keys in a file of YAML."""
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        out = yaml.safe_load(file)
    for key in keys:
        out = out[key]
    return out


def wav_frontend(x, fs=16000, window="hamming", n_mels=80, frame_length=25, frame_shift=10, lfr_m=1, lfr_n=1, snip_edges=True, upsacle_samples=True, **_):
    """Rows of WavFrontend, without its dither and statistics. Recordings that are shorter than a window, for which it shortens that, are refused."""
    rows = libraries.kaldi_fbank(x, 32768 if upsacle_samples else 1, fs, num_mel_bins=n_mels, frame_length=frame_length, frame_shift=frame_shift,
                                 energy_floor=0.0, window_type=window, snip_edges=snip_edges)
    return libraries.low_frame_rate(rows, lfr_m, lfr_n) if lfr_m != 1 or lfr_n != 1 else rows


def funasr(name, conf, mvn=None):
    def write(folder):
        text_file(folder, "config.yaml", yaml.safe_dump({"model": "Paraformer", "frontend": "WavFrontend", "frontend_conf": conf, "specaug": "SpecAugLFR"}))
        if mvn:
            text_file(folder, "am.mvn", am_mvn(*mvn))

    def judge(folder, x):
        rows = wav_frontend(x, **fields_of(folder, "config.yaml", "frontend_conf"))
        return array((rows + tensor(mvn[0])) * tensor(mvn[1])) if mvn else array(rows)

    add(name, 16000, "anew from FunASR 1.4.16, wav_frontend.py", write, judge)


PARAFORMER = dict(fs=16000, window="hamming", n_mels=80, frame_length=25, frame_shift=10, lfr_m=7, lfr_n=6, dither=0.0)
funasr("funasr_paraformer", PARAFORMER, (SHIFT * 7, SCALE * 7))
funasr("funasr_vad", dict(PARAFORMER, lfr_m=5, lfr_n=1))


def espnet_bands(x, is_amplitude, fs, n_fft, hop_length, fmin, fmax, log, win_length=None, window="hann", center=True, normalized=False, n_mels=80,
                 htk=False):
    """ESPnet's Stft and LogMel, of powers or of amplitudes."""
    win, rate = win_length or n_fft, int(fs[:-1]) * 1000 if isinstance(fs, str) else fs
    shape = torch.ones(win) if window is None else getattr(torch, window + "_window")(win)
    power = torch.stft(tensor(x), n_fft, hop_length, win, shape, center, "reflect", normalized, True, return_complex=True).abs().T ** 2
    bank = libraries.librosa.filters.mel(sr=rate, n_fft=n_fft, n_mels=n_mels, fmin=fmin or 0, fmax=fmax or rate / 2, htk=htk, dtype=np.float64)
    return log(np.maximum(array(power.clamp(1e-10).sqrt() if is_amplitude else power) @ bank.T, 1e-10))


def espnet_asr(x, fs=16000, n_fft=512, hop_length=128, fmin=None, fmax=None, **options):
    return espnet_bands(x, False, fs, n_fft, hop_length, fmin, fmax, np.log, **options)


def espnet_tts(x, fs=16000, n_fft=1024, hop_length=256, fmin=80, fmax=7600, log_base=10, **options):
    return espnet_bands(x, True, fs, n_fft, hop_length, fmin, fmax, {None: np.log, 10: np.log10}[log_base], **options)


def espnet(name, root, function, rate=16000, after=lambda rows: rows, stats=None):
    def write(folder):
        text_file(folder, "config.yaml", yaml.safe_dump(root))
        if stats is not None:
            np.savez(os.path.join(folder, "feats_stats.npz"), **stats)

    def judge(folder, x):
        return after(function(x, **fields_of(folder, "config.yaml", "feats_extract_conf" if "feats_extract" in root else "frontend_conf")))

    add(name, rate, "anew from ESPnet", write, judge)


MEAN, DEVIATION, COUNT = np.array([-6 - (3 * i % 16) / 8 for i in range(80)]), np.array([1 + (5 * i % 32) / 16 for i in range(80)]), 1024
STATS = dict(count=COUNT, sum=MEAN * COUNT, sum_square=(DEVIATION ** 2 + MEAN ** 2) * COUNT)
ESPNET_CONF = dict(fs="16k", n_fft=512, hop_length=160, win_length=400)
espnet("espnet_asr", dict(frontend="default", frontend_conf=ESPNET_CONF, normalize="utterance_mvn", normalize_conf={}, token_list=["<blank>", "a"]),
       espnet_asr, after=libraries.less_mean)
espnet("espnet_global", dict(frontend="default", frontend_conf=ESPNET_CONF, normalize="global_mvn",
                             normalize_conf=dict(stats_file="exp/asr_stats_raw/train/feats_stats.npz")),
       espnet_asr, after=lambda rows: (rows - MEAN) / DEVIATION, stats=STATS)
espnet("espnet_tts", dict(feats_extract="fbank", feats_extract_conf=dict(n_fft=1024, hop_length=256, win_length=None, fs=24000, fmin=80, fmax=7600, n_mels=80)),
       espnet_tts, 24000)


# ---- WeNet and WeSpeaker, by torchaudio's functions that they call

def wenet_rows(folder, x):
    """Rows of WeNet's compute_fbank, without its dither."""
    given = {"num_mel_bins": 23, **fields_of(folder, "train.yaml", "dataset_conf", "fbank_conf"), "dither": 0.0}
    return array(libraries.kaldi_fbank(x, energy_floor=0.0, **given))


def wespeaker_rows(folder, x):
    """Rows of WeSpeaker's compute_fbank and apply_cmvn, without its dither."""
    given = {"num_mel_bins": 80, **fields_of(folder, "config.yaml", "dataset_args", "fbank_args"), "dither": 0.0}
    return array(libraries.less_mean(libraries.kaldi_fbank(x, window_type="hamming", **given)))


add("wenet", 16000, "WeNet's compute_fbank: torchaudio", lambda folder: text_file(folder, "train.yaml", yaml.safe_dump(dict(
    dataset_conf=dict(fbank_conf=dict(num_mel_bins=80, frame_shift=10, frame_length=25, dither=0.1), resample_conf=dict(resample_rate=16000)),
    encoder="conformer"))), wenet_rows)


def wenet_cmvn(name, file_name, text):
    """With the layer GlobalCMVN of the model, whose means and inverse deviations load_cmvn reads from the sums."""
    def write(folder):
        text_file(folder, "train.yaml", yaml.safe_dump(dict(dataset_conf=dict(fbank_conf=dict(num_mel_bins=80)), cmvn="global_cmvn",
                                                            cmvn_conf=dict(cmvn_file="data/train/" + file_name, is_json_cmvn=True))))
        text_file(folder, file_name, text)
    add(name, 16000, "WeNet's compute_fbank: torchaudio", write,
        lambda folder, x: (wenet_rows(folder, x) - MEAN) / DEVIATION, {"file": "FILE", "cmvn": "global"})


wenet_cmvn("wenet_cmvn_json", "global_cmvn", json.dumps(dict(mean_stat=(MEAN * COUNT).tolist(), frame_num=COUNT,
                                                             var_stat=((DEVIATION ** 2 + MEAN ** 2) * COUNT).tolist())))
wenet_cmvn("wenet_cmvn_kaldi", "global_cmvn.txt", "  [\n  " + " ".join(map(repr, (MEAN * COUNT).tolist())) + f" {COUNT}\n  "
           + " ".join(map(repr, ((DEVIATION ** 2 + MEAN ** 2) * COUNT).tolist())) + " 0 ]\n")
add("wespeaker", 16000, "WeSpeaker's compute_fbank: torchaudio", lambda folder: text_file(folder, "config.yaml", yaml.safe_dump(dict(
    dataset_args=dict(fbank_args=dict(num_mel_bins=80, frame_shift=10, frame_length=25, dither=1.0), resample_rate=16000), model="ResNet34"))), wespeaker_rows)


# ---- Calls as text: the library evaluates what melflow reads

def by_call(text, x):
    """Rows by the call, which is evaluated."""
    names = {"torch": torch, "torchaudio": torchaudio, "librosa": libraries.librosa, "y": x, "waveform": tensor(x)[None],
             **vars(torchaudio.transforms)}
    made = eval(text, names)  # pylint: disable=eval-used
    return made.T if text.startswith("librosa") else array(made(tensor(x)).T) if callable(made) else array(made)


def call(name, text, rate=16000):
    add(name, rate, text.split("(")[0], lambda folder: None, lambda folder, x: by_call(text, x), text)


call("call_mel", "MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=80)")
call("call_mel_hifi", "torchaudio.transforms.MelSpectrogram(sample_rate=24000, n_fft=1024, win_length=800, hop_length=256, f_min=20., f_max=12000., "
     "n_mels=100, power=1, norm='slaney', mel_scale=\"slaney\", window_fn=torch.hamming_window)", 24000)
call("call_ta_mfcc", "torchaudio.transforms.MFCC(16000, n_mfcc=13, log_mels=True, melkwargs={'n_fft': 512, 'hop_length': 160, 'n_mels': 40, "
     "'center': False})")
call("call_fbank", "torchaudio.compliance.kaldi.fbank(waveform, num_mel_bins=40, window_type='hamming', sample_frequency=16000)")
call("call_librosa", "librosa.feature.melspectrogram(y=y, sr=16000, n_fft=512, hop_length=160, n_mels=64, htk=True, norm=None, center=True, "
     "pad_mode='reflect')")
call("call_librosa_mfcc", "librosa.feature.mfcc(y=y, sr=22050, n_mfcc=13, lifter=22, n_mels=40)", 22050)
