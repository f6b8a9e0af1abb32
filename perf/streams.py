#!/usr/bin/env python3
"""What a stream takes: the time of a push of 10 ms, many streams at once on one core, memory of each.

    taskset -c 0 python3 perf/streams.py [--streams 1000] [--seconds 10]

In:  the installed package.
Out: for several front ends: median and p99 of Stream.push with 10 ms; of melflow.push with 10 ms for all streams, by which
     many are served in real time where it is below 10 ms; memory of a stream, from the growth of this process."""

import argparse
import gc
import os
import resource
import time

import melflow
import numpy as np

_WHISPER = {"preset": "whisper", "top_db": None, "amin": 10**-6.5}  # fixed floor, as Voxtral Realtime's
CASES = {  # name: options of melflow.stream, the stages after mel
    "whisper's rows, 16 kHz": ({**_WHISPER, "sample_rate": 16000}, False),
    "kaldi, 16 kHz": ({"preset": "kaldi", "n_mels": 80, "sample_rate": 16000}, False),
    "whisper's rows, 48 kHz resampled": ({**_WHISPER, "sample_rate": 48000}, True),
}
_STEPS = {"mfcc, deltas": "{stage: mfcc}|{stage: deltas}", "lfr 7/6": "{stage: stack, frames: 7, hop: 6, left: 3, tail: replicate}",
          "sliding cmvn 300": "{stage: sliding_cmvn, window: 300, center: true}"}


def pipeline(steps):
    text = ("version: 1\ngraph:\n  files: {stage: file_list, root: /}\n  read: {stage: disk_read, from: files}\n"
            "  decode: {stage: decode, from: read}\n  segment: {stage: segment, from: decode}\n"
            "  mel: {stage: mel, from: segment, preset: kaldi, n_mels: 80}\n")
    last = "mel"
    for i, step in enumerate(steps.split("|")):
        text += f"  s{i}: {step[:-1]}, from: {last}}}\n"
        last = f"s{i}"
    return text + f"  rows: {{stage: batches, from: {last}}}\n"


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def percentiles(times):
    return f"median {1e6 * np.median(times):.1f} us, p99 {1e6 * np.percentile(times, 99):.1f} us"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, {options.streams} streams")
    cases = {name: (lambda o=o: melflow.stream(**o), o["sample_rate"]) for name, (o, _) in CASES.items()}
    for name, steps in _STEPS.items():
        cases[f"kaldi, {name}"] = (lambda t=pipeline(steps): melflow.stream(t, sample_rate=16000), 16000)
    random = np.random.default_rng(1)
    for name, (make, rate) in cases.items():
        samples = random.integers(-9000, 9000, rate).astype(np.int16)
        step = rate // 100
        one = make()
        times = []
        for i in range(int(100 * options.seconds)):
            piece = samples[(i % 100) * step:][:step]
            begin = time.perf_counter()
            one.push(piece)
            times.append(time.perf_counter() - begin)
        print(f"{name}: push {percentiles(times)}", flush=True)
        gc.collect()
        before = resident()
        streams = [one.another() for _ in range(options.streams)]
        all_samples = random.integers(-9000, 9000, (options.streams, step)).astype(np.int16)
        times, rows = [], 0
        for _ in range(int(100 * options.seconds)):
            begin = time.perf_counter()
            got = melflow.push(streams, all_samples)
            times.append(time.perf_counter() - begin)
            rows += sum(map(len, got))
        del got
        memory = (resident() - before) / options.streams / 1024
        print(f"  {options.streams} at once, 10 ms each: {percentiles(times)}, "
              f"{'in' if np.percentile(times, 99) < 0.01 else 'NOT in'} real time ({1e9 * sum(times) / max(rows, 1):.0f} ns a row); "
              f"{memory:.0f} KiB a stream", flush=True)


if __name__ == "__main__":
    main()
