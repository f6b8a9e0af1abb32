"""Times melflow's loader beside other ways to feed a training loop, in one run.

loader.py [--dir DIR] [--programs DIR] [--rounds N] [--scale X] [--jobs frames,store,speech,rows]
In:   a Python that has the package melflow (tests/python/run.sh makes build/python-env), and of librosa, soundfile, torch,
      grain, spdl, jax-dataloader and h5py what is to be compared (what is not installed is named as omitted); --programs: where
      melflow_make_corpus, melflow_decode_only and melflow are.
Out:  a table for each job: time to the first batch [s], samples a second, peak resident memory [MiB]; medians of rounds in
      turn, each way in a process of its own. Corpora are kept in DIR.

The clock starts when everything is imported, before the loader is made. Files are in the page cache.
"""
import argparse
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time

FRAME, BATCH = 44100, 16
EPOCHS = 5  # for the fast ways

FRAMES = """
version: 1
graph:
  files:   {{stage: file_list, root: {root}{feed}}}
  read:    {{stage: disk_read, from: files}}
  decode:  {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode, length: 44100}}
  rows:    {{stage: samples, from: segment, sample_rate: 44100}}
  out:     {{stage: batches, from: rows, size: 16, dtype: {dtype}}}
"""
SPEECH = """
version: 1
graph:
  files:   {{stage: file_list, root: {root}, labels: top_dir}}
  read:    {{stage: disk_read, from: files}}
  decode:  {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode}}
  batch:   {{stage: batch, from: segment}}
  mel:     {{stage: mel, from: batch, sample_rate: 16000, n_fft: 400, hop: 160, n_mels: 80, log: db}}
  out:     {{stage: {sink}, from: mel}}
"""


def paths_of(root):
    return sorted(os.path.join(d, f) for d, _, files in os.walk(root) for f in files if not f.startswith("."))


def frames_of(samples):
    return [samples[i:i + FRAME] for i in range(0, len(samples) - FRAME + 1, FRAME)]


def batched(samples, size, stack):
    held = []
    for sample in samples:
        held.append(sample)
        if len(held) == size:
            yield stack(held)
            held = []
    if held:
        yield stack(held)


# ---- the loaders: functions that take the corpus and yield batches, whose len() is the number of
# samples; None restarts the clock, so that everything before counts as preparation

def melflow_frames(root):
    import melflow
    for batch in melflow.Loader(FRAMES.format(root=root, feed="", dtype="float32")):
        yield batch["windows"]


def melflow_store(root):
    import melflow
    text = FRAMES.format(root=root, feed=f", feed: cache, cache_path: {root}.cache", dtype="int16")
    loader = melflow.Loader(text, batch_size=64)
    for _ in range(EPOCHS):
        for batch in loader:
            yield batch["windows"]


def melflow_by_number(root):
    """With its index there: main() makes it."""
    import melflow
    text = FRAMES.format(root=root, feed="", dtype="float32")
    for batch in melflow.open(text, index=root + ".npz", store="4GiB").batches(BATCH, seed=1):
        yield batch["windows"]


def melflow_by_number_store(root):
    import melflow
    rows = melflow.open(FRAMES.format(root=root, feed="", dtype="int16"), index=False, store="4GiB")
    yield None  # all rows are stored now
    loader = rows.batches(64, seed=1)
    for _ in range(EPOCHS):
        for batch in loader:
            yield batch["windows"]


def librosa_generator(root):
    import librosa
    import numpy as np
    frames = (f for p in paths_of(root) for f in frames_of(librosa.load(p, sr=None)[0]))
    return batched(frames, BATCH, np.stack)


def torch_workers(root):
    import numpy as np
    import soundfile
    import torch

    class Files(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            for path in paths_of(root)[info.id::info.num_workers]:
                yield from frames_of(soundfile.read(path, dtype="float32")[0])

    return torch.utils.data.DataLoader(Files(), batch_size=BATCH, num_workers=os.cpu_count(),
                                       collate_fn=np.stack)


def grain_threads(root):
    import grain
    import numpy as np
    import soundfile
    files = grain.MapDataset.source(paths_of(root)).map(lambda p: frames_of(soundfile.read(p, dtype="float32")[0]))
    read = files.to_iter_dataset(grain.ReadOptions(num_threads=os.cpu_count()))
    return batched((f for frames in read for f in frames), BATCH, np.stack)


def spdl_threads(root):
    import numpy as np
    import soundfile
    from spdl.pipeline import PipelineBuilder
    pipeline = (PipelineBuilder().add_source(paths_of(root))
                .pipe(lambda p: frames_of(soundfile.read(p, dtype="float32")[0]), concurrency=os.cpu_count())
                .add_sink(4).build(num_threads=os.cpu_count()))
    with pipeline.auto_stop():
        yield from batched((f for frames in pipeline for f in frames), BATCH, np.stack)


def jax_files(root):
    """Its own backend, which takes what a dataset gives for an array of numbers; here of recordings."""
    import jax_dataloader
    import numpy as np
    import soundfile

    class Files(jax_dataloader.Dataset):
        def __init__(self):
            self.paths = paths_of(root)

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, numbers):
            return [f for i in numbers for f in frames_of(soundfile.read(self.paths[i], dtype="float32")[0])]

    files = jax_dataloader.DataLoader(Files(), backend="jax", batch_size=1, shuffle=True)
    return batched((f for frames in files for f in frames), BATCH, np.stack)


