"""Damages rows of outputs, repairs them, and compares all files of the output with those of before the damage.

In:  repair_walk.py MELFLOW [--outputs N] [--seed S] [--jobs J]
     N outputs, each of a pipeline that is drawn: sinks and their options x columns, targets and splits x warnings of
     recordings and of lists x several results of a recording.
Out: a line for each that differs, and counts; exit status 0 when there is none, 1 else.

A bit is flipped in one to three places of which `repair --dry-run` says that they are rows. Some of the recordings
whose rows are not damaged are removed before the repair.
"""

import argparse
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import walks

SECONDS = 120
SINKS = [  # of the node write, and the ending of its path
    ("stage: hdf5_write", "h5"),
    ("stage: hdf5_write, dtype: float16, statistics: all", "h5"),
    ("stage: hdf5_write, compression: deflate, chunk: 4KiB", "h5"),
    ("stage: hdf5_write, statistics: all, statistics_by: speaker", "h5"),
    ("stage: hdf5_write, statistics: all, normalize: true", "h5"),
    ("stage: hdf5_write, split_files: true", "h5"),
    ("stage: npy_write, split_files: false", "npy"),
    ("stage: npy_write, dtype: float16, statistics: all, normalize: true", "npy"),
    ("stage: npy_write", "npy"),
    ("stage: kaldi_write", "ark"),
    ("stage: kaldi_write, compression: 2", "ark"),
]
COLUMNS = ["", "[text, speaker]", "[speaker, text, zone]", "{who: speaker, text: text}", "[zone, text]"]
RESULTS = ["", "repeat", "speed", "channels"]


