"""Kills runs, lets the same command go on, and compares the output with that of a run that was never interrupted.

In:  kill_walk.py MELFLOW LIBRARY [--kills N] [--seed S] [--cases A,B] [--jobs J] [--python PYTHON]
     LIBRARY: fail_call.cpp, built. PYTHON: one with the package melflow; then the cases are pipelines that call
     functions of Python, run by it in place of MELFLOW. N runs are killed in all, spread over the cases: half of them at a call of the
     system that changes files, from the first on, the others at any call. Every third is killed again while it goes on.
Out: a line for each that ended wrong, and a table; exit status 0 when there is none, 1 else.

Right is: after the last run the folder has the same files with the same bytes as after a run without a kill, and
nothing else. What a run goes on with is less than all only by what was under way since the last entry in its journal.
"""

import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import walks

FILES = 40
SECONDS = 120

WRITING = ["pwrite", "write", "ftruncate", "rename", "unlink", "fsync"]
OTHERS = ["open", "stat", "pread", "read", "close", "flock"]

PIPELINE = """
version: 1
memory: {{host: {memory}}}
graph:
  files: {{stage: file_list, root: {root}, include: {include}, labels: top_dir{files}}}
  read: {{stage: disk_read, from: files{read}}}
  decode: {{stage: decode, from: read}}
{before}  write: {{stage: {sink}, from: {last}, path: out.{ending}, checkpoint: {checkpoint}{write}}}
{more}"""

MEL = """  segment: {stage: segment, from: decode}
  batch: {stage: batch, from: segment, files: 2}
  mel: {stage: mel, from: batch, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20%s}
"""

SAMPLES = """  segment: {stage: segment, from: decode}
  rows: {stage: samples, from: segment}
"""


class Case:
    def __init__(self, sink="hdf5_write", updates=False, include="[a/*, b/*, c/*]", verb=(), files="", read="", write="", mel="", more="",
                 samples=False, checkpoint="1KiB"):
        self.updates = updates  # an output of the folders a and b
        self.verb = (["update", *verb] if updates else ["run"])
        self.text = dict(memory="64MiB", sink=sink, files=files, read=read, write=write, more=more, checkpoint=checkpoint, include=include,
                         ending={"npy_write": "npy", "kaldi_write": "ark", "tar_write": "tar"}.get(sink, "h5"),
                         before=SAMPLES if samples else MEL % mel,
                         last="rows" if samples else "mel")


SPLITS = ", splits: ratio, split_ratios: {train: 70, valid: 15, test: 15}"
CASES = {
    "hdf5": Case(),
    "every_file": Case(checkpoint="1"),
    "npy": Case("npy_write"),
    "splits": Case(files=SPLITS, write=", split_files: true, statistics: train"),
    "npy_splits": Case("npy_write", files=SPLITS),
    "deflate": Case(write=", compression: deflate, chunk: 4KiB"),
    "float16": Case(write=", dtype: float16, statistics: all"),
    "normalize": Case(write=", statistics: all, normalize: true"),
    "groups": Case("npy_write", write=", statistics: all, statistics_by: label, normalize: true"),
    "kaldi": Case("kaldi_write", write=", statistics: all, statistics_by: label"),
    "kaldi_packed": Case("kaldi_write", write=", compression: 2"),
    "tar": Case("tar_write"),
    "sync": Case(write=", sync: true"),
    "blocks": Case(read=", whole: 4KiB, buffer: 4KiB"),
    "late": Case(read=", whole: 4KiB, buffer: 4KiB", mel=", log: db, ref: max, top_db: 80"),
    "samples": Case(write=", dtype: int16", samples=True),
    "preload": Case(files=", feed: preload"),
    "cache": Case(files=", feed: cache, cache_path: cache"),
    "update": Case(updates=True),
    "update_npy": Case("npy_write", updates=True),
    "update_splits": Case(updates=True, files=SPLITS, write=", split_files: true, statistics: all"),
    "update_deflate": Case(updates=True, write=", compression: deflate, chunk: 4KiB"),
    "update_float16": Case(updates=True, write=", dtype: float16, sync: true"),
    "update_compact": Case(updates=True, verb=["--compact"], checkpoint="1"),
    "update_dropped": Case(updates=True, include="[b/*, c/*]", write=", max_dropped: 100%, statistics: all"),
    "update_blocks": Case(updates=True, read=", whole: 4KiB, buffer: 4KiB", mel=", log: db, ref: max, top_db: 80"),
    "two": Case(more="  second: {stage: npy_write, from: mel, path: second.npy, checkpoint: 2KiB}\n"),
    "update_two": Case(updates=True, more="  second: {stage: npy_write, from: mel, path: second.npy}\n"
                       "  third: {stage: hdf5_write, from: mel, path: a_third.h5}\n"),
}

