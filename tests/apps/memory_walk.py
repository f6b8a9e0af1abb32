"""Lets every request for memory that a run makes fail once, and looks at how the run ends, as fault_walk.py does.

In:  memory_walk.py MELFLOW LIBRARY [--draw N --seed S] [--share I/N] [--points N,N,...] [--jobs J]
     LIBRARY: fail_call.cpp, built. Without --draw all of it: some ten thousand runs of five files into HDF5, by one
     worker and by two, within a budget so small that files wait for memory. With --draw: all requests of as many bytes as a
     reservation of that budget takes, by two workers, and N others. --share 0/4: the first, fifth, ninth ... request of all.
     --points: these requests alone, by one worker; prints who asked.
     After one in eight of these runs the same command has to make the output.
Out: a line for each run that ended wrong, with who asked for the memory, and one in all; exit status 0 when there is
     none, 1 else, 3 where Python lacks h5py.

What HDF5 and glibc do where they get no memory is counted apart.
"""

import concurrent.futures
import errno
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import fault_walk
import walks

# The size of a Reservation of pipeline/stage/budget.h with the counts of its shared pointer [bytes].
RESERVATION = 56

# A whole file does not fit beside what the others hold, so blocks of all of them wait for memory.
PIPELINE = """
version: 1
memory: {{host: 1MiB}}
graph:
  files: {{stage: file_list, root: {root}, include: ["**/*.wav"], labels: top_dir}}
  read: {{stage: disk_read, from: files, whole: 4KiB}}
  decode: {{stage: decode, from: read, block: 64KiB}}
  mel: {{stage: mel, from: decode, sample_rate: 8000, n_fft: 400, hop: 160, n_mels: 80}}
  write: {{stage: hdf5_write, from: mel, path: out.h5, overwrite: true}}
"""

# HDF5 1.10 does not look whether it got memory for a name or an attribute (it crashes, or damages the heap), ends the program in H5I_register, and says in its
# own words that it cannot begin. Rows and journal are on disk by then, so the same command goes on. glibc ends a program
# that it cannot give a variable of a thread.
ENDS = re.compile("killed by signal 11|corrupted double-linked list|exit 255|messages of a library|failed to register TLS destructor")


def is_by_library(asked):
    """Whether HDF5 or glibc itself asked, and not the program: the first of these functions that has a name (a jump to a library has none)."""
    names = asked.split(" < ")
    return names[0] == "__cxa_thread_atexit" or next((name for name in names if not name.startswith(("_", "??"))), "").startswith("H5")


class Tight(fault_walk.Case):
    def pipeline(self, root):
        return PIPELINE.format(root=root)


def who(log, program):
    """The callers of the failed request, innermost first."""
    lines = [line for line in walks.read(log).decode(errors="replace").splitlines() if line.startswith("fault memory")]
    callers = re.findall(r"(\S+)\((.*?)\+(0x[0-9a-f]+)\)", lines[0]) if lines else []
    library = os.path.join(os.path.dirname(program), "..", "lib", "libmelflow.so.0")
    places = [place for file, _, place in callers if file.startswith("libmelflow")]
    names = iter(subprocess.run(["addr2line", "-f", "-C", "-e", library, *places], capture_output=True, text=True,
                                check=False).stdout.splitlines()[::2]) if places and shutil.which("addr2line") else iter(())
    return " < ".join(next(names, name) if file.startswith("libmelflow") else name for file, name, _ in callers[1:])


def main():
    arguments = walks.arguments(draw=0, seed=1, share="0/1", points="")
    runs, red, ended = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="melflow_memory_") as work, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        fault_walk.make_corpus(os.path.join(work, "corpus"), files=5, samples=320000)
        for workers in (1,) if arguments.points else (1, 2):
            walk = fault_walk.Walk(work, arguments.melflow, arguments.library, f"{workers} workers",
                                   Tight(workers=workers))

            def requests(size):
                """How many requests a run makes; `size`: of so many bytes, or "" for all."""
                log = os.path.join(walk.work, "log" + size)
                walk.job(walk.folder("counted" + size), {"MELFLOW_FAULT_LOG": log, "MELFLOW_FAULT_BYTES": size})
                return walks.counts(log)["memory"]

            every = range(1, requests("") + 1)
            first, step = (int(n) for n in arguments.share.split("/"))
            points = [("", n) for n in every[first::step]]
            if arguments.points:
                points = [("", int(n)) for n in arguments.points.split(",")]
            elif arguments.draw:
                points = [("", n) for n in random.Random(arguments.seed).sample(every, arguments.draw)]
                if workers == 2:
                    reservations = requests(str(RESERVATION))
                    assert reservations > 0, f"no request of {RESERVATION} bytes: has a Reservation (pipeline/stage/budget.h) another size now?"
                    points += [(str(RESERVATION), n) for n in range(1, reservations + 1)]

            def wrong(point):
                size, n = point
                log = os.path.join(walk.work, f"log-{size}-{n}")
                said = walk.wrong("memory", n, errno.ENOMEM, n % 8 == 0, MELFLOW_FAULT_BYTES=size, MELFLOW_FAULT_LOG=log)
                asked = who(log, arguments.melflow) if (said or arguments.points) and os.path.exists(log) else ""
                if os.path.exists(log):
                    os.remove(log)
                return said, asked

            runs += len(points)
            for said, asked in pool.map(wrong, points):
                if is_by_library(asked) and ENDS.search(said):
                    ended += 1
                elif said:
                    red += 1
                    print(said, "\n    asked by", asked, flush=True)
                elif arguments.points:
                    print("asked by", asked, flush=True)
    print(f"{runs} runs without memory once each: {red} ended wrong, {ended} were ended by HDF5 or glibc")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