class Case:
    """A pipeline and its corpus, in a folder of its own."""

    def __init__(self, draw, folder):
        self.draw, self.folder = draw, folder
        self.sink, self.ending = draw.choice(SINKS)
        by_speaker = "speaker" in self.sink
        self.columns = "[text, speaker]" if by_speaker else draw.choice(COLUMNS)
        self.results = draw.choice(RESULTS)
        self.has_splits = draw.random() < 0.5 or "split_files: true" in self.sink
        # Recordings that are cut off or no sound, and lines of the list that name none or one again.
        self.cut, self.broken, self.listed_twice, self.gone = (draw.random() < 0.4 for _ in range(4))
        self.has_targets = draw.random() < 0.3

    def __str__(self):
        words = [self.sink, f"columns {self.columns or 'none'}", self.results, *(
            name for name in ("has_splits", "cut", "broken", "listed_twice", "gone", "has_targets") if getattr(self, name))]
        return ", ".join(word for word in words if word)

    def write(self):
        lines = ["path,text,speaker,zone,label,split,age"]
        for i in range(12):
            name = f"{'ab'[i % 2]}/{i}.wav"
            path = os.path.join(self.folder, "clips", name)
            samples = self.draw.randbytes(2 * 2 * (400 + 300 * self.draw.randrange(6)))
            walks.write_wav(path, samples, channels=2)
            if self.cut and i % 5 == 2:
                os.truncate(path, os.path.getsize(path) - len(samples) // 20 // 4 * 4)
            if self.broken and i % 5 == 3:
                with open(path, "wb") as file:
                    file.write(b"no sound")
            row = f"{name},words {11 - i},{'zoe' if i % 3 else 'ann'},{'' if i % 4 else 'north'},{'ab'[i % 2]},{'train' if i % 3 else 'val'},{i}"
            lines += [row] * (2 if self.listed_twice and i == 4 else 1)
        if self.gone:
            lines += ["a/gone.wav,none,ann,,a,train,1", "a/gone2.wav,none,ann,,a,val,2"]
        with open(os.path.join(self.folder, "list.csv"), "w") as file:
            file.write("\n".join(lines) + "\n")
        files = "root: clips, manifest: list.csv, labels: manifest"
        files += f", columns: {self.columns}" if self.columns else ""
        files += ", splits: manifest" if self.has_splits else ""
        files += ", targets: [age]" if self.has_targets else ""
        repeat = "  takes: {stage: repeat, from: read, times: 2}\n" if self.results in ("repeat", "speed") else ""
        chain = "  played: {stage: speed, from: decode, factors: [0.9, 1.1]}\n  resample: {stage: resample, from: played, rate: 8000}\n"
        chain = chain if self.results == "speed" else ""
        decode = ", downmix: each" if self.results == "channels" else ""
        with open(os.path.join(self.folder, "p.yaml"), "w") as file:
            file.write(f"version: 1\ngraph:\n  files: {{stage: file_list, {files}}}\n  read: {{stage: disk_read, from: files}}\n{repeat}"
                       f"  decode: {{stage: decode, from: {'takes' if repeat else 'read'}{decode}}}\n{chain}"
                       f"  mel: {{stage: mel, from: {'resample' if chain else 'decode'}, sample_rate: 8000, n_fft: 128, hop: 40, n_mels: 20}}\n"
                       f"  write: {{from: mel, path: out.{self.ending}, {self.sink}}}\n")

    def outputs(self):
        return {name: data for name, data in walks.contents(self.folder).items() if name.startswith("out.")}


def melflow(program, folder, *words):
    return walks.run([program, *words], folder, SECONDS)


def damaged(program, case, name):
    """Flips bits of rows in a file of the output. Gives the recordings that `repair` then names."""
    path = os.path.join(case.folder, name)
    found = []
    for _ in range(60):
        data = bytearray(walks.read(path))
        data[case.draw.randrange(len(data))] ^= 1 << case.draw.randrange(8)
        with open(path, "r+b") as file:
            before = file.read()
            file.seek(0)
            file.write(data)
        said = melflow(program, case.folder, "repair", name, "--dry-run")
        now = re.findall(rb"^  (\S+): damaged", said.stdout, re.M) if said.returncode == 0 else []
        if len(now) > len(found):
            found = now
            if len(found) > case.draw.randrange(3):
                break
        else:
            with open(path, "r+b") as file:
                file.write(before)
    return [name.decode() for name in found]


def walk(program, number, seed, above):
    """What is wrong with one output; "" for nothing."""
    for attempt in range(20):
        wrong = attempted(program, number, f"{seed} {number} {attempt}", above)
        if wrong is not None:
            return wrong
    return "no rows could be damaged in 20 outputs"


def attempted(program, number, seed, above):
    """As walk(); None where no rows could be damaged."""
    draw = random.Random(seed)
    folder = os.path.join(above, str(number))
    case = Case(draw, folder)
    case.write()
    ran = melflow(program, folder, "run", "p.yaml", "-q")
    if ran.returncode not in (0, 3):
        return f"{case}: the run ended with {ran.returncode}: {ran.stderr.decode()}"
    whole = case.outputs()
    rows = [name for name in whole if name.endswith("." + case.ending) and ".index." not in name]
    found = damaged(program, case, draw.choice(rows))
    if not found:
        shutil.rmtree(folder)
        return None
    wrong = ""
    for place, _, names in os.walk(os.path.join(folder, "clips")):
        for name in names:
            path = os.path.join(place, name)
            if draw.random() < 0.2 and os.path.relpath(path, os.path.join(folder, "clips")) not in found:
                os.unlink(path)
    repaired = melflow(program, folder, "repair", draw.choice(rows))
    if repaired.returncode != 0:
        wrong = f"{case}: repair of {found} ended with {repaired.returncode}: {repaired.stderr.decode()}"
    else:
        different = walks.difference(case.outputs(), whole)
        if different:
            wrong = f"{case}: after repair of {found} {different}"
    shutil.rmtree(folder)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("melflow", type=os.path.abspath)
    parser.add_argument("--outputs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="melflow_repair_") as above, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda i: walk(arguments.melflow, i, arguments.seed, above), range(arguments.outputs)))
    for wrong in filter(None, results):
        print(wrong)
    differ = sum(map(bool, results))
    print(f"{len(results)} outputs damaged and repaired, {differ} differ or failed")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