def jax_store(root):
    """All frames as one array, as its manual has it."""
    import jax_dataloader
    import numpy as np
    import soundfile
    frames = np.stack([f for p in paths_of(root) for f in frames_of(soundfile.read(p, dtype="int16")[0])])
    yield None
    loader = jax_dataloader.DataLoader(jax_dataloader.ArrayDataset(frames), backend="jax", batch_size=64, shuffle=True)
    for _ in range(EPOCHS):
        for batch, in loader:
            yield batch


def padded(rows):
    import numpy as np
    out = np.zeros((len(rows), max(len(r) for r in rows), rows[0].shape[1]), np.float32)
    for i, r in enumerate(rows):
        out[i, :len(r)] = r
    return out


def melflow_speech(root):
    import melflow
    for batch in melflow.Loader(SPEECH.format(root=root, sink="batches"), batch_size=64):
        yield batch["mel"]


def mel_of(path):
    import librosa
    import soundfile
    samples, rate = soundfile.read(path, dtype="float32")
    power = librosa.feature.melspectrogram(y=samples, sr=rate, n_fft=400, hop_length=160, n_mels=80)
    return librosa.power_to_db(power).T


def librosa_speech(root):
    return batched((mel_of(p) for p in paths_of(root)[:300]), 64, padded)


def torch_speech(root):
    import torch

    class Files(torch.utils.data.Dataset):
        def __init__(self):
            self.paths = paths_of(root)[:300]

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, i):
            return mel_of(self.paths[i])

    return torch.utils.data.DataLoader(Files(), batch_size=64, num_workers=os.cpu_count(), collate_fn=padded)


def rows_of(root):
    path = root + ".h5"
    return path, importlib.import_module("melflow").open(path)


def melflow_rows(root):
    loader = rows_of(root)[1].batches(256, seed=1)
    for _ in range(EPOCHS):
        for batch in loader:
            yield batch["windows"]


