"""Breaks epochs off, and kills programs that train, at random moments; looks at what is left.

loader_stops.py ROOT [COUNT] [SEED]      ROOT: a folder of recordings; COUNT: of each kind, default 100
Out: a line for each kind; exit status 0 where nothing leaked and nothing hung.
"""
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

import melflow

TEXT = """
version: 1
graph:
  files:   {{stage: file_list, root: {root}}}
  read:    {{stage: disk_read, from: files}}
  decode:  {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode, length: 2000, tail: pad}}
  rows:    {{stage: samples, from: segment, sample_rate: 8000}}
  out:     {{stage: batches, from: rows, size: 16, shuffle: 500}}
"""
CHILD = """
import melflow, sys
loader = melflow.Loader(sys.argv[1], seed=1)
while True:
    for batch in loader:
        print(len(batch["file"]), flush=True)
"""


def held():
    pages = int(open("/proc/self/statm", encoding="ascii").read().split()[1])
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), pages * resource.getpagesize() >> 20


def main(root, count=100, seed=1):
    chance, text = random.Random(int(seed)), TEXT.format(root=os.path.abspath(root))
    count, bad = int(count), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        after = []
        for i in range(count):
            began = time.monotonic()
            loader = melflow.Loader(text, workers=chance.choice([1, 2, 7]))
            batches, taken = iter(loader), chance.randrange(40)
            for _ in range(taken):
                if next(batches, None) is None:
                    break
            time.sleep(chance.random() * 0.02)
            if chance.random() < 0.5:
                loader.close()
            del batches, loader
            after.append(held())
            if time.monotonic() - began > 60:
                bad += 1
                print(f"{i}: took {time.monotonic() - began:.0f} s")
        early, late = after[count // 4], after[-1]
        grew = late[0] > early[0] or late[1] > early[1] + 2 or late[2] > early[2] + 64
        bad += grew
        print(f"{count} epochs broken off: descriptors {early[0]} and {late[0]}, threads {early[1]} and {late[1]}, "
              f"resident {early[2]} and {late[2]} MiB (after a quarter, at the end)")
        shared = set(os.listdir("/dev/shm"))
        for i in range(count):
            child = subprocess.Popen([sys.executable, "-c", CHILD, text], stdout=subprocess.PIPE, text=True)
            child.stdout.readline()
            time.sleep(chance.random() * 0.1)
            child.send_signal(chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
            child.stdout.close()
            try:
                child.wait(60)
            except subprocess.TimeoutExpired:
                bad += 1
                print(f"{i}: hangs")
                child.kill()
            if os.listdir(folder) or set(os.listdir("/dev/shm")) - shared:
                bad += 1
                print(f"{i}: leaves files")
        print(f"{count} programs killed: no file is left" if not bad else f"{bad} are wrong")
    sys.exit(bad > 0)


main(*sys.argv[1:])
