"""The configurations of front_ends.json: what melflow is told for each of front_end_libraries.FRONT_ENDS.

Out: CASES: name -> nodes {stage: options}, as in a pipeline, in the order of the data.
"""

import json
import os
import pathlib
import re
import tempfile

import numpy as np


def mel(preset, **options):
    return {"mel": {"preset": preset, **options}}


def samples(preset):
    return {"samples": {"preset": preset}}


def cut(length, nodes):
    return {"segment": {"length": length, "tail": "pad"}, **nodes}


KALDI_MFCC = dict(lifter=22, lifter_style="kaldi")
NORMS = [round(0.5 + (7 * i % 80) / 40, 4) for i in range(80)]

CASES = {
    "hf_whisper80": cut("30s", mel("whisper")),
    "hf_whisper128": cut("30s", mel("whisper_large_v3")),
    "hf_qwen25omni": cut("300s", mel("qwen2_5_omni")),
    "hf_qwen3asr": cut("30s", mel("whisper_large_v3")),
    "hf_voxtral_rt": mel("voxtral_realtime"),
    "hf_ast": mel("ast_1024"),
    "hf_seamless": mel("seamless"),
    "hf_s2t": mel("speech_to_text"),
    "hf_clap_pad": cut("10s", mel("clap")),
    "hf_speecht5_mel": mel("speecht5"),
    "hf_wav2vec2_raw": samples("moonshine"),
    "hf_encodec": samples("encodec"),
    "hf_univnet": mel("univnet"),
    "hf_univnet_norm": mel("univnet", normalize="fixed", norm_mean=-4.5992932319641109, norm_std=6.9136319160461426),
    "hf_pop2piano_mel": mel("pop2piano"),
    "hf_clvp": cut("6s", mel("clvp")),
    "hf_clvp_norms": cut("6s", mel("clvp", normalize="fixed", norm_mean=[0], norm_std=NORMS)),
    "hf_parakeet": mel("nemo"),
    "hf_cohere": mel("parakeet"),
    "hf_nemotron": mel("nemotron_streaming"),
    "hf_lasr": mel("lasr"),
    "hf_granite": mel("granite_speech"),
    "hf_phi4": mel("phi4"),
    "hf_funasr_nano": mel("fun_asr_nano"),
    "nemo_fastconformer80": mel("nemo"),
    "nemo_parakeet128": mel("parakeet"),
    "nemo_padto16": mel("nemo_pad16"),
    "nemo_streaming": mel("nemotron_streaming"),
    "nemo_quartznet64": mel("quartznet"),
    "nemo_allfeat": mel("nemo", normalize="all_features"),
    "nemo_fastpitch": mel("fastpitch"),
    "nemo_exactpad": mel("fastpitch", center=False, pad=384, amin=1e-5, log_offset=0),
    "sb_fbank40": mel("speechbrain"),
    "sb_ecapa80": mel("speechbrain_ecapa"),
    "sb_asr80_512": mel("speechbrain_asr"),
    "sb_xvector24": mel("speechbrain_xvector"),
    "sb_fbank_deltas": {**mel("speechbrain"), "deltas": {"order": 2, "method": "regression"}},
    "sb_mfcc": mel("speechbrain_mfcc"),
    "lh_fbank80": mel("lhotse"),
    "lh_fbank_own": mel("lhotse", bin_hz="lhotse"),
    "lh_mfcc": mel("lhotse_mfcc"),
    "lh_logspec": mel("lhotse_log_spectrogram"),
    "lh_whisper": mel("whisper"),
    "kaldi_fbank23": mel("kaldi"),
    "kaldi_fbank80": mel("wenet"),
    "kaldi_fbank40": mel("kaldi", n_mels=40),
    "kaldi_mfcc13": {**mel("kaldi", use_energy=True, energy_floor=1), "mfcc": {"n_mfcc": 13, **KALDI_MFCC}},
    "kaldi_mfcc_hires40": mel("kaldi_mfcc_hires"),
    "kaldi_vox30": {**mel("kaldi", n_mels=30, fmax=7600, snip_edges=False, use_energy=True, energy_floor=1),
                    "mfcc": {"n_mfcc": 30, **KALDI_MFCC}},
    "kaldi_8k": mel("kaldi_mfcc_hires", sample_rate=8000, n_fft=256, win_length=200, hop=80),
    "kaldi_vox30_cmvn": {**mel("kaldi", n_mels=30, fmax=7600, snip_edges=False, use_energy=True, energy_floor=1),
                         "mfcc": {"n_mfcc": 30, **KALDI_MFCC}, "sliding_cmvn": {"window": 300, "center": True}},
    "sherpa_fbank80": mel("sherpa_onnx"),
    "wenet_fbank80": mel("wenet"),
    "wenet_w2vbert": mel("wenet_w2vbert"),
    "funasr_lfr76": mel("funasr_lfr76"),
    "wespeaker": mel("wespeaker"),
    "3dspeaker_campplus": mel("campplus"),
    "espnet_default": mel("espnet"),
    "espnet_asr_400_160": mel("espnet", win_length=400, hop=160, normalize="per_feature", norm_variance=False),
    "ta_mel": mel("torchaudio"),
    "ta_mfcc": mel("torchaudio_mfcc"),
    "librosa_mel": mel("librosa"),
    "librosa_logmel": mel("librosa", n_mels=80, log="db", ref="max", top_db=80),
    "librosa_mfcc": mel("librosa_mfcc"),
    "panns_cnn14": mel("panns"),
    "laion_clap_htsat": mel("laion_clap"),
    "msclap2023": mel("msclap"),
    "vggish": mel("vggish"),
    "yamnet": mel("yamnet"),
    "beats": mel("beats"),
    "eat_audiomae": mel("eat"),
    "dasheng_ced": mel("dasheng"),
    "resemblyzer": mel("resemblyzer"),
    "perch_melspec": mel("perch"),
    "hifigan22": mel("hifigan"),
    "bigvgan24_100": mel("bigvgan_24khz"),
    "bigvgan44_128": mel("bigvgan_44khz"),
    "cosyvoice2": mel("cosyvoice2"),
    "vocos24": mel("vocos"),
    "vocos_same": mel("vocos", center=False, pad=384),
    "f5tts": mel("f5_tts"),
    "tacotron2": mel("tacotron2"),
    "melgan": mel("melgan"),
    "pwg24": mel("parallel_wavegan"),
    "tortoise_xtts": mel("tortoise", normalize="fixed", norm_mean=[0], norm_std=NORMS),
    "hf_whisper_norm": {"segment": {"length": "30s", "tail": "pad"}, "normalize_samples": {}, **mel("whisper")},
    "hf_dots3": mel("dots3"),
    "hf_clap_repeatpad": mel("clap_repeatpad"),
    "hf_clap_rand": mel("clap_rand_trunc"),
    "hf_clap_repeat": {"fit_samples": {"length": "10s", "pad_mode": "repeat"}, **mel("clap", mel_scale="slaney", norm="slaney")},
    "hf_wav2vec2": samples("wav2vec2"),
    "hf_omniasr": samples("omniasr"),
    "hf_dac": samples("dac"),
    "hf_kyutai": samples("kyutai_stt"),
    "hf_vibevoice": samples("vibevoice"),
    "hf_peaudio": samples("pe_audio"),
    "hf_neucodec": mel("neucodec"),
    "hf_xcodec2": mel("xcodec2"),
    "hf_gemma3n": mel("gemma3n"),
    "hf_gemma4": mel("gemma4"),
    "hf_inkling": mel("inkling"),
    "ecapa_taoruijie": mel("ecapa_tdnn"),
    "passt": mel("passt"),
    "styletts2": mel("styletts2"),
    "espnet_tts": mel("espnet_tts"),
    "ta_emformer_rnnt": mel("emformer_rnnt"),
    "redimnet_tfmel": mel("ecapa_tdnn", preemphasis_first="reflect", align="left", center=False, pad_zeros=80, periodic=False,
                          power_floor=1e-8, power_ceiling=1e8, filters="redimnet", log_offset=1e-8, amin=2e-8),
    "hf_gemma4u": {"segment": {"length": 640, "tail": "pad"}, "samples": {}},
}