# The processes of a function are not killed: that fails a recording.
FUNCTIONS = """
import os

import melflow

os.environ.pop("MELFLOW_FAULT", None)


def quieter(samples, rate):
    if len(samples) % 7 == 0:
        melflow.skip("has a multiple of 7 samples")
    return samples / 2


def twice(samples, rate):
    yield samples
    yield samples[::2]


def halves(samples, rate):
    middle, end = len(samples) / 2 / rate, len(samples) / rate
    return [(0, middle), (middle, end)]


def together(batch, rate):
    return [quieter(samples, rate) for samples in batch]


class Delayed:
    def __init__(self):
        self.kept = None

    def __call__(self, block):
        before, self.kept = self.kept, block
        return before

    def finish(self):
        return self.kept


def odd(rows):
    if len(rows) % 5 == 0:
        raise ValueError("has a multiple of 5 rows")
    return rows[1::2]
"""

NODE = "  %s: {stage: python, from: %s, call: functions.py:%s%s}\n"


def calls(function, more="", rows="", last="mel", **options):
    out = Case(checkpoint="1", **options)
    before = NODE % ("function", "decode", function, more) + MEL % ""
    before = before.replace("from: decode}", "from: function}")
    out.text.update(memory="1GiB", before=before + rows, last=last)
    return out


PYTHON_CASES = {
    "threads": calls("quieter"),
    "processes": calls("quieter", ", processes: 2"),
    "batches": calls("together", ", batch: 4"),
    "python_blocks": calls("Delayed", ", blocks: 1000"),
    "many": calls("twice", ", gives: waveforms, grows: 2"),
    "rows": calls("quieter", rows=NODE % ("last", "mel", "odd", ", takes: rows, gives: rows"), last="last"),
    "update_many": calls("twice", ", gives: waveforms, grows: 2", updates=True),
}


def make_corpus(folder):
    noise = random.Random(1)
    for i in range(FILES):
        path = os.path.join(folder, "abc"[i % 3], f"{i:02}.wav")
        if i % 13 == 7:  # fails, with a reason
            with open(path, "wb") as f:
                f.write(b"no sound")
        else:
            walks.write_wav(path, noise.randbytes(2 * (1200 + 150 * i)))


