"""Lets every call of the system that a job makes fail once, and looks at how the job ends.

In:  fault_walk.py MELFLOW LIBRARY [--part] [--cases A,B] [--calls A,B] [--jobs J]
     LIBRARY: fail_call.cpp, built. Without --part all of it: some thousand runs of 30 small files.
Out: a line for each run that ended wrong, and one in all; exit status 0 when there is none, 1 else,
     3 where Python lacks h5py.

Right is: no crash and no hang; exit 0 only with the output that a run without a fault makes; exit 3 only where
failed files are named and all others have the rows they should have; and where there is any other exit status, the
output is what it was before, whole, or the new one, whole, and the same command makes the new one when it is given
again. HDF5's own messages are never printed.
"""

import concurrent.futures
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile

import walks

try:
    import h5py
    import numpy as np
except ImportError as e:
    print(f"python3 lacks a package this test needs ({e}): apt-get install python3-h5py python3-numpy")
    sys.exit(3)

FILES = 30
SECONDS = int(os.environ.get("MELFLOW_WALK_SECONDS", 240))  # a run takes less than one second; only a hanging one reaches the limit

# The errors with which each call may fail; the most harmful one first.
ERRORS = {
    "open": [errno.EIO, errno.EMFILE, errno.EINTR],
    "opendir": [errno.EIO, errno.EMFILE],
    "readdir": [errno.EIO],
    "stat": [errno.EIO],
    "read": [errno.EIO, errno.EINTR, "short"],
    "pread": [errno.EIO, errno.EINTR, "short"],
    "write": [errno.ENOSPC, errno.EIO, errno.EINTR, "short"],
    "pwrite": [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EINTR, "short", "lost", "wrong"],
    "ftruncate": [errno.EIO, errno.EINTR],
    "fsync": [errno.EIO, errno.EINTR],
    "close": [errno.EIO, errno.EINTR],
    "rename": [errno.EIO, errno.ENOSPC],
    "unlink": [errno.EIO],
    "flock": [errno.EIO, errno.ENOLCK, errno.EINTR],
    "mmap": [errno.ENOMEM],
    "fallocate": [errno.ENOSPC, errno.EINTR],
    "thread": [errno.EAGAIN],
    "malloc": [errno.ENOMEM],
}

SILENT = ("lost", "wrong")  # the program is told that the call succeeded

PIPELINE = """
version: 1
memory: {{host: 64MiB}}
graph:
  files: {{stage: file_list, root: {root}, include: ["**/*.wav"{more}], labels: top_dir{files}}}
  read: {{stage: disk_read, from: files, engine: {engine}, whole: 4KiB}}
  decode: {{stage: decode, from: read}}
{between}  segment: {{stage: segment, from: {before}}}
  batch: {{stage: batch, from: segment, files: 4}}
  mel: {{stage: mel, from: batch, sample_rate: {rate}, n_fft: 256, hop: 80, n_mels: 20}}
  write: {{stage: {sink}, from: mel, path: out.{ending}, overwrite: true{write}}}
"""


class Case:
    """A job with an output that is there already, of the files of two folders of three."""

    def __init__(self, sink="hdf5_write", files="", write="", engine="inline", updates=False, resamples=False, workers=2):
        self.sink, self.files, self.write, self.engine, self.updates = sink, files, write, engine, updates
        self.workers = workers
        self.resamples = resamples  # with long recordings
        self.ending = "npy" if sink == "npy_write" else "h5"
        self.outputs = ["out.npy", "out.index.npy", "out.index.json"] if self.ending == "npy" else ["out.h5"]

    def pipeline(self, root):
        between = "  resample: {stage: resample, from: decode, rate: 16000}\n" if self.resamples else ""
        return PIPELINE.format(root=root, files=self.files, write=self.write, engine=self.engine, sink=self.sink, ending=self.ending,
                               between=between, more=', "**/*.wave"' if between else "", before="resample" if between else "decode", rate=16000 if between else 8000)


CASES = {
    "hdf5": Case(),
    "npy": Case("npy_write"),
    "threads": Case(engine="threads"),
    "deflate": Case(write=", compression: deflate, chunk: 4KiB"),
    "sync": Case(write=", sync: true, statistics: all, normalize: true"),
    "npy_sync": Case("npy_write", write=", sync: true, statistics: all"),
    "cache": Case(files=", feed: cache, cache_path: cache"),
    "preload": Case(files=", feed: preload"),
    "resample": Case(write=", compression: deflate, chunk: 4KiB", resamples=True),
    "update": Case(write=", statistics: all", updates=True),
    "update_contents": Case(files=", update_by: content", write=", sync: true", updates=True),
    "update_deflate": Case(write=", compression: deflate, chunk: 4KiB", updates=True),
    "update_npy": Case("npy_write", updates=True),
}