# Mappings that are wrong by one option: what, of which configuration, and its nodes.
WRONG = {
    "HiFi-GAN without its offset": ("hifigan22", mel("hifigan", power_offset=0)),
    "Kaldi with hann for povey": ("kaldi_fbank80", mel("wenet", window="hann")),
    "Kaldi with a periodic window": ("kaldi_fbank80", mel("wenet", periodic=True)),
    "NeMo without its offset": ("nemo_fastconformer80", mel("nemo", log_offset=0)),
    "NeMo with a periodic window": ("nemo_fastconformer80", mel("nemo", periodic=True)),
    "NeMo, the last row kept": ("nemo_fastconformer80", mel("nemo", drop_last=False)),
    "PANNs padded with zeros": ("panns_cnn14", mel("panns", pad_mode="constant")),
    "VGGish with triangles over Hz": ("vggish", mel("vggish", triangles="hz")),
    "VGGish for YAMNet": ("yamnet", mel("vggish")),
    "SpeechBrain with triangles over Hz": ("sb_fbank40", mel("speechbrain", triangles="hz")),
    "Lhotse's own bins": ("lh_fbank80", mel("lhotse", bin_hz="lhotse")),
    "Voxtral with a symmetric window": ("hf_voxtral_rt", mel("voxtral_realtime", periodic=False)),
    "Phi-4 with pre-emphasis of the signal": ("hf_phi4", mel("phi4", preemphasis_of="signal")),
    "CosyVoice with another floor": ("cosyvoice2", mel("cosyvoice2", amin=1e-6)),
    "BigVGAN with another edge": ("bigvgan24_100", mel("bigvgan_24khz", fmax=11999)),
    "F5-TTS with the floor of Vocos": ("f5tts", mel("vocos")),
    "BEATs with the scale of 3D-Speaker": ("beats", mel("beats", input_scale=1)),
    "EAT with the scale of BEATs": ("eat_audiomae", mel("eat", input_scale=32768)),
    "FunASR-nano with the scale of FunASR": ("hf_funasr_nano", mel("fun_asr_nano", input_scale=32768)),
    "LAION-CLAP with the lowest frequency of Transformers": ("laion_clap_htsat", mel("laion_clap", fmin=0)),
    "Granite's 8 decades as decibels": ("hf_granite", mel("granite_speech", top_db=8)),
    "Kaldi's energy without torchaudio's floor": ("kaldi_mfcc13", mel("kaldi_mfcc")),
    "ECAPA with the first sample kept": ("ecapa_taoruijie", mel("ecapa_tdnn", preemphasis_first="keep")),
    "PaSST with the first sample kept": ("passt", mel("passt", preemphasis_first="keep")),
    "StyleTTS 2 with filters of the audio's rate": ("styletts2", mel("styletts2", filter_rate=24000)),
    "RNN-T with a plain logarithm": ("ta_emformer_rnnt", mel("emformer_rnnt", log="ln", amin=1e-10)),
    "Inkling without the floor of bins": ("hf_inkling", mel("inkling", power_floor=0)),
    "NeuCodec filled with zeros": ("hf_neucodec", {**mel("wenet_w2vbert"), "stack": {"frames": 2, "tail": "value"}}),
    "Seamless filled before it is normalised": ("hf_seamless", {**mel("wenet_w2vbert"), "stack": {"frames": 2, "tail": "replicate"}}),
    "AST filled with zeros after it is normalised": ("hf_ast", {**mel("ast"), "fit_rows": {"rows": 1024}}),
}