class Walk:
    def __init__(self, work, program, library, name):
        self.program, self.library, self.name = program, library, name
        self.case = CASES.get(name) or PYTHON_CASES[name]
        self.work = os.path.join(work, name)
        os.makedirs(self.work)
        self.yaml = os.path.join(self.work, "job.yaml")
        text = PIPELINE.format(root=os.path.join(work, "corpus"), **self.case.text)
        functions = os.path.join(self.work, "functions.py")  # its path is in what a run says of a failure
        with open(functions, "w") as f:
            f.write(FUNCTIONS)
        with open(self.yaml, "w") as f:
            f.write(text.replace("functions.py", functions))
        self.early = os.path.join(self.work, "early")
        os.makedirs(self.early)
        if self.case.updates:
            made = self.start(self.early, {}, ["run", "--set", "files.include=[a/*, b/*]"])
            assert made.returncode in (0, 3), made.stderr
        clean = self.folder("clean")
        self.log = os.path.join(self.work, "log")
        ended = self.start(clean, {"MELFLOW_FAULT_LOG": self.log})
        assert ended.returncode in (0, 3), ended.stderr
        self.code = ended.returncode
        self.clean = self.contents(clean)

    def folder(self, name):
        out = os.path.join(self.work, name)
        shutil.copytree(self.early, out)
        return out

    def start(self, folder, environment, verb=None):
        verb, *more = verb or self.case.verb
        program = [self.program, "-m", "melflow"] if self.name in PYTHON_CASES else [self.program]
        command = [*program, verb, self.yaml, "--workers", "2", "--json", *more]
        return walks.run(command, folder, SECONDS, LD_PRELOAD=self.library, **environment)

    @staticmethod
    def contents(folder):
        return {name: data for name, data in walks.contents(folder).items() if not name.startswith("cache")}

    def kills(self, count, chance):
        """`count` places: the first calls that write, and random ones."""
        counts = walks.counts(self.log)
        writing = [(call, n) for n in range(1, 201) for call in WRITING if n <= counts[call]]
        chance.shuffle(writing)
        out = writing[:(count + 1) // 2]
        while len(out) < count:
            call = chance.choice(WRITING + OTHERS)
            if counts[call] > 0:
                out.append((call, chance.randint(1, counts[call])))
        return out

    def wrong(self, number, kills):
        """How it ended wrong, "" where it did not; and how many files were not computed again."""
        folder = self.folder(str(number))
        resumed = 0
        try:
            for call, n in kills:
                ended = self.start(folder, {"MELFLOW_FAULT": f"{call}:{n}:kill"})
                if ended.returncode not in (-9, 0, 3) and not self.is_complete(ended):
                    return f"exit {ended.returncode}: {ended.stderr.decode(errors='replace')[:300]}", 0
            ended = self.start(folder, {})
            if ended.returncode != self.code:
                if not self.is_complete(ended):
                    return f"then exit {ended.returncode}: {ended.stderr.decode(errors='replace')[:300]}", 0
            elif ended.stdout:
                stages = json.loads(ended.stdout)["stages"]
                resumed = max(int(s.get("summary", {}).get("resumed_files", 0)) for s in stages)
            return walks.difference(self.contents(folder), self.clean), resumed
        except subprocess.TimeoutExpired:
            return "hangs", 0
        finally:
            shutil.rmtree(folder)

    @staticmethod
    def is_complete(ended):
        """The kill before came when all was done but for tidying up."""
        return ended.returncode == 1 and b"exists already" in ended.stderr


def main():
    arguments = walks.arguments(kills=1000, seed=1, cases="", python="")
    red = runs = 0
    names = arguments.cases.split(",") if arguments.cases else list(PYTHON_CASES if arguments.python else CASES)
    program = os.path.abspath(arguments.python) if arguments.python else arguments.melflow
    with tempfile.TemporaryDirectory(prefix="melflow_kills_") as work, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        make_corpus(os.path.join(work, "corpus"))
        for k, name in enumerate(names):
            chance = random.Random(f"{arguments.seed} {name}")
            count = arguments.kills // len(names) + (k < arguments.kills % len(names))
            walk = Walk(work, program, arguments.library, name)
            kills = walk.kills(count, chance)
            rounds, i = [], 0
            while i < len(kills):
                n = 2 if len(rounds) % 3 == 2 else 1
                rounds.append(kills[i:i + n])
                i += n
            went_on = 0
            for (what, resumed), killed in zip(pool.map(walk.wrong, range(len(rounds)), rounds), rounds):
                went_on += resumed > 0
                if what:
                    red += 1
                    print(f"{name}: {killed}: {what}", flush=True)
            runs += len(kills)
            print(f"{name}: {len(kills)} kills, {went_on} of {len(rounds)} runs went on with files that were done",
                  flush=True)
            shutil.rmtree(walk.work)
    print(f"{runs} kills: {red} ended wrong")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
