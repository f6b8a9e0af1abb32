#!/usr/bin/env python3
"""What it costs that every run measures itself, and what --trace costs beside that.

In:  perf/measuring_cost.py [--melflow PROGRAM] [--dir DIR] [--rounds 30] [--files 20000]
     DIR (default build/perf/measuring_cost): a build in which runs measure nothing (MELFLOW_UNMEASURED), and the corpora.
     valgrind, for the instructions; without it these are omitted.
Out: for the two-stage job and for tiny files: instructions by callgrind over those of the build that measures nothing
     (one worker, a twentieth of the files), user + system time over that build's (median of the ratios of runs in turn,
     and the middle half of them), and the same of runs with --trace.

Queues and files a task are set, since `auto` learns them from what is measured. Nothing else should run on the machine.
"""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

# Arguments of melflow_make_corpus, and options of segment, batch and mel.
JOBS = {
    "two-stage": ("--rate 4096 --seconds 10", "long: {length: 1024, hop: 512}, short: {length: 512, hop: 256}", "files: 4"),
    "tiny": ("--rate 4096 --seconds 0.5", "length: 512, hop: 512", "files: 64"),
}
GRAPH = """version: 1
workers: {workers}
graph:
  files:   {{stage: file_list, root: "{data}", files_per_task: 16}}
  read:    {{stage: disk_read, from: files, queue: 4}}
  decode:  {{stage: decode, from: read, queue: 4}}
  segment: {{stage: segment, from: decode, queue: 4, {segment}}}
  batch:   {{stage: batch, from: segment, queue: 4, {batch}}}
  mel:     {{stage: mel, from: batch, queue: 4, sample_rate: 4096, n_fft: 512, hop: 512, center: false, n_mels: 32, log: db}}
  write:   {{stage: hdf5_write, from: mel, queue: 4, path: "{out}", overwrite: true}}
"""


def seconds(command):
    """User and system time [s] of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def instructions(command, folder):
    ended = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind.out", *command],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return int(re.search(r"Collected : (\d+)", ended.stderr).group(1))


def unmeasured(folder):
    """The program that measures nothing."""
    build = os.path.join(folder, "unmeasured")
    for command in (["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DMELFLOW_UNMEASURED=ON",
                     "-DMELFLOW_TESTS=OFF", "-DMELFLOW_PERF=OFF"], ["cmake", "--build", build, "--target", "melflow"]):
        subprocess.run(command, check=True, stdout=sys.stderr)
    return os.path.join(build, "bin/melflow")


def job(name, files, a, folder, workers):
    corpus, segment, batch = JOBS[name]
    data = os.path.join(folder, f"corpora/{name}_{files}")
    maker = os.path.join(os.path.dirname(os.path.abspath(a.melflow)), "melflow_make_corpus")
    subprocess.run([maker, "--out", data, "--files", str(files), "--split-dirs", str(1 + files // 1000), *corpus.split()],
                   check=True, stdout=sys.stderr)
    path = os.path.join(folder, f"{name}_{workers}.yaml")
    with open(path, "w") as f:
        f.write(GRAPH.format(workers=workers, data=data, out=os.path.join(folder, "out.h5"), segment=segment, batch=batch))
    return ["run", path, "-q"]


def text(ratios):
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{100 * (middle - 1):+.2f} % (middle half {100 * (low - 1):+.2f} to {100 * (high - 1):+.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--melflow", default="build/release/bin/melflow")
    parser.add_argument("--dir", default="build/perf/measuring_cost")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--files", type=int, default=20000)
    a = parser.parse_args()
    folder = os.path.abspath(a.dir)
    os.makedirs(folder, exist_ok=True)
    programs = {"measures": os.path.abspath(a.melflow), "does not": unmeasured(folder)}
    for name in JOBS:
        if shutil.which("valgrind"):
            run = job(name, a.files // 20, a, folder, 1)
            counts = {which: instructions([program, *run], folder) for which, program in programs.items()}
            print(f"{name}: instructions {100 * (counts['measures'] / counts['does not'] - 1):+.2f} % "
                  f"({counts['measures']:,} instead of {counts['does not']:,})", flush=True)
        run = job(name, a.files * (1 if name == "two-stage" else 4), a, folder, len(os.sched_getaffinity(0)))
        trace = [*run, "--trace", os.path.join(folder, "trace.json")]
        plain, traced = [], []
        for i in range(a.rounds + 1):  # the first round warms the page cache
            of = {"measures": lambda: seconds([programs["measures"], *run]), "does not": lambda: seconds([programs["does not"], *run]),
                  "trace": lambda: seconds([programs["measures"], *trace])}
            took = {key: of[key]() for key in (list(of) if i % 2 else reversed(of))}
            if i > 0:
                plain.append(took["measures"] / took["does not"])
                traced.append(took["trace"] / took["measures"])
        print(f"{name}: user + system time {text(plain)}, --trace beside it {text(traced)}; {a.rounds} rounds", flush=True)


if __name__ == "__main__":
    main()
