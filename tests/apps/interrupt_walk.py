"""Runs that hang on purpose, each in another call of the system, are interrupted twice at random moments.

In:  interrupt_walk.py MELFLOW LIBRARY [--runs N --seed S] [--jobs J]
     LIBRARY: fail_call.cpp, built.
Out: a line for each run that crashed, or did not end within a second after the second signal, and one with the longest
     time; exit status 0 when there is none, 1 else.

A run that has not begun to watch for signals ends with the first one, and one that does not reach its call may end before.
"""

import concurrent.futures
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import walks

PIPELINE = """
version: 1
graph:
  files: {{stage: file_list, root: {root}}}
  read: {{stage: disk_read, from: files, whole: 4KiB}}
  decode: {{stage: decode, from: read}}
  mel: {{stage: mel, from: decode, sample_rate: 8000, n_fft: 400, hop: 160, n_mels: 80}}
  write: {{stage: hdf5_write, from: mel, path: out.h5, overwrite: true}}
"""
SECONDS = 1
# Interrupted twice; once, or before it watches for signals; complete; with files that failed; without an output.
ENDINGS = (130, 75, -signal.SIGINT, 0, 3, 1)
CALLS = ("read", "pread", "pwrite", "write", "fsync", "ftruncate", "close", "rename", "stat", "mmap", "memory")


def main():
    arguments = walks.arguments(runs=100, seed=1)
    draw = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="melflow_interrupts_") as work, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for i in range(40):
            walks.write_wav(os.path.join(work, "corpus", f"{i:02}.wav"), draw.randbytes(200000))
        yaml = os.path.join(work, "job.yaml")
        with open(yaml, "w") as f:
            f.write(PIPELINE.format(root=os.path.join(work, "corpus")))
        command = [arguments.melflow, "run", yaml, "--workers", "2"]
        log, folder = os.path.join(work, "log"), os.path.join(work, "counted")
        os.mkdir(folder)
        began = time.monotonic()
        assert walks.run(command, folder, 100, LD_PRELOAD=arguments.library, MELFLOW_FAULT_LOG=log).returncode == 0
        seconds = time.monotonic() - began
        counts = walks.counts(log)
        points = []
        for i in range(arguments.runs):
            call = draw.choice([c for c in CALLS if counts[c] > 0])
            points.append((i, call, draw.randint(1, counts[call]), draw.uniform(0, 2 * seconds), draw.uniform(0.05, 0.25)))

        def interrupted(point):
            """How it ended and after how long."""
            i, call, n, first, second = point
            folder = os.path.join(work, str(i))
            os.mkdir(folder)
            program = walks.begin(command, folder, LD_PRELOAD=arguments.library, MELFLOW_FAULT=f"{call}:{n}:hang")
            time.sleep(first)
            program.send_signal(signal.SIGINT)
            time.sleep(second)
            program.send_signal(signal.SIGINT)
            began = time.monotonic()
            try:
                program.communicate(timeout=60)
                return program.returncode, time.monotonic() - began
            except subprocess.TimeoutExpired:
                program.kill()
                program.communicate()
                return "hangs", 60

        red, longest, by_status = 0, 0, {}
        for point, (status, took) in zip(points, pool.map(interrupted, points)):
            longest = max(longest, took)
            by_status[status] = by_status.get(status, 0) + 1
            if status not in ENDINGS or took > SECONDS:
                red += 1
                print(f"{point[1]} {point[2]}, {point[3]:.3f} s, then {point[4]:.3f} s: {status} after {took:.2f} s", flush=True)
    print(f"{arguments.runs} runs: {red} did not end in time; {longest:.2f} s at most; "
          + ", ".join(f"{n} by {s}" for s, n in sorted(by_status.items(), key=str)))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
