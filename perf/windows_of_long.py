#!/usr/bin/env python3
"""Windows of 3 s out of one recording of hours to a function on their rows: what melflow takes beside a model.

    python3 perf/windows_of_long.py [--hours 12] [--rounds 5] [--dir DIR]

In:  the installed package, NumPy. 16 kHz FLAC of noise, made once in DIR (default build/perf/corpora): 1.34 GB for 12 hours.
Out: rounds, each in a process of its own with one worker: windows that are ok, processor time of all threads (the start of Python
     not included), wall time, and the peak of resident memory, Python included; then the medians. A list has a line for each window;
     80 bands, and in place of a model the mean of the rows, 32 windows a call.
"""
import argparse
import csv
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

RATE, WINDOW, BATCH = 16000, 3, 32  # [Hz], [s], windows a call
REPOSITORY = pathlib.Path(__file__).resolve().parents[1]


def mean(rows):
    """In place of a model: [32, rows, bands] -> [32, bands]."""
    return rows.mean(axis=1)


def make(folder, hours):
    """The recording, and the list of its windows, which is written last."""
    import melflow

    folder.mkdir(parents=True, exist_ok=True)
    g = melflow.Graph(workers=1)
    noise = g.synthetic(count=1, duration=f"{hours}h", rate=RATE, kind="noise")
    noise.audio_write(path=str(folder), format="flac", overwrite=True)
    g.run()
    (path,) = folder.rglob("*.flac")
    with open(folder / "windows.csv", "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["path", "start", "end"])
        ends = range(WINDOW, int(hours * 3600) + 1, WINDOW)
        lines.writerows([path.relative_to(folder), end - WINDOW, end] for end in ends)


def once(folder):
    import melflow

    begin, before = time.perf_counter(), time.process_time()
    g = melflow.Graph(workers=1)
    files = g.file_list(root=str(folder), manifest=str(folder / "windows.csv"), utterances={})
    rows = files.disk_read().decode().mel(sample_rate=RATE, n_fft=400, hop=160, n_mels=80)
    means = rows.map(f"{os.path.abspath(__file__)}:mean", takes="rows", gives="rows", columns=80, batch=BATCH)
    means.npy_write(path=str(folder / "means.npy"), overwrite=True)
    found = g.run()["files"]
    processor, wall = time.process_time() - before, time.perf_counter() - begin
    print(found["found"], found["ok"], processor, wall, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=float, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default=str(REPOSITORY / "build/perf/corpora"))
    parser.add_argument("--once", action="store_true", help="a round, in this process")
    options = parser.parse_args()
    folder = pathlib.Path(options.dir) / f"windows_of_{options.hours:g}h"
    if options.once:
        once(folder)
        return
    if not (folder / "windows.csv").exists():
        make(folder, options.hours)
    with open(next(folder.rglob("*.flac")), "rb", buffering=0) as file:
        while file.read(1 << 20):  # into the page cache
            pass
    rounds = []
    for number in range(options.rounds):
        text = subprocess.run([sys.executable, *sys.argv, "--once"], stdout=subprocess.PIPE, text=True, check=True).stdout
        listed, ok, processor, wall, peak = map(float, text.split())
        print(f"{ok:,.0f} of {listed:,.0f} windows ok, processor {processor:.2f} s, wall {wall:.2f} s, peak {peak:.0f} MiB", flush=True)
        rounds.append((processor, wall, peak))
    processor, wall, peak = map(statistics.median, zip(*rounds))
    print(f"medians of {len(rounds)} rounds: processor {processor:.2f} s, wall {wall:.2f} s, peak {peak:.0f} MiB")


if __name__ == "__main__":
    main()