def redimnet_filters():
    """[80, 257]: of its 256 bins, which end at half the rate and not a bin before it; the last column is 0."""
    def to_mel(hz):
        return 1127 * np.log(1 + np.asarray(hz) / 700)
    at, edges = to_mel(np.linspace(0, 8000, 256)), np.linspace(to_mel(20), to_mel(7600), 82)[:, None]
    rise, fall = (at - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - at) / (edges[2:] - edges[1:-1])
    out = np.maximum(0, np.minimum(rise, fall))
    out[:, 0] = 0
    return np.pad(out, ((0, 0), (0, 1)))


def filters_file(name, folder=tempfile.mkdtemp()):
    path = os.path.join(folder, name + ".npy")
    np.save(path, globals()[name + "_filters"]())
    return path


def written_out(preset):
    """The nodes that a preset stands for."""
    return dict(table_row(preset))


def pipeline(nodes, rate):
    """The text of a pipeline with these nodes after decode, for melflow.Features."""
    graph = {"files": {"stage": "file_list", "root": "/"}, "read": {"stage": "disk_read", "from": "files"},
             "decode": {"stage": "decode", "from": "read"}}
    last = "decode"
    for stage, options in nodes.items():
        graph[stage] = {"stage": stage, "from": last, **options}
        if "filters" in options:
            graph[stage]["filters"] = filters_file(options["filters"])
        if stage in ("mel", "samples"):
            graph[stage].setdefault("sample_rate", rate)
        last = stage
    graph["rows"] = {"stage": "batches", "from": last}
    return json.dumps({"version": 1, "graph": graph})


def table_row(preset):
    """The nodes of a preset: [(stage, options)]; from docs/features.md, which a test holds to the program."""
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/features.md"
    row = next(line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{preset}` | ") and line.endswith("}` |"))
    return [(stage, {k: number(v) for k, v in (o.split(": ") for o in options.split(", "))})
            for stage, options in re.findall(r"`(\w+): \{(.*?)\}`", row.split("|")[-2])]


def mel_options(nodes):
    """The options of mel in nodes, with those of its preset."""
    given = dict(nodes["mel"])
    out = mel_options(dict(table_row(given.pop("preset")))) if "preset" in given else {}
    return {**out, **{k: None if v == "none" else v for k, v in given.items()}}


def around(preset, stage="mel"):
    """The nodes that a preset puts before and after mel; windows are not put in."""
    nodes = table_row(preset)
    at = [name for name, _ in nodes].index(stage)
    return [(name, options) for name, options in nodes[:at] if name != "segment"], nodes[at + 1:]


def number(text):
    try:
        return json.loads(text)
    except ValueError:
        return text
