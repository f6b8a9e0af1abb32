#!/usr/bin/env python3
"""Streams in random pieces of 0 to 5 s, int16 and float, at six rates: bit for bit the rows of the whole recording.

    python3 tests/long/stream_chunkings.py [--count 1000] [--seed 1] [--only NAME]

In:  the installed package.
Out: a line for each of 6 presets and 12 front ends of tests/python/stream_front_ends.py; exit status 1 where bits differ."""

import argparse
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
import melflow  # noqa: E402
import stream_front_ends as fronts  # noqa: E402

_RECORDINGS = 3  # for each rate


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    options = parser.parse_args()
    all_differ = 0
    for name, text in fronts.all_pipelines().items():
        if options.only not in (None, name):
            continue
        random = np.random.default_rng(options.seed)
        features = melflow.Features(text)
        recordings = []
        for rate in fronts.RATES:
            stream = melflow.stream(text, sample_rate=rate)
            for _ in range(_RECORDINGS):
                samples = fronts.recording(random, random.uniform(0.3, 6), rate)
                recordings.append((stream, samples, features(samples, rate).tobytes()))
        begin = time.monotonic()
        differ = 0
        for i in range(options.count):
            stream, samples, whole = recordings[i % len(recordings)]
            differ += fronts.streamed(stream, samples, random).tobytes() != whole
        all_differ += differ
        print(f"{name}: {options.count} chunkings, {differ} differ, {time.monotonic() - begin:.0f} s", flush=True)
    return 1 if all_differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
