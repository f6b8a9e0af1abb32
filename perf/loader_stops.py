"""Stops epochs at random places and goes on with them, breaks them off, and kills programs that train, or lets them end with
threads in a loader, at random moments, as a stream and by number; looks at what follows, and at what is left.

loader_stops.py ROOT [COUNT] [SEED]      ROOT: a folder of recordings; COUNT: of each kind, default 100, half as many stops
Out: a line for each kind; exit status 0 where the same batches followed, nothing leaked and nothing hung.
"""
import hashlib
import json
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
if sys.argv[2] == "stream":
    loader = melflow.Loader(sys.argv[1], seed=1)
else:
    loader = melflow.open(sys.argv[1], index=False, store="1MiB").batches(16, seed=1)
while True:
    for batch in loader:
        print(len(batch["file"]), flush=True)
"""
ENDS = """
import melflow, sys, threading, time

def loop():
    while True:
        make = melflow.Loader(sys.argv[1]) if sys.argv[2] == "stream" else \\
            melflow.open(sys.argv[1], index=sys.argv[5], store="1MiB").batches(16)
        for batch in make:
            pass

for _ in range(int(sys.argv[3])):
    threading.Thread(target=loop, daemon=True).start()
time.sleep(float(sys.argv[4]))
"""


EPOCHS = 3  # resumed from the beginning of the last one


def batches_of(kind, text, workers, index=False):
    if kind == "stream":
        return melflow.Loader(text, workers=workers)
    return melflow.open(text, index=index, store="1MiB", workers=workers).batches(16, seed=1)


def digest(batch):
    """Of all that is in a batch."""
    out = hashlib.sha256()
    for name, values in batch.items():
        out.update(f"{name} {getattr(values, 'shape', len(values))}".encode())
        out.update(values.tobytes() if hasattr(values, "tobytes") else repr(values).encode())
    return out.digest()


def go_on(kind, text, count, chance):
    """The number of epochs that went on with other batches after a stop, in a Loader of its own, than without one."""
    expected, others, stops, places = [], 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        index = os.path.join(folder, "index.npz")
        for epoch in range(EPOCHS):
            loader = batches_of(kind, text, 2, index)
            loader.set_epoch(epoch)
            expected.append([digest(b) for b in loader])
        while stops < count:
            epoch, seen, state = chance.randrange(EPOCHS), [], None
            while len(seen) < len(expected[epoch]):
                loader = batches_of(kind, text, chance.choice([1, 2, 7]), index)
                if state is None:
                    loader.set_epoch(epoch)
                else:
                    loader.load_state_dict(json.loads(state))
                batches, left = iter(loader), len(expected[epoch]) - len(seen)
                for _ in range(chance.randrange(left + 1) if stops < count else left):
                    seen.append(digest(next(batches)))
                state = json.dumps(loader.state_dict())
                batches.close()
                if len(seen) < len(expected[epoch]):
                    stops += 1
                    places.append(len(seen))
            if seen != expected[epoch]:
                others += 1
                at = next(i for i, (a, b) in enumerate(zip(seen, expected[epoch])) if a != b)
                print(f"epoch {epoch}, stopped at {places}: batch {at} is another")
    print(f"{kind}: {stops} stops in epochs of {len(expected[0])} batches: {others} epochs went on with other batches", flush=True)
    return others


def held():
    pages = int(open("/proc/self/statm", encoding="ascii").read().split()[1])
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), pages * resource.getpagesize() >> 20


def break_off(kind, text, count, chance):
    """The number of epochs that hung, and whether something grew."""
    after, bad = [], 0
    for i in range(count):
        began = time.monotonic()
        loader = batches_of(kind, text, chance.choice([1, 2, 7]))
        batches, taken = iter(loader), chance.randrange(40)
        for _ in range(taken):
            if next(batches, None) is None:
                break
        time.sleep(chance.random() * 0.02)
        if kind == "stream" and chance.random() < 0.5:
            loader.close()
        del batches, loader
        after.append(held())
        if time.monotonic() - began > 60:
            bad += 1
            print(f"{i}: took {time.monotonic() - began:.0f} s")
    early, late = after[count // 4], after[-1]
    print(f"{kind}: {count} epochs broken off: descriptors {early[0]} and {late[0]}, threads {early[1]} and {late[1]}, "
          f"resident {early[2]} and {late[2]} MiB (after a quarter, at the end)", flush=True)
    return bad + (late[0] > early[0] or late[1] > early[1] + 2 or late[2] > early[2] + 64)


def kill(kind, text, count, chance, folder):
    """The number of programs that hung or left something."""
    shared, bad = set(os.listdir("/dev/shm")), 0
    for i in range(count):
        child = subprocess.Popen([sys.executable, "-c", CHILD, text, kind], stdout=subprocess.PIPE, text=True,
                                 stderr=subprocess.DEVNULL)
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
    print(f"{kind}: {count} programs killed: {bad} hung or left files", flush=True)
    return bad


def end(kind, text, count, chance):
    """The number of programs that did not end well while daemon threads went over batches."""
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        index = os.path.join(folder, "index.npz")
        list(batches_of(kind, text, 2, index))  # makes the index
        for i in range(count):
            child = [sys.executable, "-c", ENDS, text, kind, str(chance.randint(1, 4)), str(chance.random()), index]
            try:
                ended = subprocess.run(child, capture_output=True, text=True, timeout=60)
            except subprocess.TimeoutExpired:
                bad += 1
                print(f"{i}: hangs")
                continue
            if ended.returncode != 0 or ended.stderr:
                bad += 1
                print(f"{i}: exit status {ended.returncode}: {ended.stderr[-500:]}")
    print(f"{kind}: {count} programs ended with 1 to 4 threads in loaders: {bad} of them badly", flush=True)
    return bad


def main(root, count=100, seed=1):
    chance, text, bad = random.Random(int(seed)), TEXT.format(root=os.path.abspath(root)), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for kind in ("stream", "by number"):
            bad += go_on(kind, text, int(count) // 2, chance)
            bad += break_off(kind, text, int(count), chance)
            bad += kill(kind, text, int(count), chance, folder)
            bad += end(kind, text, int(count), chance)
    sys.exit(bad > 0)


main(*sys.argv[1:])
