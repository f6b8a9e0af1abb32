"""Front ends of streams, and random pieces of recordings; tests/long/stream_chunkings.py has more of these."""

import json

import numpy as np

import melflow

RATES = (8000, 11025, 16000, 22050, 44100, 48000)
PRESETS = ("librosa", "torchaudio", "kaldi", "kaldi_htk", "hifigan", "ast")
_KALDI = {"preset": "kaldi", "n_mels": 40}
_MFCC = {"stage": "mfcc", "n_mfcc": 13}

# name: options of mel, the stages after it; every recording is resampled to the rate of mel's preset
FRONT_ENDS = {
    "funasr lfr 7/6": ({**_KALDI, "n_mels": 80, "window": "hamming"}, [{"stage": "stack", "frames": 7, "hop": 6, "left": 3, "tail": "replicate"}]),
    "pairs": (_KALDI, [{"stage": "stack", "frames": 2}]),
    "context": ({"preset": "kaldi"}, [{"stage": "stack", "frames": 11, "hop": 1, "left": 5, "head": "value", "tail": "value", "order": "band_major"}]),
    "mfcc, deltas": (_KALDI, [_MFCC, {"stage": "deltas"}]),
    "mfcc, add-deltas": (_KALDI, [_MFCC, {"stage": "deltas", "method": "kaldi", "width": 9}]),
    "librosa deltas": ({"preset": "librosa", "log": "db"}, [{"stage": "deltas", "method": "librosa", "width": 9, "order": 1}]),
    "sliding cmvn": (_KALDI, [_MFCC, {"stage": "sliding_cmvn", "window": 300, "center": True}]),
    "online cmvn": (_KALDI, [_MFCC, {"stage": "sliding_cmvn", "norm_variance": True}]),
    "pcen": ({"preset": "torchaudio", "n_mels": 40}, [{"stage": "pcen"}]),
    "voxtral realtime": ({"preset": "whisper_large_v3", "top_db": "none", "amin": 10 ** -6.5}, []),
    "nemo streaming": ({"preset": "nemo", "normalize": "none"}, [{"stage": "fit_rows", "multiple": 8}]),
    "dither, no snip": ({**_KALDI, "snip_edges": False, "dither": 1.0, "use_energy": True}, []),
}


def pipeline(mel, after):
    """`mel` and the stages after it, of files at any rate."""
    rate = melflow._melflow.preset_rate(mel["preset"]) or 16000
    graph = {"files": {"stage": "file_list", "root": "/"}, "read": {"stage": "disk_read", "from": "files"},
             "decode": {"stage": "decode", "from": "read"}, "resample": {"stage": "resample", "from": "decode", "rate": rate},
             "segment": {"stage": "segment", "from": "resample"},
             "mel": {"stage": "mel", "from": "segment", **mel, "sample_rate": rate}}
    last = "mel"
    for i, stage in enumerate(after):
        graph[f"step{i}"] = {**stage, "from": last}
        last = f"step{i}"
    graph["rows"] = {"stage": "batches", "from": last}
    return json.dumps({"version": 1, "graph": graph})


def all_pipelines():
    return {**{name: pipeline({"preset": name}, []) for name in PRESETS},
            **{name: pipeline(mel, after) for name, (mel, after) in FRONT_ENDS.items()}}


def recording(random, seconds, rate):
    """Tones that come and go in noise, int16."""
    n = int(seconds * rate)
    t = np.arange(n) / rate
    sound = random.normal(0, 0.02, n)
    for _ in range(4):
        sound += 0.1 * np.sin(2 * np.pi * random.uniform(80, rate / 2.2) * t) * (np.sin(2 * np.pi * random.uniform(0.2, 2) * t) > 0)
    return (np.clip(sound, -1, 1) * 32767).astype(np.int16)


def streamed(stream, samples, random):
    """The rows of a recording in random pieces of 0 to 5 s, each int16 or float."""
    stream.reset()
    rows, at = [], 0
    longest = random.choice([0.02, 0.2, 1, 5]) * stream.sample_rate
    while at < len(samples):
        piece = samples[at:at + int(random.uniform(0, longest) + random.integers(2))]
        at += len(piece)
        rows.append(stream.push(piece if random.integers(2) else piece.astype(np.float32) / np.float32(32768)))
    return np.concatenate([*rows, stream.finish()])
