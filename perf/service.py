"""Calls of a service, which gets a recording's bytes and wants Whisper's rows: melflow beside what else Python has.

service.py [--programs DIR] [--threads 1,2,4,8] [--formats mp3,flac,...] [--ways melflow,...] [--seconds 5] [--rounds 3] [--steps]
In:   a Python that has melflow and soundfile, which makes the recordings; of transformers with librosa (and soundfile, or PyAV), and of
      torchcodec with torchaudio what is to be compared. --programs: where melflow_from_memory is, which does the same in C++ alone.
Out:  a table: requests a second, median and 99th percentile of a request [ms], processor time of a request [ms]; each is the median
      of the rounds, in which all take turns, each in a process of its own. 30 s of 44.1 kHz stereo (Opus: 48 kHz) and 5 s of 16 kHz
      mono become 3,000 rows, padded to 30 s as WhisperFeatureExtractor does. A way whose rows differ from those of melflow by more
      than the resamplers do is named.
      --steps: instead, where the time of melflow's call goes, by format, and what a short clip costs.
"""
import argparse
import importlib.util
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

RATE = 16000
FORMATS = {  # of soundfile, seconds, rate, channels
    "mp3": ("MP3", "MPEG_LAYER_III", 30, 44100, 2),
    "flac": ("FLAC", "PCM_16", 30, 44100, 2),
    "wav": ("WAV", "PCM_16", 30, 44100, 2),
    "opus": ("OGG", "OPUS", 30, 48000, 2),
    "wav16k": ("WAV", "PCM_16", 5, RATE, 1),
}


