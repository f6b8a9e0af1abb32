"""Calls of a service without an end: that memory stays flat and deadlines hold.

In:  tests/long/service_soak.py [--calls 1000000] [--threads 4] [--deadlines 100], with a Python that has melflow.
Out: resident memory [MiB] after each tenth of the calls, which are of recordings of 20 lengths, some damaged, some too long, as bytes and
     as arrays, by call and by coroutine; then how late the deadlines were noticed. Exit status 0 where memory after the first 10,000 calls
     and after the last differs by at most 2 MiB, and every deadline raised TimeoutError within 0.1 s of processor time of its thread.
"""
import argparse
import asyncio
import io
import os
import sys
import threading
import time
import warnings
import wave

import melflow
import numpy as np

RATE = 16000


def wav(samples):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(samples.tobytes())
    return out.getvalue()


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--calls", type=int, default=1_000_000)
    arguments.add_argument("--threads", type=int, default=4)
    arguments.add_argument("--deadlines", type=int, default=100)
    a = arguments.parse_args()
    warnings.simplefilter("ignore")
    features = melflow.Features(preset="whisper", workers=a.threads)
    random = np.random.default_rng(1)
    sounds = [(random.standard_normal(200 + 400 * i) * 3000).astype(np.int16) for i in range(20)]
    files = [wav(one) for one in sounds]
    expected = [features(one) for one in files]
    wrong = []
    first = min(10_000, a.calls // 10)
    marks = sorted({first, *(a.calls * tenth // 10 for tenth in range(1, 11))})
    number, lock, seen = iter(range(a.calls)), threading.Lock(), {}

    def call(i):
        k = i % len(files)
        kind = i // len(files) % 5
        try:
            if kind == 0:
                rows = features(files[k])
            elif kind == 1:
                rows = features(sounds[k], RATE)
            elif kind == 2:
                rows = features(memoryview(files[k]), out=np.empty_like(expected[k]))
            elif kind == 3:
                features(files[k][:-40], remarks=[])
                return
            else:
                features(files[k], max_seconds=0.1)
                rows = expected[k] if len(sounds[k]) <= RATE // 10 else None
        except melflow.RunError as error:
            if kind < 3 or kind == 4 and (len(sounds[k]) <= RATE // 10 or "is longer than max_seconds" not in str(error)):
                wrong.append(str(error))
            return
        if rows is None or not np.array_equal(rows, expected[k]):
            wrong.append(f"call {i} has other rows")

    def work():
        while True:
            with lock:
                i = next(number, None)
            if i is None:
                return
            call(i)
            if i + 1 in marks:
                with lock:
                    seen[i + 1] = resident()
                    print(f"after {i + 1:,} calls: {seen[i + 1]:.1f} MiB", flush=True)

    begin = time.time()
    workers = [threading.Thread(target=work) for _ in range(a.threads)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    print(f"{a.calls:,} calls in {a.threads} threads took {time.time() - begin:.0f} s")
    growth = seen[a.calls] - seen[first]

    async def by_coroutine():
        for _ in range(20):
            for rows, one in zip(await asyncio.gather(*(features.acall(one) for one in files)), expected):
                if not np.array_equal(rows, one):
                    wrong.append("a coroutine has other rows")

    asyncio.run(by_coroutine())
    hours = np.zeros(600 * RATE, np.int16)
    long = wav(hours)
    late = []
    for i in range(a.deadlines):
        used, deadline = time.thread_time(), 0.001 * (i % 10)
        try:
            features(long, deadline=deadline)
            wrong.append("a deadline has passed unseen")
        except TimeoutError:
            late.append(time.thread_time() - used - deadline)
    if late:
        print(f"{len(late)} deadlines: noticed {1e3 * sum(late) / len(late):.1f} ms later in the mean, {1e3 * max(late):.1f} ms at most, of processor time")
    for one in wrong[:10]:
        print("wrong:", one)
    print(f"from call {first:,} to the last: {growth:+.1f} MiB")
    sys.exit(1 if wrong or abs(growth) > 2 or (late and max(late) > 0.1) else 0)


if __name__ == "__main__":
    main()
