"""What the tests of the Python package share: a corpus, its pipelines, and the rows that the program writes for them."""

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import wave

import h5py
import numpy as np

RATE = 8000

HEAD = """version: 1
memory: {{host: {memory}}}
graph:
  files: {{stage: file_list, root: {root}, labels: top_dir{files}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read, truncated: fail, block: 64KiB}}
  segment: {{stage: segment, from: decode{segment}}}
"""
MEL = """  batch: {stage: batch, from: segment, files: 4}
  rows: {stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20, n_jobs}
""".replace(", n_jobs", "")
SAMPLES = "  rows: {stage: samples, from: segment, sample_rate: 8000}\n"
AUDIO = """  audio: {{stage: samples, from: segment, sample_rate: 8000}}
  more: {{stage: hdf5_write, from: audio, path: {path}}}
"""
WINDOWS = dict(segment=", length: 2000, hop: 1500")


def make_corpus(root, files=60):
    """Recordings of 0.1 to 8 s in three folders; every thirteenth is broken in the middle, one is empty."""
    random = np.random.default_rng(1)
    for i in range(files):
        folder = os.path.join(root, ("ant", "bee", "cat")[i % 3])
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{i:03}.wav")
        count = int(random.integers(800, 8 * RATE)) if i != 7 else 0
        if i == 20:
            count = 60 * RATE  # in many blocks
        values = (random.standard_normal(count) * 3000).astype(np.int16)
        with wave.open(path, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(RATE)
            out.writeframes(values.tobytes())
        if i % 13 == 12:
            os.truncate(path, 44 + count)


def samples_of(path):
    """The int16 samples of a WAV file."""
    with wave.open(path) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


def pipeline(root, sink, *, segment="", files="", chain=MEL, memory="64MiB"):
    return HEAD.format(root=root, segment=segment, files=files, memory=memory) + chain + f"  out: {{{sink}, from: rows}}\n"


def varied(text):
    """A pipeline with two results of each recording, which differ in speed."""
    for old, new in (("  decode: {stage: decode, from: read", "  takes: {stage: repeat, from: read, times: 2}\n  decode: {stage: decode, from: takes"),
                     ("  segment: {stage: segment, from: decode", "  speed: {stage: speed, from: decode, factors: [0.9, 1]}\n"
                      "  resample: {stage: resample, from: speed, rate: 8000}\n  segment: {stage: segment, from: resample")):
        text = text.replace(old, new)
    return text


def write_rows(folder, name, text):
    """Runs the program on a pipeline that writes NAME.h5."""
    path = os.path.join(folder, name + ".yaml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    ended = subprocess.run([os.environ["MELFLOW_PROGRAM"], "run", path, "--quiet"], capture_output=True, text=True)
    if ended.returncode not in (0, 3):
        raise RuntimeError(ended.stderr)
    return os.path.join(folder, name + ".h5")


def rehash(path):
    """Gives a changed output the hash of the index that it has now, so that it counts as intact."""
    import melflow
    try:
        melflow.open(path)
    except melflow.RunError as error:
        now = re.search("index_hash is ([0-9a-f]{16}), not", str(error))
        if not now:
            return
        if path.endswith(".npy"):
            document = path[:-3] + "index.json"
            with open(document, encoding="utf-8") as file:
                about = json.load(file)
            with open(document, "w", encoding="utf-8") as file:
                json.dump({**about, "index_hash": now[1]}, file)
        else:
            with h5py.File(path, "r+") as file:
                file.attrs["index_hash"] = now[1]


def remarks_of(report):
    """As `remarks` of rows has them."""
    return [(r["path"], r["status"], r["stage"], r["reason"]) for r in report["remarks"]]


def of_each(test):
    """Runs it for what kinds() of its class gives."""
    @functools.wraps(test)
    def run(self):
        for name, *what in self.kinds():
            with self.subTest(name):
                test(self, name, *what)
    return run


class CorpusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = os.path.join(cls.folder.name, "audio")
        make_corpus(cls.root)

    def program(self, *words, code=0, **more):
        """Runs the program, and gives what it says. code: the exit status that it has to have, or several."""
        ended = subprocess.run([os.environ["MELFLOW_PROGRAM"], *words], capture_output=True, text=True, errors="surrogateescape", **more)
        self.assertIn(ended.returncode, code if isinstance(code, tuple) else (code,), ended.stdout + ended.stderr)
        return ended.stdout + ended.stderr

    def yaml(self, text):
        path = os.path.join(self.folder.name, "p.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def run_program(self, text, *words, code=(0, 3), **more):
        """Runs a pipeline, or another verb on it."""
        return self.program(*(words or ["run", "--quiet"]), self.yaml(text), code=code, **more)

    def kill(self, text, part, size):
        """Runs a pipeline until the file `part` has so many bytes."""
        child = subprocess.Popen([os.environ["MELFLOW_PROGRAM"], "run", self.yaml(text), "--quiet"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)

        def is_begun():
            try:
                return os.path.getsize(part) > size
            except FileNotFoundError:  # not yet, or not any more
                return False

        while child.poll() is None and not is_begun():
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()

    def out(self, name):
        """An empty folder."""
        path = os.path.join(self.folder.name, name)
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        return path

    @classmethod
    def make(cls, name, **case):
        """Of one corpus: a pipeline for training, and two files of rows."""
        mel, audio = (os.path.join(cls.folder.name, f"{name}_{kind}.h5") for kind in ("mel", "audio"))
        text = pipeline(cls.root, f"stage: hdf5_write, path: {mel}", **case)
        write_rows(cls.folder.name, name, text + AUDIO.format(path=audio))
        yaml = os.path.join(cls.folder.name, name + ".train.yaml")
        with open(yaml, "w", encoding="utf-8") as out:
            out.write(pipeline(cls.root, "stage: batches", **case))
        return yaml, mel, audio
