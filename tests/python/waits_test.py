"""Who waits for whom in a training loop: loader.waits, headroom and metrics, with a clock of the test's own."""

import json
import random
import re
import types
import unittest
import warnings
from unittest import mock

import numpy as np
from melflow import rank_watch, waits

import corpus


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Simulated:
    """A loader that makes a batch in so many seconds beside the program, up to `prefetch` of them ahead."""

    def __init__(self, clock, seconds, prefetch=2, batches=1000):
        self.clock, self.seconds, self.prefetch, self.batches = clock, seconds, prefetch, batches

    def __iter__(self):
        ready, taken = [], []  # when batches are there, and when they were taken
        for i in range(self.batches):
            begin = max(ready[-1] if ready else self.clock.now, taken[i - self.prefetch] if i >= self.prefetch else 0.0)
            ready.append(begin + self.seconds(i))
            self.clock.now = max(self.clock.now, ready[-1])
            taken.append(self.clock.now)
            yield {"mel": np.zeros((4, 100), np.float32), "result": {"part": np.zeros(4, np.int64)}}


class WaitsTest(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        patch = mock.patch.object(waits, "clock", self.clock)
        patch.start()
        self.addCleanup(patch.stop)

    def steps(self, loader, program):
        """Seconds of a step over a long epoch."""
        begin = self.clock.now
        for i, _ in enumerate(loader):
            self.clock.now += program(i)
        return (self.clock.now - begin) / loader.batches

    def test_headroom_tells_what_a_loader_without_cost_would_give(self):
        by = random.Random(1)
        for load, work, cause in ((0.01, 0.1, "program"), (0.1, 0.01, "loader"), (0.15, 0.1, "both"), (0.1, 0.098, "program")):
            for spread in (0, 0.3):
                jitter = lambda mean: lambda i: mean * (1 + spread * (2 * by.random() - 1))  # noqa: E731, B023
                h = waits.Headroom(Simulated(self.clock, jitter(load)), 200, 1 << 30)
                self.assertIn("not measured yet", str(h))
                given = 0
                for _ in h:
                    self.clock.now += jitter(work)(0)
                    given += 1
                with self.subTest(load=load, work=work, spread=spread):
                    self.assertEqual((given, h.repeated, h.cause), (400, 1.0, cause), str(h))
                    now = self.steps(Simulated(self.clock, jitter(load)), jitter(work))
                    perfect = self.steps(Simulated(self.clock, lambda i: 0.0), jitter(work))
                    self.assertLess(abs(h.gain / (now / perfect) - 1), 0.15)
                    self.assertRegex(str(h), f"^{'loader and program hold' if cause == 'both' else f'the {cause} holds'} the loop back")

    def test_batches_that_do_not_fit_are_repeated(self):
        h = waits.Headroom(Simulated(self.clock, lambda i: 0.1), 40, 4 * (1600 + 32))
        for _ in h:
            self.clock.now += 0.01
        self.assertEqual(h.repeated, 10.0)
        self.assertIn("10.0 times each batch that fitted into memory", str(h))
        with self.assertRaisesRegex(ValueError, "the epoch has 5 batches, and it takes more than 6"):
            list(waits.Headroom(Simulated(self.clock, lambda i: 0.1, batches=5), 40, 1 << 20))

    def test_figures(self):
        w = waits.Waits()
        self.clock.now = 2.0
        w.comes()
        for step in range(100):
            self.clock.now += 0.5
            w.asks()
            self.clock.now += 0.001 * (step + 1)
            w.comes()
        figures = w.figures()
        self.assertEqual((figures["batches"], figures["first_batch_s"]), (101, 2.0))
        self.assertAlmostEqual(figures["waiting_for_batches"]["seconds"], 5.05)
        self.assertAlmostEqual(figures["waiting_for_batches"]["p50_ms"], 50.5)
        self.assertAlmostEqual(figures["waiting_for_batches"]["p99_ms"], 99.01)
        self.assertAlmostEqual(figures["in_program"]["p99_ms"], 500)


class Store(dict):
    """As torch.distributed's."""

    def set(self, key, value):
        self[key] = value.encode()

    def get(self, key):
        return self[key]

    def check(self, keys):
        return all(key in self for key in keys)


class RankWatchTest(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        patch = mock.patch.object(waits, "clock", self.clock)
        patch.start()
        self.addCleanup(patch.stop)
        self.store = Store()
        self.loaders = [types.SimpleNamespace(_waits=None, _run=None, epoch=0) for _ in range(3)]
        self.watches = [rank_watch.RankWatch(loader, 60, rank, 3, self.store) for rank, loader in enumerate(self.loaders)]

    def look(self):
        """What all ranks warn of."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for watch in self.watches:
                watch.look()
        return [str(one.message) for one in told]

    def test_it_names_the_rank_and_what_it_waits_for(self):
        self.watches[0].look()
        self.assertEqual([one["does"] for one in self.watches[0].ranks()], ["no epoch", "not begun", "not begun"])
        for loader in self.loaders[:2]:
            loader._waits, loader._run = waits.Waits(3), object()
        self.clock.now = 59.0
        self.assertEqual(self.look(), [])
        self.clock.now = 61.0
        self.loaders[0]._waits.comes()
        self.assertEqual(self.look(), ["rank 1 has waited 61 s for batch 0 of epoch 3; rank 0 has been in the program for 0 s after batch 0 of epoch 3; "
                                       "rank 2 has no epoch under way"])
        self.assertEqual(self.look(), [])  # once
        self.clock.now = 130.0
        self.assertEqual(self.look(), ["rank 0 has been in the program for 69 s after batch 0 of epoch 3; rank 1 has waited 61 s for batch 0 of epoch 3; "
                                       "rank 2 has no epoch under way"])
        self.loaders[1]._waits.comes()
        self.loaders[1]._waits.asks()
        self.clock.now = 191.0
        self.assertEqual(self.look(), ["rank 1 has waited 61 s for batch 1 of epoch 3; rank 0 has been in the program for 130 s after batch 0 of epoch 3; "
                                       "rank 2 has no epoch under way"])
        self.assertEqual(str(self.watches[2]), "rank 1 holds the others up: it waited 61 s for batches, the others 0 to 0 s")
        self.loaders[0]._waits.asks()
        self.clock.now = 281.0
        self.look()
        self.assertEqual(str(self.watches[2]), "no rank holds the others up: they waited 0 to 151 s for batches")

    def test_it_ends(self):
        with self.watches[0]:
            thread = self.watches[0]._thread
            self.assertTrue(thread.is_alive())
        self.assertFalse(thread.is_alive())
        with self.assertRaisesRegex(RuntimeError, "torch.distributed.init_process_group"):
            rank_watch.watch(self.loaders[0], 60)


class LoaderWaitsTest(corpus.CorpusTest):
    def test_of_loaders(self):
        import melflow

        text = corpus.pipeline(self.root, "stage: batches, size: 4")
        loader = melflow.Loader(text)
        self.assertIsNone(loader.waits)
        sizes = [len(batch["file"]) for batch in loader]
        count, samples = len(sizes), sum(sizes)
        self.assertEqual(loader.waits["batches"], count)
        self.assertEqual(loader.report["waits"], loader.waits)
        self.assertIn("<", loader.report.html())
        self.assertEqual(json.loads(json.dumps(loader.waits)), loader.waits)
        lines = [line for line in loader.metrics().splitlines() if not line.startswith("#")]
        for line in lines:
            self.assertRegex(line, r"^melflow_loader_[a-z_]+ [0-9.e+-]+$")
        self.assertEqual([line for line in lines if "_seconds" not in line],
                         ["melflow_loader_epoch 0", f"melflow_loader_samples {samples}", f"melflow_loader_batches {count}"])
        for helped, typed, line in zip(*[iter(loader.metrics().splitlines())] * 3):
            name = line.split()[0]
            self.assertEqual((helped.split()[:3], typed.split()), (["#", "HELP", name], ["#", "TYPE", name, "gauge"]))
        h = loader.headroom(8, memory="1MiB")
        self.assertEqual(sum(1 for _ in h), 16)
        self.assertIn(h.cause, ("program", "loader", "both"))
        self.assertEqual(sum(1 for _ in loader), count)  # the next epoch, from its beginning
        for wrong, says in (({"steps": 0}, "steps is 1 or more"), ({"steps": 8, "memory": "big"}, "memory: 'big' is no number of bytes")):
            with self.assertRaisesRegex(ValueError, re.escape(says)):
                loader.headroom(**wrong)


if __name__ == "__main__":
    unittest.main()