PART = {"hdf5": ERRORS, "npy": ERRORS, "deflate": ERRORS, "update": ERRORS, "resample": ["malloc"]}


def make_corpus(folder, files=FILES, samples=1200):
    noise = np.random.default_rng(1)

    def write(path, channels, count):
        samples = noise.integers(-9999, 9999, channels * count).astype("<i2")
        walks.write_wav(path, samples.tobytes(), channels)

    for i in range(files):
        write(os.path.join(folder, "abc"[i % 3], f"{i:02}.wav"), 1, samples + 100 * i)
    for i in range(2):
        write(os.path.join(folder, "long", f"{i}.wave"), 2, 100000)


def read_h5(path):
    """Everything in it: the index by name, and rows of each file."""
    with h5py.File(path, "r") as f:
        out = {"@" + name: str(value) for name, value in f.attrs.items()}
        f.visititems(lambda name, x: out.update({name: x[()].tolist()}) if isinstance(x, h5py.Dataset) else None)
        return out, np.asarray(f[f.attrs["rows"]]), [p.decode() for p in f["files/path"][()]], \
            f["files/offset"][()], f["files/count"][()], f["files/status"][()]


def read_npy(path):
    index = np.load(path.replace(".npy", ".index.npy"))
    with open(path.replace(".npy", ".index.json"), "rb") as f:
        out = {**json.load(f), "index": index.tolist()}
    return out, np.load(path), [p.decode() for p in index["path"]], index["offset"], index["count"], index["status"]


class Output:
    def __init__(self, path):
        self.all, rows, paths, offset, count, status = (read_npy if path.endswith(".npy") else read_h5)(path)
        for name in ("warnings", "index_hash", "@index_hash", "run_hash", "@run_hash"):
            self.all.pop(name, None)  # a warning makes loss honest; the hashes also cover the warnings
        self.status = dict(zip(paths, status.tolist()))
        self.rows = {p: rows[o:o + n].tobytes() for p, o, n in zip(paths, offset, count)}
        self.whole = (len(rows) == sum(count))

    def is_same(self, other):
        return self.all == other.all and self.rows == other.rows

    def lie(self, other, is_normalized):
        """What is not as it is in `other`, of files that are said to be ok."""
        if self.status.keys() != other.status.keys():
            return "files are missing from the index"
        if not self.whole:
            return "rows that belong to no file"
        for path, status in self.status.items():
            if status == 0 and len(self.rows[path]) != len(other.rows[path]):
                return f"{path} has other rows"
            if status == 0 and not is_normalized and self.rows[path] != other.rows[path]:
                return f"rows of {path} differ"
            if status == 1:
                return f"{path} is skipped"
        if all(status == 0 for status in self.status.values()):
            return "no file failed"
        return ""