def places(root, count):
    import numpy as np
    return np.array_split(np.random.default_rng(1).permutation(count), max(1, count // 256))


def h5py_sorted(root):
    import h5py
    import numpy as np
    with h5py.File(root + ".h5") as file:
        rows = file["windows"]
        for indices in places(root, min(len(rows), 4096)):
            yield rows[np.sort(indices)]


def mapped_copy(root):
    """The rows copied in the same manner by NumPy's loop in C, out of a map of the file."""
    import h5py
    import numpy as np
    with h5py.File(root + ".h5") as file:
        rows = file["windows"]
        mapped = np.memmap(root + ".h5", rows.dtype, "r", rows.id.get_offset(), rows.shape)
    for _ in range(EPOCHS):
        for indices in places(root, len(mapped)):
            yield np.take(mapped, indices, 0)


JOBS = {
    "frames": ("400 MP3 files of 5 to 25 s, 44.1 kHz: batches of 16 frames of 44,100 samples",
               [melflow_frames, melflow_by_number, librosa_generator, torch_workers, grain_threads, spdl_threads, jax_files]),
    "store": ("as 16-bit WAV, from a cache of decoded audio, and from memory by number: int16, batches of 64, five epochs",
              [melflow_store, melflow_by_number_store, jax_store]),
    "speech": ("2,000 utterances of 2 to 15 s, 16 kHz, 80 bands: padded batches of 64", [melflow_speech, librosa_speech, torch_speech]),
    "rows": ("windows of 44,100 samples in HDF5, int16, shuffled: batches of 256, five epochs", [melflow_rows, h5py_sorted, mapped_copy]),
}


def one(way, root):
    """In a child: imports come first, and a first use of what takes its time then."""
    for name in ("numpy", "librosa", "soundfile", "torch", "grain", "spdl.pipeline", "jax_dataloader", "h5py", "melflow"):
        wanted = {"librosa": ("librosa",), "soundfile": ("torch_w", "grain", "spdl", "jax"), "torch": ("torch",), "grain": ("grain",),
                  "spdl.pipeline": ("spdl",), "jax_dataloader": ("jax",),
                  "h5py": ("h5py", "mapped", "melflow_rows"), "melflow": ("melflow",)}
        if name == "numpy" or way.startswith(wanted[name]) or (way == "torch_speech" and name == "librosa"):
            importlib.import_module(name)
    if way == "librosa_generator":
        importlib.import_module("librosa").load(paths_of(root)[0], sr=None)
    if "speech" in way and not way.startswith("melflow"):
        mel_of(paths_of(root)[0])
    began, first, samples, values = time.perf_counter(), None, 0, 0
    for batch in globals()[way](root):
        if batch is None:
            began = time.perf_counter()
            continue
        first = first or time.perf_counter() - began
        samples += len(batch)
        values += batch.shape[0] * batch.shape[1]
    seconds = time.perf_counter() - began
    usage = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps(dict(first=first, rate=samples / seconds, frames=values / seconds,
                          processor=sum(u.ru_utime + u.ru_stime for u in usage),
                          peak=max(u.ru_maxrss for u in usage) / 1024)))


def corpus(name, arguments, options):
    root = os.path.join(arguments.dir, f"{name}-{arguments.scale}")
    if not os.path.isdir(root):
        subprocess.run([os.path.join(arguments.programs, "melflow_make_corpus"), "--out", root, *options], check=True,
                       stdout=subprocess.DEVNULL)
    for path in paths_of(root):  # into the page cache
        with open(path, "rb") as file:
            file.read()
    return root


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default="build/perf/loader")
    parser.add_argument("--programs", default="build/release/bin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return one(*arguments.one)
    os.makedirs(arguments.dir, exist_ok=True)
    arguments.dir = os.path.abspath(arguments.dir)
    for name in arguments.jobs.split(","):
        title, ways = JOBS[name]
        if name == "speech":
            root = corpus("speech", arguments, ["--files", str(max(64, int(2000 * arguments.scale))), "--rate", "16000",
                                                "--seconds-min", "2", "--seconds-max", "15", "--split-dirs", "4"])
        elif name == "store":
            root = corpus("wav", arguments, ["--files", str(max(16, int(400 * arguments.scale))), "--rate", "44100",
                                             "--seconds-min", "5", "--seconds-max", "25"])
        else:
            root = corpus("mp3", arguments, ["--files", str(max(16, int(400 * arguments.scale))), "--rate", "44100", "--format",
                                             "mp3", "--seconds-min", "5", "--seconds-max", "25"])
        if name == "rows" and not os.path.exists(root + ".h5"):
            text = FRAMES.format(root=root, feed="", dtype="int16").replace(
                "stage: batches, from: rows, size: 16,", f"stage: hdf5_write, from: rows, path: {root}.h5,")
            with open(root + ".yaml", "w", encoding="utf-8") as out:
                out.write(text)
            subprocess.run([os.path.join(arguments.programs, "melflow"), "run", root + ".yaml", "--quiet"], check=True)
        if name == "frames":
            subprocess.run([sys.executable, os.path.abspath(__file__), "--one", "melflow_by_number", root], check=True,
                           stdout=subprocess.DEVNULL)
        print(f"\n## {name}: {title}\n", flush=True)
        measured = {}
        for r in range(arguments.rounds + (name == "store")):
            for way in ways:
                ended = subprocess.run([sys.executable, os.path.abspath(__file__), "--one", way.__name__, root],
                                       capture_output=True, text=True)
                if ended.returncode != 0:
                    if r == 0:
                        print(f"{way.__name__}: omitted: {ended.stderr.strip().splitlines()[-1]}", flush=True)
                    continue
                if name != "store" or r > 0:  # the first rank fills it
                    measured.setdefault(way.__name__, []).append(json.loads(ended.stdout))
        print("| way | first batch [s] | samples/s | frames/s | processor [s] | peak [MiB] | time ÷ first |\n|---|---|---|---|---|---|---|")
        base = measured.get(ways[0].__name__)
        for way, rounds in measured.items():
            middle = {k: statistics.median(m[k] for m in rounds) for k in rounds[0]}
            ratio = statistics.median(b["rate"] / m["rate"] for b, m in zip(base, rounds)) if base else float("nan")
            print(f"| {way} | {middle['first']:.3f} | {middle['rate']:,.0f} | {middle['frames']:,.0f} | {middle['processor']:.2f} | "
                  f"{middle['peak']:,.0f} | {ratio:.2f} |", flush=True)
        if name == "frames":
            seconds = []
            for _ in range(arguments.rounds):
                began = time.perf_counter()
                subprocess.run([os.path.join(arguments.programs, "melflow_decode_only"), "--threads", str(os.cpu_count()), root],
                               check=True, stdout=subprocess.DEVNULL)
                seconds.append(time.perf_counter() - began)
            print(f"\nmelflow_decode_only (libsndfile, {os.cpu_count()} threads): {statistics.median(seconds):.2f} s for the whole corpus")


if __name__ == "__main__":
    main()
