#!/usr/bin/env python3
"""What a stream takes: the time of a push of 10 ms, many streams at once on one core, memory of each.

    taskset -c 0 python3 perf/streams.py [--streams 1000] [--seconds 10]

In:  the installed package.
Out: for several front ends: median and p99 of Stream.push with 10 ms, of melflow.push with 10 ms for all streams, and of a push for
     each of them, beside the mean of the processor time, which other programs hardly change; that many are served in real time where
     it is below 10 ms. Memory of a stream, from the growth of this process."""

import argparse
import gc
import os
import resource
import subprocess
import sys
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


def timed(count, push):
    """Wall times of push(i), and the mean processor time [s]."""
    times, processor = [], time.process_time()
    for i in range(count):
        begin = time.perf_counter()
        push(i)
        times.append(time.perf_counter() - begin)
    return times, (time.process_time() - processor) / count


def text(times, processor):
    return f"median {1e6 * np.median(times):.1f} us, p99 {1e6 * np.percentile(times, 99):.1f} us, processor {1e6 * processor:.1f} us"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--case", help="one of them, in this process")
    options = parser.parse_args()
    cases = {name: (lambda o=o: melflow.stream(**o), o["sample_rate"]) for name, (o, _) in CASES.items()}
    for name, steps in _STEPS.items():
        cases[f"kaldi, {name}"] = (lambda t=pipeline(steps): melflow.stream(t, sample_rate=16000), 16000)
    if options.case is None:
        print(f"{len(os.sched_getaffinity(0))} cores, {options.streams} streams", flush=True)
        for name in cases:  # each in a process of its own, where no memory of earlier ones is used again
            subprocess.run([sys.executable, *sys.argv, "--case", name], check=True)
        return
    random = np.random.default_rng(1)
    name, (make, rate) = options.case, cases[options.case]
    samples = random.integers(-9000, 9000, rate).astype(np.int16)
    step = rate // 100
    one = make()
    count = int(100 * options.seconds)
    print(f"{name}: push {text(*timed(count, lambda i: one.push(samples[i % 100 * step:][:step])))}", flush=True)
    gc.collect()
    before = resident()
    streams = [one.another() for _ in range(options.streams)]
    all_samples = random.integers(-9000, 9000, (options.streams, step)).astype(np.int16)
    times, processor = timed(count, lambda _: melflow.push(streams, all_samples))
    memory = (resident() - before) / options.streams / 1024
    print(f"  {options.streams} at once, 10 ms each: {text(times, processor)}; {'in' if processor < 0.01 else 'NOT in'} real time; "
          f"{memory:.0f} KiB a stream", flush=True)
    each = timed(count // 10, lambda _: [stream.push(piece) for stream, piece in zip(streams, all_samples)])
    print(f"  in a call for each: {text(*each)}", flush=True)


if __name__ == "__main__":
    main()
