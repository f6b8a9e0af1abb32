#!/usr/bin/env python3
"""Functions of Python as nodes: what they cost beside the functions themselves, and whether they keep anything.

In:  python3 perf/python_nodes.py [ROUNDS=5], with a Python that has melflow; for the models onnxruntime and silero-vad, too.
Out: medians over the rounds, in turn: calls a second of a NumPy function (gain and noise) in a graph with one worker and alone;
     of a function that holds Python's lock with processes: 2 and 1; seconds of audio a second of voice activity in a graph and
     by onnxruntime alone. Then memory, descriptors and threads after 5,000 and 10,000 recordings.
"""
import importlib.util
import os
import statistics
import sys
import time

import melflow
import numpy as np

COUNT, RATE = 400, 16000


def noisy(samples, rate):
    noise = np.random.default_rng(len(samples)).standard_normal(len(samples), np.float32)
    return samples * np.float32(0.5) + np.float32(0.01) * noise


def holds_the_lock(samples, rate):
    total = 0
    for i in range(200000):
        total += i % 7
    return samples


def graph(function, count=COUNT, seconds=4, **options):
    workers = options.pop("workers", 1)
    g = melflow.Graph(workers=workers)
    g.synthetic(count=count, duration=f"{seconds}s", rate=RATE, kind="noise").map(function, **options).discard()
    return g


def without(count=COUNT, seconds=4):
    g = melflow.Graph(workers=1)
    g.synthetic(count=count, duration=f"{seconds}s", rate=RATE, kind="noise").discard()
    return g


def timed(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def held():
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    return f"{resident} MiB, {len(os.listdir('/proc/self/fd'))} descriptors, {len(os.listdir('/proc/self/task'))} threads"


def main(rounds=5):
    samples = np.random.default_rng(1).standard_normal(4 * RATE).astype(np.float32) / 4
    alone, inside, one, two, model, vad = [], [], [], [], [], []
    has_vad = all(importlib.util.find_spec(name) for name in ("onnxruntime", "silero_vad"))
    detector = None
    if has_vad:
        from melflow.models import Vad

        detector = Vad()
    here = os.path.abspath(__file__)
    for _ in range(int(rounds)):
        alone.append(COUNT / timed(lambda: [noisy(samples, RATE) for _ in range(COUNT)]))
        empty = timed(lambda: without().run())
        inside.append(COUNT / (timed(lambda: graph(noisy).run()) - empty))
        one.append(300 / timed(lambda: graph(f"{here}:holds_the_lock", 300, processes=1).run()))
        two.append(300 / timed(lambda: graph(f"{here}:holds_the_lock", 300, processes=2, workers=2).run()))
        if detector is not None:
            model.append(40 * 30 / timed(lambda: [detector.probabilities(np.tile(samples, 8)[:30 * RATE]) for _ in range(40)]))
            took = timed(lambda: graph("melflow.models:Vad", 40, 30, gives="utterances").run())
            vad.append(40 * 30 / (took - timed(lambda: without(40, 30).run())))
    middle = statistics.median
    print(f"NumPy function: {middle(inside):.0f} calls/s in a graph with one worker (without what makes the samples), "
          f"{middle(alone):.0f} alone: {middle(inside) / middle(alone):.2f}")
    print(f"holds the lock: {middle(two):.1f} calls/s by two processes, {middle(one):.1f} by one: {middle(two) / middle(one):.2f}")
    if has_vad:
        print(f"voice activity: {middle(vad):.0f} s of audio a second, {middle(model):.0f} by onnxruntime alone: "
              f"{middle(vad) / middle(model):.2f}")
    else:
        print("voice activity: skipped, onnxruntime or silero-vad is not installed")
    for i in (1, 2):
        graph(noisy, 5000, 0.1, workers=2).run()
        print(f"after {5000 * i} recordings: {held()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
