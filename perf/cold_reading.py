#!/usr/bin/env python3
"""Times a pipeline with each way of reading, interleaved, with cold and with warm files.

In:  perf/cold_reading.py [--rounds N] [--melflow PROGRAM] PIPELINE.yaml DATA OUT.h5 [--set K=V ...]
     The page cache is dropped before each cold run, which takes root.
Out: for each way the median of wall and processor time [s], and the wall time over the least.
"""

import argparse
import os
import resource
import statistics
import subprocess
import time

WAYS = {
    "auto": ["engine=auto"],
    "inline": ["engine=inline"],
    "threads 8": ["engine=threads", "depth=8"],
    "threads 32": ["engine=threads", "depth=32"],
    "io_uring 32": ["engine=io_uring", "depth=32"],
    "io_uring 128": ["engine=io_uring", "depth=128"],
}


def run(arguments, way, cold):
    """Wall and processor time [s] of one run."""
    if os.path.exists(arguments.out):
        os.remove(arguments.out)
    if cold:
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as drop:
            drop.write("3")
    command = [arguments.melflow, "run", arguments.pipeline, "--quiet",
               "--var", "DATA=" + arguments.data, "--var", "OUT=" + arguments.out]
    for setting in ["read." + option for option in WAYS[way]] + arguments.set:
        command += ["--set", setting]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline")
    parser.add_argument("data")
    parser.add_argument("out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--melflow", default="build/release/bin/melflow")
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    for cold in (True, False):
        if not cold:
            run(arguments, "inline", cold)
        times = {way: [] for way in WAYS}
        for _ in range(arguments.rounds):
            for way, measured in times.items():
                measured.append(run(arguments, way, cold))
        medians = {way: [statistics.median(column) for column in zip(*measured)]
                   for way, measured in times.items()}
        least = min(wall for wall, _ in medians.values())
        print("cold" if cold else "warm")
        for way, (wall, processor) in medians.items():
            print(f"  {way:13} {wall:6.2f} s  {wall / least:5.2f}  processor {processor:6.2f} s")


if __name__ == "__main__":
    main()
