"""Lets every request for memory that a run makes fail once, and looks at how the run ends, as fault_walk.py does.

In:  memory_walk.py MELFLOW LIBRARY [--draw N --seed S] [--points N,N,...] [--jobs J]
     LIBRARY: fail_call.cpp, built. Without --draw all of it: some ten thousand runs of five files into HDF5, by one
     worker and by two, within a budget so small that files wait for memory. With --draw: all requests of as many bytes as a
     reservation of that budget takes, and N others.
     --points: these requests alone, by one worker; prints who asked.
Out: a line for each run that ended wrong, with who asked for the memory, and one in all; exit status 0 when there is
     none, 1 else, 3 where Python lacks h5py.

The program may be ended by a library that cannot give up what it began: ENDS names these.
"""

import concurrent.futures
import errno
import os
import random
import sys
import tempfile

import fault_walk
import walks

# The size of a Reservation of pipeline/stage/budget.h with the counts of its shared pointer [bytes].
RESERVATION = 56

# Functions of libraries that end the program where they get no memory.
ENDS = ()


def who(log):
    """The callers of the failed request, as fail_call.cpp writes them."""
    lines = [line for line in walks.read(log).decode(errors="replace").splitlines() if line.startswith("fault memory")]
    return lines[0].split(maxsplit=3)[3] if lines else ""


def main():
    arguments = walks.arguments(draw=0, seed=1, points="")
    runs, red, ended = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="melflow_memory_") as work, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        fault_walk.make_corpus(os.path.join(work, "corpus"), files=5, samples=120000)
        for workers in (1,) if arguments.points else (1, 2):
            walk = fault_walk.Walk(work, arguments.melflow, arguments.library, f"{workers} workers",
                                   fault_walk.Case(memory="1MiB", workers=workers))

            def requests(size):
                """How many requests a run makes; `size`: of so many bytes, or "" for all."""
                log = os.path.join(walk.work, "log" + size)
                walk.job(walk.folder("counted" + size), {"MELFLOW_FAULT_LOG": log, "MELFLOW_FAULT_BYTES": size})
                return walks.counts(log)["memory"]

            every = range(1, requests("") + 1)
            points = [("", n) for n in every]
            if arguments.points:
                points = [("", int(n)) for n in arguments.points.split(",")]
            elif arguments.draw:
                points = [("", n) for n in random.Random(arguments.seed).sample(every, arguments.draw)]
                points += [(str(RESERVATION), n) for n in range(1, requests(str(RESERVATION)) + 1)]

            def wrong(point):
                size, n = point
                log = os.path.join(walk.work, f"log-{size}-{n}")
                said = walk.wrong("memory", n, errno.ENOMEM, MELFLOW_FAULT_BYTES=size, MELFLOW_FAULT_LOG=log)
                asked = who(log) if os.path.exists(log) else ""
                if os.path.exists(log):
                    os.remove(log)
                return said, asked

            runs += len(points)
            for said, asked in pool.map(wrong, points):
                if said and any(name in asked for name in ENDS) and "killed by signal" in said:
                    ended += 1
                elif said:
                    red += 1
                    print(said, "\n    asked by", asked, flush=True)
                elif arguments.points:
                    print("asked by", asked, flush=True)
    print(f"{runs} runs without memory once each: {red} ended wrong, {ended} were ended by a library")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
