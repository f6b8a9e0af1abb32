"""Functions that tests call as nodes: calls_test.py and call_batches_test.py copy this file as own.py."""

import os
import signal
import sys
import threading
import time
import zlib

import melflow
import numpy as np


def louder(samples, rate, gain=2.0):
    return samples * np.float32(gain)


def three(samples, rate):
    for factor in (0.5, 1.0, 2.0):
        yield samples * np.float32(factor)


def loud_parts(samples, rate, frame=800):
    levels = np.abs(samples[: len(samples) // frame * frame].reshape(-1, frame)).max(1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], levels > 0.25, [0]])))
    return edges.reshape(-1, 2) * (frame / rate)


def embedding(samples, rate):
    return [samples.min(), samples.max(), np.float32(len(samples)), np.float32(rate)]


def mean_of_rows(rows):
    return rows.mean(0)


def minus_mean(rows):
    return rows - rows.mean(0)


class Busy:
    """Fails where two threads use one object at once, also while its generator runs."""
    made = 0

    def __init__(self):
        Busy.made += 1
        self.lock = threading.Lock()

    def __call__(self, samples, rate):
        for i in range(2):
            if not self.lock.acquire(blocking=False):
                raise RuntimeError("used twice at once")
            time.sleep(0.001)
            yield samples
            self.lock.release()
        if len(samples) < 4 * rate:
            melflow.skip("is short")


class Counter:
    """Counts in its own thread or process how often it is called."""
    made = 0

    def __init__(self, by=1):
        Counter.made += 1
        self.by, self.calls = by, 0

    def __call__(self, samples, rate):
        self.calls += self.by
        return samples[: len(samples) // 2]


def choosy(samples, rate):
    if len(samples) < 4 * rate:
        melflow.skip(f"has {len(samples)} samples")
    if len(samples) > 7 * rate:
        melflow.note("is long")
    return samples


calls, others_done, counted = [], [], threading.Condition()


def first_fails_last(rows, of):
    with counted:
        calls.append(1)
        if len(calls) == 1:
            counted.wait_for(lambda: len(others_done) == of - 1, 60)
            raise ValueError("fails when all others are done")
        others_done.append(1)
        counted.notify_all()
    return rows


is_called, may_end, waited = threading.Event(), threading.Event(), 0


def waits(samples):
    global waited
    waited += 1
    is_called.set()
    may_end.wait(60)
    return samples


def halves(samples, rate):
    middle, end = len(samples) / 2 / rate, len(samples) / rate
    return [(0, middle), (middle, end)]


WRONG = {
    "none": lambda samples: None,
    "text": lambda samples: "abc",
    "shape": lambda samples: samples[None],
    "integers": lambda samples: samples.astype(np.int64),
    "nan": lambda samples: samples * np.float32("nan"),
    "longer": lambda samples: np.concatenate([samples, samples]),
    "raises": lambda samples: samples["no"],
    "exits": lambda samples: sys.exit(3),
    "generator": lambda samples: (samples[0] if i else samples for i in range(2)),
}


def wrong(samples, rate, how="none"):
    return WRONG[how](samples)


def dies(samples, rate):
    if len(samples) > 7 * rate:
        os.kill(os.getpid(), signal.SIGKILL)
    if len(samples) > 6.84 * rate:  # one recording
        time.sleep(600)
    return samples


seen_shapes = set()


def of_batches(batch, rate, is_many=False):
    seen_shapes.add(batch.shape[0])
    if is_many:
        return [[samples, samples[:len(samples) // 2]] for samples in batch]
    return batch * np.float32(2)


def choosy_in_batches(batch, rate):
    for samples in batch:
        if len(samples) < 4 * rate:
            melflow.skip(f"has {len(samples)} samples")
        if len(samples) > 7 * rate:
            raise ValueError("is long")
        if len(samples) < 5 * rate:
            melflow.note("is not long")
    return batch


most_together = 0


def choosy_by_content(batch):
    global most_together
    most_together = max(most_together, len({samples.tobytes() for samples in batch}))
    for samples in batch:
        kind = zlib.crc32(samples.tobytes()) % 7
        if kind == 0:
            raise ValueError("is of kind 0")
        if kind == 1:
            melflow.skip("is of kind 1")
        if kind == 2:
            melflow.note("is of kind 2")
    return batch


def one_of_a_batch(batch):
    return batch[0]


def total_of_a_batch(batch):
    return np.float32(batch.sum())


def rows_in_batches(rows):
    return rows.mean(1)


class SlowToStart:
    def __init__(self):
        time.sleep(3.5)

    def __call__(self, samples):
        return samples


def dies_in_batches(batch, rate):
    dies(batch[0], rate)
    return batch


class Delayed:
    """Gives each sample `by` samples later, and at the end those that it has kept."""

    def __init__(self, by, fails_at=None):
        self.kept, self.sizes, self.fails_at = np.zeros(by, np.float32), [], fails_at

    def __call__(self, block, rate):
        assert rate == 8000
        self.sizes.append(len(block))
        if len(self.sizes) == self.fails_at:
            raise ValueError(f"fails at block {self.fails_at}")
        both = np.concatenate([self.kept, block])
        self.kept = both[len(block):]
        return both[:len(block)]

    def finish(self):
        if set(self.sizes[:-1]) - {1000}:
            raise ValueError(f"blocks of {self.sizes}")
        return self.kept


class Late:
    """Gives each block one call later."""
    kept = None

    def __call__(self, block):
        before, self.kept = self.kept, block
        return before

    def finish(self):
        return self.kept


class Hoarder:
    def __init__(self):
        self.kept = []

    def __call__(self, block):
        self.kept.append(block)

    def finish(self):
        return np.concatenate(self.kept)


class Louder:
    def __call__(self, block):
        return block * np.float32(2)


def computes(samples, rate):
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass
    return samples


def with_rate(samples, rate):
    return samples, rate


def ragged(samples, rate):
    return [samples, samples[:3]]


def holds_the_lock(samples, rate):
    total = 0
    for i in range(60000):
        total += i % 7
    return samples + np.float32(total * 0)


def holds_the_lock_for_long(samples, rate):
    for _ in range(5):
        holds_the_lock(samples, rate)
    return samples


def releases_the_lock(samples, rate):
    matrix = np.broadcast_to(samples[:600], (600, 600))
    return samples + (matrix @ matrix)[0, 0] * np.float32(0)


class OwnBlocks:
    """Gives all blocks of a recording in the same memory."""

    def __init__(self):
        self.room = np.zeros(1000, np.float32)

    def __call__(self, samples, rate):
        np.multiply(samples, 2, out=self.room[:len(samples)])
        return self.room[:len(samples)]


class OwnBatches:
    """Gives all batches in the same memory."""

    def __init__(self):
        self.room = {}

    def __call__(self, samples):
        room = self.room.setdefault(samples.shape, np.empty_like(samples))
        return np.multiply(samples, 2, out=room)


def own_results(samples, rate):
    """Gives several results in the same memory."""
    room = np.empty(len(samples), np.float32)
    for factor in (2, 3):
        yield np.multiply(samples, factor, out=room)