def make(folder, name):
    """A melody with noise, which all channels have in common, and a little of their own."""
    import numpy as np
    import soundfile

    container, codec, seconds, rate, channels = FORMATS[name]
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        random = np.random.default_rng(1)
        t = np.arange(seconds * rate) / rate
        tones = 220 * 2 ** (random.integers(0, 24, seconds * 4) / 12)
        phase = 2 * np.pi * np.cumsum(np.repeat(tones, rate // 4)[:len(t)]) / rate
        body = sum(np.sin(k * phase) / k for k in (1, 2, 3, 5)) * 0.2 + 0.02 * random.standard_normal(len(t))
        sound = np.stack([body + 0.01 * random.standard_normal(len(t)) for _ in range(channels)], 1)
        with open(path, "wb") as file:
            soundfile.write(file, sound, rate, format=container, subtype=codec)
    return path


def melflow_way():
    import melflow

    return melflow.Features(preset="whisper", pad_to="30s")


def extractor():
    import transformers

    made = transformers.WhisperFeatureExtractor()
    return lambda samples: made(samples, sampling_rate=RATE, return_tensors="np").input_features[0].T


def soundfile_way():
    import librosa
    import soundfile

    rows_of = extractor()

    def rows(data):
        samples, rate = soundfile.read(io.BytesIO(data), dtype="float32")
        if samples.ndim > 1:
            samples = samples.mean(1)
        return rows_of(librosa.resample(samples, orig_sr=rate, target_sr=RATE, res_type="soxr_hq") if rate != RATE else samples)

    return rows


def pyav_way():
    import av
    import numpy as np

    rows_of = extractor()

    def rows(data):
        resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
        pieces = []
        with av.open(io.BytesIO(data)) as container:
            for frame in container.decode(audio=0):
                pieces += [one.to_ndarray()[0] for one in resampler.resample(frame)]
        pieces += [one.to_ndarray()[0] for one in resampler.resample(None)]
        return rows_of(np.concatenate(pieces))

    return rows


def torchcodec_way():
    import torch
    import torchaudio
    from torchcodec.decoders import AudioDecoder

    torch.set_num_threads(1)
    mel = torchaudio.transforms.MelSpectrogram(RATE, n_fft=400, hop_length=160, n_mels=80, norm="slaney", mel_scale="slaney")

    @torch.inference_mode()
    def rows(data):
        samples = AudioDecoder(data, sample_rate=RATE, num_channels=1).get_all_samples().data[0]
        samples = torch.nn.functional.pad(samples, (0, 30 * RATE - len(samples)))
        levels = mel(samples)[:, :-1].clamp(min=1e-10).log10()
        return ((torch.maximum(levels, levels.max() - 8) + 4) / 4).T.contiguous().numpy()

    return rows


WAYS = {"melflow": (melflow_way, ("melflow",)), "soundfile + librosa + transformers": (soundfile_way, ("soundfile", "librosa", "transformers")),
        "PyAV + transformers": (pyav_way, ("av", "transformers")), "torchcodec + torchaudio": (torchcodec_way, ("torchcodec", "torchaudio"))}
ALONE = "C++ alone"


def measured(rows_of, data, threads, seconds):
    """What a service sees that calls it in so many threads."""
    rows_of(data)
    times = [[] for _ in range(threads)]
    ready = threading.Barrier(threads + 1)
    end = 0.0

    def work(own):
        ready.wait()
        begin = time.perf_counter()
        while begin < end or not own:
            rows_of(data)
            now = time.perf_counter()
            own.append(1e3 * (now - begin))
            begin = now

    workers = [threading.Thread(target=work, args=(own,)) for own in times]
    for one in workers:
        one.start()
    begin, used = time.perf_counter(), time.process_time()
    end = begin + seconds
    ready.wait()
    for one in workers:
        one.join()
    wall, used = time.perf_counter() - begin, time.process_time() - used
    every = sorted(sum(times, []))
    return {"rate": len(every) / wall, "p50": every[len(every) // 2], "p99": every[min(len(every) - 1, int(0.99 * len(every)))],
            "cpu": 1e3 * used / len(every)}


def child(a):
    import numpy as np

    with open(a.file, "rb") as file:
        data = file.read()
    rows_of = WAYS[a.way][0]()
    if not a.threads_of_child:
        np.save(a.rows, np.asarray(rows_of(data)))
        return
    print(json.dumps(measured(rows_of, data, a.threads_of_child, a.seconds)))


def call_child(*words):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    ended = subprocess.run([sys.executable, os.path.abspath(__file__), *map(str, words)], capture_output=True, text=True, env=environment)
    if ended.returncode:
        raise RuntimeError(ended.stderr.strip().splitlines()[-1])
    return ended.stdout


def disagreement(folder, way, path):
    """Why the rows of a way are others than melflow's, or ""."""
    import numpy as np

    rows = {}
    for name in ("melflow", way):
        at = os.path.join(folder, f"{os.path.basename(path)}.{len(name)}.npy")
        call_child("--child", "--way", name, "--file", path, "--rows", at, "--threads-of-child", 0)
        rows[name] = np.load(at)
    mine, theirs = rows["melflow"], rows[way]
    if mine.shape != theirs.shape:
        return f"rows {theirs.shape}, not {mine.shape}"
    apart = (theirs - mine)[:, :60]  # the resamplers differ in the uppermost bands
    level = float(np.median(apart))
    far = float(np.abs(apart - level).mean())
    said = [f"rows are {40 * level:+.1f} dB off: FFmpeg makes one of two channels by (left + right) / sqrt(2)"] if abs(level) > 0.02 else []
    return "; ".join(said + ([f"rows differ by {far:.3f} in the mean"] if far > 0.02 else []))


def table(a):
    ways = [way for way in WAYS if not a.ways or any(way.startswith(one) for one in a.ways.split(","))]
    for way in list(ways):
        if missing := [name for name in WAYS[way][1] if importlib.util.find_spec(name) is None]:
            print(f"{way}: omitted, there is no {', '.join(missing)}")
            ways.remove(way)
    alone = os.path.join(a.programs, "melflow_from_memory") if a.programs else ""
    counts = [int(one) for one in a.threads.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        print("| recording | threads | way | requests/s | p50 [ms] | p99 [ms] | processor [ms] | melflow's rate ÷ |\n|---|---|---|---|---|---|---|---|")
        for name in a.formats.split(","):
            path = make(folder, name)
            usable = []
            for way in ways:
                try:
                    if why := "" if way == "melflow" else disagreement(folder, way, path):
                        print(f"{name}, {way}: {why}")
                    usable.append(way)
                except RuntimeError as error:
                    print(f"{name}, {way}: omitted, {error}")
            for threads in counts:
                rounds = {way: [] for way in [*usable, *[ALONE] * bool(alone)]}
                for _ in range(a.rounds):
                    for way, results in rounds.items():
                        if way == ALONE:
                            said = subprocess.run([alone, path, "--threads", str(threads), "--seconds", str(a.seconds), "--pad-to",
                                                   str(30 * RATE)], capture_output=True, text=True, check=True).stdout
                        else:
                            said = call_child("--child", "--way", way, "--file", path, "--threads-of-child", threads, "--seconds", a.seconds)
                        results.append(json.loads(said))
                ours = [one["rate"] for one in rounds["melflow"]]
                for way, results in rounds.items():
                    shown = {key: statistics.median(one[key] for one in results) for key in results[0]}
                    factor = statistics.median(mine / one["rate"] for mine, one in zip(ours, results))
                    print(f"| {name} | {threads} | {way} | {shown['rate']:.1f} | {shown['p50']:.2f} | {shown['p99']:.2f} | "
                          f"{shown['cpu']:.2f} | {factor:.2f} |", flush=True)


def median_ms(call, seconds):
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.thread_time()
        call()
        times.append(1e3 * (time.thread_time() - begin))
    return statistics.median(times)


def steps(a):
    """Calls that end earlier or begin later: the difference is a step's. In processor time, which other programs change less."""
    import melflow
    import numpy as np

    def chain(*nodes, **more):
        g = melflow.Graph()
        node = g.file_list(root="/").disk_read().decode()
        for stage, options in nodes:
            node = getattr(node, stage)(**options)
        node.batches()
        return melflow.Features(g, **more)

    whisper = melflow.Features(preset="whisper")
    print("| recording | whole [ms] | decode | resample | mel | the call itself | features() with options, on top |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:
            with open(make(folder, name), "rb") as file:
                data = file.read()
            rate = FORMATS[name][3]
            # The stage samples copies what it gets: that is taken off.
            decoded, resampled = chain(("samples", dict(sample_rate=rate))), chain(("resample", dict(rate=RATE)), ("samples", dict(sample_rate=RATE)))
            as_it_is, at_16k = decoded(data), resampled(data)
            copies = [median_ms(lambda: decoded(as_it_is, rate), a.seconds), median_ms(lambda: resampled(at_16k, RATE), a.seconds)]
            decode = median_ms(lambda: decoded(data), a.seconds) - copies[0]
            resample = median_ms(lambda: resampled(as_it_is, rate), a.seconds) - copies[1] if rate != RATE else 0
            nothing = median_ms(lambda: whisper(np.zeros(400, np.float32), RATE), a.seconds)
            mel = median_ms(lambda: whisper(at_16k, RATE), a.seconds) - nothing
            whole = median_ms(lambda: whisper(data), a.seconds)
            function = median_ms(lambda: melflow.features(data, preset="whisper"), a.seconds) - whole
            print(f"| {name} | {whole:.3f} | {decode:.3f} | {resample:.3f} | {mel:.3f} | {nothing:.3f} | {function:.3f} |", flush=True)
    print("\n| clip of 16 kHz, as an array | call [ms] | of 44.1 kHz [ms] |\n|---|---|---|")
    for seconds in (0.02, 0.1, 0.5, 1, 5):
        clip = {rate: np.random.default_rng(1).standard_normal(int(seconds * rate)).astype(np.float32) * 0.1 for rate in (RATE, 44100)}
        times = [median_ms(lambda: whisper(clip[rate], rate), a.seconds) for rate in clip]
        print(f"| {seconds} s | {times[0]:.3f} | {times[1]:.3f} |", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--programs", default="")
    arguments.add_argument("--threads", default="1,2,4,8")
    arguments.add_argument("--formats", default=",".join(FORMATS))
    arguments.add_argument("--ways", default="")
    arguments.add_argument("--seconds", type=float, default=5)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--steps", action="store_true")
    for name in ("--child", "--way", "--file", "--rows"):
        arguments.add_argument(name, help=argparse.SUPPRESS, **({"action": "store_true"} if name == "--child" else {}))
    arguments.add_argument("--threads-of-child", type=int, default=1, help=argparse.SUPPRESS)
    a = arguments.parse_args()
    child(a) if a.child else steps(a) if a.steps else table(a)


if __name__ == "__main__":
    main()