class Walk:
    def __init__(self, work, program, library, name, case):
        self.program, self.library, self.name, self.case = program, library, name, case
        self.work = os.path.join(work, name)
        self.corpus = os.path.join(work, "corpus")
        os.makedirs(self.work)
        self.yaml = os.path.join(self.work, "job.yaml")
        with open(self.yaml, "w") as f:
            f.write(self.case.pipeline(self.corpus))
        self.early = os.path.join(self.work, "early")
        os.makedirs(self.early)
        made = self.start(self.early, ["run", self.yaml, "--set", "files.include=[a/*.wav, b/*.wav]"])
        assert made.returncode == 0, made.stderr
        shutil.rmtree(os.path.join(self.early, "cache"), ignore_errors=True)
        self.earlier = self.bytes_of(self.early)
        self.clean_folder = self.folder("clean")
        self.log = os.path.join(self.work, "log")
        clean = self.job(self.clean_folder, {"MELFLOW_FAULT_LOG": self.log})
        assert clean.returncode == 0, clean.stderr
        self.clean = Output(os.path.join(self.clean_folder, self.case.outputs[0]))
        self.counts = walks.counts(self.log)

    def folder(self, name):
        out = os.path.join(self.work, name)
        shutil.copytree(self.early, out)
        return out

    def bytes_of(self, folder):
        paths = [os.path.join(folder, name) for name in self.case.outputs]
        return [walks.read(path) if os.path.exists(path) else None for path in paths]

    def start(self, folder, arguments, environment=None):
        return walks.run([self.program, *arguments, "--workers", str(self.case.workers)], folder, SECONDS, **(environment or {}))

    def job(self, folder, environment):
        environment = {**environment, "LD_PRELOAD": self.library}
        return self.start(folder, ["update" if self.case.updates else "run", self.yaml], environment)

    def points(self, calls, only_part):
        for call in calls:
            every = max(1, self.counts[call] // (10 if call in ("pwrite", "malloc") else 3)) if only_part else 1
            for error in ERRORS[call][:1 if only_part else None]:
                for n in range(1, self.counts[call] + 1, every):
                    yield call, n, error
            if only_part and call == "pwrite":  # one of these writes has the names of files
                for n in range(1, self.counts[call] + 1):
                    yield call, n, "wrong"

    def wrong(self, call, n, error, goes_on=True, **environment):
        """How a run with that fault ended wrong; "" where it did not. goes_on: runs the same command again, too."""
        folder = self.folder(f"{call}-{n}-{error}")
        try:
            ended = self.job(folder, {"MELFLOW_FAULT": f"{call}:{n}:{error}", **environment})
            what = self.judge(folder, ended, error)
            if what:
                lines = (ended.stderr + ended.stdout).decode(errors="replace").split("\n")
                what += f"; exit {ended.returncode}: {lines[0][:160]}"
            elif goes_on and ended.returncode not in (0, 3):
                what = self.goes_on(folder)
        except subprocess.TimeoutExpired:
            what = "hangs"
        shutil.rmtree(folder)
        return f"{self.name}: {call} {n} {errno.errorcode.get(error, error)}: {what}" if what else ""

    def goes_on(self, folder):
        """The same command, without a fault, has to make the output."""
        again = self.job(folder, {})
        if again.returncode != 0:
            return f"then exit {again.returncode}: {again.stderr.decode(errors='replace')[:200]}"
        out = Output(os.path.join(folder, self.case.outputs[0]))
        return "" if out.is_same(self.clean) else "then the output is another one: " + self.difference(out)

    def judge(self, folder, ended, error):
        if ended.returncode < 0:
            return f"killed by signal {-ended.returncode}"
        if b"HDF5-DIAG" in ended.stderr or b"terminate called" in ended.stderr:
            return "messages of a library"
        path = os.path.join(folder, self.case.outputs[0])
        if ended.returncode in (0, 3):
            try:
                out = Output(path)
            except (OSError, KeyError, ValueError, RuntimeError) as e:
                if error in SILENT and "deflate" in self.case.write:
                    return ""  # nor are chunks complete
                return f"the output cannot be read: {e}"
            if ended.returncode == 3:
                return out.lie(self.clean, "normalize" in self.case.write)
            if error in SILENT and self.difference(out) in ("mel", "rows"):
                return ""  # silent loss of rows cannot be detected
            return "" if out.is_same(self.clean) else "the output is another one: " + self.difference(out)
        if not ended.stderr.strip():
            return "nothing is said"
        if self.bytes_of(folder) == self.earlier:
            return ""
        if os.path.exists(path + ".undo"):  # the next update begins by undoing
            self.start(folder, ["update", self.yaml])
        try:
            if Output(path).is_same(self.clean):
                return ""
        except (OSError, KeyError, ValueError, RuntimeError):
            pass
        left = ", ".join(sorted(os.listdir(folder)))
        return f"the earlier output is not what it was; there are {left}"

    def difference(self, out):
        names = [n for n in self.clean.all if out.all.get(n) != self.clean.all[n]]
        return ", ".join(names) or "rows"


def main():
    # --part: the cases for the regular tests, with some calls and one error each.
    arguments = walks.arguments(part=False, cases="", calls="")
    runs, red = 0, 0
    with tempfile.TemporaryDirectory(prefix="melflow_faults_") as work, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        make_corpus(os.path.join(work, "corpus"))
        cases = arguments.cases.split(",") if arguments.cases else PART if arguments.part else CASES
        for name in cases:
            walk = Walk(work, arguments.melflow, arguments.library, name, CASES[name])
            calls = arguments.calls.split(",") if arguments.calls else PART[name] if arguments.part and not arguments.cases else ERRORS
            points = list(walk.points(calls, arguments.part))
            runs += len(points)
            for wrong in pool.map(lambda p: walk.wrong(*p), points):
                if wrong:
                    red += 1
                    print(wrong, flush=True)
            shutil.rmtree(walk.work)
    print(f"{runs} runs with one fault each: {red} ended wrong")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
