#!/usr/bin/env python3
"""Many runs in one Python process: whether they keep anything, and whether Ctrl-C leaves runs that can be resumed.

In:  python3 perf/python_runs.py [RUNS=1000] [INTERRUPTIONS=50], with a Python that has melflow and h5py.
Out: resident memory, descriptors and threads after half of the runs and after all; how many interruptions met a run
     that was not complete, and whether the interpreter went on and the output became that of a run without them. Exit status 0 when
     nothing grew (2 MiB of memory are allowed) and all bytes are the same.
"""
import filecmp
import os
import random
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/python"))
import corpus  # noqa: E402
import h5py  # noqa: E402
import melflow  # noqa: E402


def held():
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 10
    return resident, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def many(text, out, runs):
    after = {}
    for i in range(1, runs + 1):
        melflow.run(text)
        if i % 10 == 0:
            with h5py.File(out) as file:
                assert len(file["mel"]) == len(melflow.open(out))
        if i in (max(1, runs // 2), runs):
            after[i] = held()
            print(f"after {i} runs: {after[i][0]} KiB resident, {after[i][1]} descriptors, {after[i][2]} threads", flush=True)
    first, last = list(after.values())[0], list(after.values())[-1]
    return last[0] - first[0] < 2048 and last[1:] == first[1:]


def interrupted(text, out, times):
    began = time.monotonic()
    melflow.run(text)
    takes = time.monotonic() - began
    os.replace(out, out + ".whole")
    chance, met, wrong = random.Random(1), 0, 0
    for _ in range(times):
        timer = threading.Timer(chance.uniform(0, takes), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            melflow.run(text)
            timer.join()
        except KeyboardInterrupt:
            met += not os.path.exists(out)
        timer.join()
        if not os.path.exists(out):
            melflow.run(text)  # goes on
        wrong += not filecmp.cmp(out, out + ".whole", shallow=False)
        os.unlink(out)
    print(f"{times} interruptions, {met} before the run was complete: {wrong} outputs are not those of a run without them")
    return wrong == 0


def main(runs=1000, interruptions=50):
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.join(folder, "audio")
        corpus.make_corpus(root)
        out = os.path.join(folder, "rows.h5")
        text = corpus.pipeline(root, f"stage: hdf5_write, path: {out}")
        is_right = many(text.replace(f"path: {out}", f"path: {out}, overwrite: true"), out, int(runs))
        os.unlink(out)
        for i in range(3000):  # so that a run takes some time
            os.link(os.path.join(root, "bee", "001.wav"), os.path.join(root, "bee", f"more{i}.wav"))
        is_right &= interrupted(text, out, int(interruptions))
    sys.exit(0 if is_right else 1)


main(*sys.argv[1:])
