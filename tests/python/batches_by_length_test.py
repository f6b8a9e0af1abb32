"""`bucket` and `max_rows`, of the stream and by number."""

import itertools
import os
import unittest

import melflow
import numpy as np

import corpus


class BatchesByLengthTest(corpus.CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.yaml, cls.mel, cls.audio = cls.make("whole")
        cls.rows = melflow.open(cls.mel)
        cls.taken = np.flatnonzero(cls.rows.count > 0).tolist()

    def kinds(self):
        both = melflow.open({"mel": self.mel, "audio": self.audio})
        by_pipeline = melflow.open(self.yaml, scan=True)
        for name, make in (("stream", lambda **o: melflow.Loader(self.yaml, shuffle=16, **o)),
                           ("of a pipeline", by_pipeline.batches), ("of a file", self.rows.batches),
                           ("of files", both.batches)):
            with self.subTest(name):
                yield name, make

    def epochs(self, loader, count=1):
        return [[batch["file"].tolist() for batch in loader] for _ in range(count)]

    def padding(self, batches):
        """The share of rows that are padding, where the one recording of a minute is not."""
        count = self.rows.count
        batches = [files for files in batches if max(count[files]) < 6000]
        padded = sum(len(files) * max(count[files]) for files in batches)
        return 1 - sum(count[sum(batches, [])]) / padded

    @corpus.of_each
    def test_batches_are_others_in_each_epoch_and_leave_in_random_order(self, name, make):
        plain, = self.epochs(make(batch_size=5, seed=1))
        for bucket in (25, 1024):
            options = dict(batch_size=5, bucket=bucket, seed=1)
            epochs = self.epochs(make(**options), 4) + self.epochs(make(**options | {"seed": 2}))
            self.assertEqual(self.epochs(make(**options, workers=3), 4), epochs[:4])
            contents = []
            for epoch in epochs:
                self.assertEqual(sorted(sum(epoch, [])), self.taken)
                self.assertEqual(sorted(map(len, epoch)), [5] * (len(self.taken) // 5))
                self.assertLess(self.padding(epoch), self.padding(plain) * (0.7 if bucket == 25 else 0.4))
                longest = [max(self.rows.count[files]) for files in epoch]
                rises = [a < b for a, b in zip(longest, longest[1:])]
                self.assertTrue(0.2 < np.mean(rises) < 0.8)
                contents.append({frozenset(files) for files in epoch})
            for i, one in enumerate(contents):
                self.assertTrue(all(one != other for other in contents[:i]))

    @corpus.of_each
    def test_what_is_dropped_may_have_any_length(self, name, make):
        by_length = [f for f in np.argsort(self.rows.count, kind="stable").tolist() if f in self.taken]
        loader = make(batch_size=9, bucket=1024, drop_last=True, seed=1)
        dropped = [set(self.taken) - set(sum(epoch, [])) for epoch in self.epochs(loader, 8)]
        self.assertEqual({len(files) for files in dropped}, {len(self.taken) % 9})
        middles = [np.mean([by_length.index(f) for f in files]) for files in dropped]
        self.assertLess(min(middles), len(self.taken) / 2)
        self.assertGreater(max(middles), len(self.taken) / 2)
        self.assertGreater(len(set(middles)), 3)

    @corpus.of_each
    def test_max_rows_bounds_the_padded_rows(self, name, make):
        count = self.rows.count
        for options in ({}, dict(bucket=16), dict(bucket=1024), dict(bucket=16, batch_size=4)):
            options = dict(batch_size=100, max_rows=2500, seed=4) | options
            loader = make(**options)
            for _ in range(2):
                length = None if name == "stream" else len(loader)
                epoch, = self.epochs(loader)
                self.assertEqual(sorted(sum(epoch, [])), self.taken)
                self.assertIn(length, (None, len(epoch)))
                for files in epoch:
                    self.assertTrue(len(files) == 1 or len(files) * max(count[files]) <= 2500)
                    self.assertLessEqual(len(files), options["batch_size"])
                self.assertTrue(any(len(files) > 1 for files in epoch))
                self.assertTrue(any(max(count[files]) > 2500 for files in epoch))
                if "bucket" not in options:  # each batch takes as many as fit
                    for files, following in zip(epoch, epoch[1:]):
                        self.assertGreater((len(files) + 1) * max(count[files + following[:1]]), 2500)

    @corpus.of_each
    def test_a_state_goes_on(self, name, make):
        options = dict(batch_size=6, seed=4)
        for more in (dict(max_rows=3000), dict(bucket=20), dict(bucket=20, max_rows=3000),
                     dict(bucket=1024, max_rows=3000)):
            whole, = self.epochs(make(**options, **more))
            for stop in (1, 4, len(whole) - 1):
                one, other = make(**options, **more), make(**options, **more, workers=1)
                list(itertools.islice(one, stop))
                other.load_state_dict(one.state_dict())
                self.assertEqual(self.epochs(other), [whole[stop:]])
            with self.assertRaisesRegex(ValueError, "other samples would follow: .*bucket is "):
                make(**options, bucket=21).load_state_dict(one.state_dict())
            larger = make(**options | {"batch_size": 7}, **more)
            if "bucket" in more:
                with self.assertRaisesRegex(ValueError, "other samples would follow: batch_size"):
                    larger.load_state_dict(one.state_dict())
            else:  # the same samples follow
                larger.load_state_dict(one.state_dict())
                self.assertEqual(sum(self.epochs(larger)[0], []), sum(whole[stop:], []))

    @corpus.of_each
    def test_ranks_have_as_many_batches(self, name, make):
        count = self.rows.count
        if name == "stream":
            self.skipTest("its ranks have recordings of their own")
        for more in (dict(max_rows=2500), dict(bucket=24), dict(bucket=24, max_rows=2500)):
            for ranks in (2, 3):
                loaders = [make(batch_size=4, seed=4, rank=r, world_size=ranks, **more) for r in range(ranks)]
                parts = [self.epochs(loader)[0] for loader in loaders]
                self.assertEqual({len(part) for part in parts}, {len(parts[0])})
                files = sum(sum(parts, []), [])
                self.assertEqual(set(files), set(self.taken))
                self.assertLess(len(files), len(self.taken) + ranks)
                for batch in sum(parts, []):
                    self.assertTrue(1 <= len(batch) <= 4)
                    if "max_rows" in more:
                        self.assertTrue(len(batch) == 1 or len(batch) * max(count[batch]) <= 2500)
                if more == dict(bucket=24):  # together they equal a larger batch
                    one, = self.epochs(make(batch_size=4 * ranks, seed=4, bucket=24))
                    self.assertEqual([sum(step, [])[:len(batch)] for step, batch in zip(zip(*parts), one)], one)

    def test_recordings_have_one_order_in_the_stream_and_by_number(self):
        yaml, mel, audio = self.make("parts", files=", splits: ratio, split_ratios: {train: 60, val: 40}")
        by_number = [melflow.open(mel), melflow.open({"mel": mel, "audio": audio}), melflow.open(yaml, scan=True)]
        taken = int((by_number[0].count > 0).sum())  # some recordings have no rows
        for more in ({}, dict(max_rows=2500), dict(bucket=16), dict(bucket=taken // 5, drop_last=True),
                     dict(bucket=1024, max_rows=2500), dict(bucket=8, split="val")):
            options = dict(batch_size=5, seed=3) | more
            stream = self.epochs(melflow.Loader(yaml, **options), 2)
            for rows in by_number:
                with self.subTest(more, rows=type(rows).__name__):
                    self.assertEqual(self.epochs(rows.batches(**options), 2), stream)

    def test_without_shuffling_nothing_is_drawn(self):
        loader = self.rows.batches(6, bucket=1024, shuffle=False)
        one, two = self.epochs(loader, 2)
        self.assertEqual(one, two)
        lengths = [self.rows.count[f] for f in sum(one, [])]
        self.assertEqual(lengths, sorted(lengths))

    def test_a_recording_in_the_place_of_a_lost_one_is_no_longer_than_the_batch_allows(self):
        rows = melflow.open(self.yaml, store=0, index=False, scan=True)
        lengths = rows.count
        short = sorted((f for f in self.taken if 0 < lengths[f]), key=lambda f: lengths[f])[20:26]
        for f in short:
            os.rename(os.path.join(self.root, rows.path[f]), os.path.join(self.root, rows.path[f] + "_"))
        try:
            for bucket in (0, 1024):
                batches = self.epochs(rows.batches(100, max_rows=2500, bucket=bucket))[0]
                self.assertFalse(set(sum(batches, [])) & set(short))
                self.assertTrue(all(len(b) == 1 or len(b) * max(lengths[b]) <= 2500 for b in batches))
        finally:
            for f in short:
                os.rename(os.path.join(self.root, rows.path[f] + "_"), os.path.join(self.root, rows.path[f]))
        self.assertEqual(set(rows.losses), {rows.path[f] for f in short})

    def test_windows_have_one_length(self):
        yaml, mel, _ = self.make("cut", **corpus.WINDOWS)
        for option in ("bucket", "max_rows"):
            with self.assertRaisesRegex(ValueError, f"{option} is for whole recordings"):
                melflow.open(mel).batches(8, **{option: 16})
            with self.assertRaisesRegex(melflow.ConfigError, f"{option}: is for whole recordings"):
                melflow.Loader(yaml, **{option: 16})


if __name__ == "__main__":
    unittest.main()
