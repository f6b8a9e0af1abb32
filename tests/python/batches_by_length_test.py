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


class LengthLimitsTest(corpus.CorpusTest):
    """max_seconds, cost, groups, max_padding and pack, by number."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.yaml, cls.mel, cls.audio = cls.make("whole")
        cls.rows = melflow.open(cls.mel)
        cls.taken = np.flatnonzero(cls.rows.count > 0).tolist()

    def kinds(self):
        yield "of a file", self.rows
        yield "of a pipeline", melflow.open(self.yaml, scan=True)

    def files(self, loader):
        return [batch["file"].tolist() for batch in loader]

    @corpus.of_each
    def test_max_seconds_is_max_rows_by_the_rate_of_rows(self, name, rows):
        self.assertEqual(rows.rows_per_second, 100)
        self.assertEqual(self.files(rows.batches(2**20, max_rows=2500, bucket=32, seed=1)), self.files(rows.batches(max_seconds=25, bucket=32, seed=1)))
        self.assertEqual(melflow.open(self.audio).rows_per_second, 8000)
        waveforms = melflow.open(self.audio).batches(max_seconds=25, bucket=32)
        for batch in waveforms:
            self.assertTrue(len(batch["length"]) == 1 or batch["waveform"].shape[0] * batch["waveform"].shape[1] <= 25 * 8000)

    @corpus.of_each
    def test_a_cost_bounds_batches(self, name, rows):
        def cost(n):
            return n + n**2 / 500

        loader = rows.batches(max_cost=6000, cost=cost, bucket=32, seed=1)
        batches = self.files(loader)
        self.assertEqual(sorted(sum(batches, [])), self.taken)
        costs = [len(batch) * cost(max(self.rows.count[batch])) for batch in batches]
        self.assertTrue(all(len(batch) == 1 or of <= 6000.1 for batch, of in zip(batches, costs)))
        self.assertAlmostEqual(loader.report["fill"], np.mean(costs) / 6000, places=5)
        rates = [max(self.rows.count[b]) for b in batches if len(b) > 1]
        self.assertGreater(max(rates), min(rates))
        same = rows.batches(2**20, max_rows=2500, bucket=32, seed=1)
        self.assertEqual(self.files(rows.batches(max_cost=250, cost=lambda n: n / 10, bucket=32, seed=1)), self.files(same))
        state = rows.batches(max_cost=6000, cost=cost, bucket=32, seed=1).state_dict()
        with self.assertRaisesRegex(ValueError, "cost is another"):
            rows.batches(max_cost=6000, cost=lambda n: n, bucket=32, seed=1).load_state_dict(state)

    @corpus.of_each
    def test_ranks_have_the_batches_of_one_group_in_each_step(self, name, rows):
        for more in (dict(max_seconds=15, bucket=32), dict(batch_size=3, bucket=32), dict(max_seconds=15, pack=True, bucket=32), dict(max_seconds=15)):
            more = dict(seed=2, groups=4, **more)
            one = self.files(rows.batches(**more))
            self.assertEqual(set(sum(one, [])), set(self.taken))
            self.assertEqual(len(one) % 4, 0)
            for ranks in (2, 4):
                parts = [self.files(rows.batches(rank=r, world_size=ranks, **more)) for r in range(ranks)]
                self.assertEqual([batch for step in zip(*parts) for batch in step], one)

    @corpus.of_each
    def test_a_state_goes_on_with_ranks_that_divide_its_groups(self, name, rows):
        options = dict(max_seconds=15, bucket=32, seed=2)
        pair = [rows.batches(rank=r, world_size=2, **options) for r in range(2)]
        parts = [self.files(of) for of in pair]
        whole = [batch for step in zip(*parts) for batch in step]
        for stop in range(1, len(parts[0])):
            pair[0].set_epoch(0)
            list(itertools.islice(pair[0], stop))
            state = pair[0].state_dict()
            alone = rows.batches(**options, workers=7)
            alone.load_state_dict(state)  # which says that a group is of two batches
            self.assertEqual(self.files(alone), whole[2 * stop:])
        following = self.files(alone)
        self.assertEqual(following, [b for step in zip(*(self.files(of) for of in (rows.batches(rank=r, world_size=2, **options) for r in range(2))
                                                         if of.set_epoch(1) is None)) for b in step])
        for ranks, fitting in ((3, "1, 2"), (4, "1, 2")):
            with self.assertRaisesRegex(ValueError, f"groups of 2 batches, which world_size {ranks} does not divide, .* go on with a number of ranks of: {fitting}"):
                rows.batches(rank=0, world_size=ranks, **options).load_state_dict(state)
        with self.assertRaisesRegex(ValueError, "groups is 2 in the state and 4 here"):
            rows.batches(groups=4, **options).load_state_dict(state)

    @corpus.of_each
    def test_a_state_in_the_middle_of_a_group_goes_on_with_other_ranks(self, name, rows):
        for more in (dict(max_seconds=15, bucket=32), dict(max_seconds=15, pack=True, bucket=32)):
            options = dict(seed=2, groups=4, **more)
            whole = self.files(rows.batches(**options))
            for stop in range(1, len(whole)):
                if set(sum(whole[:stop], [])) == set(self.taken):  # only repeated samples are left, which other ranks may leave out
                    continue
                one = rows.batches(**options)
                list(itertools.islice(one, stop))
                state = one.state_dict()
                for ranks in (2, 4):
                    loaders = [rows.batches(rank=r, world_size=ranks, **options) for r in range(ranks)]
                    for of in loaders:
                        of.load_state_dict(state)
                    self.assertEqual(len({len(of) for of in loaders}), 1)
                    steps = list(zip(*map(self.files, loaders)))
                    came = [f for step in steps for batch in step for f in batch]
                    left = sum(whole[stop:], [])
                    self.assertLessEqual(set(left), set(came))
                    self.assertLess(len(came) - len(left), ranks)
                    if stop % ranks == 0:
                        self.assertEqual([batch for step in steps for batch in step], whole[stop:])
                    for again in range(1, len(steps)):  # and once more, with as many ranks
                        of = rows.batches(rank=0, world_size=ranks, **options)
                        of.load_state_dict(state)
                        list(itertools.islice(of, again))
                        other = rows.batches(rank=1, world_size=ranks, **options)
                        other.load_state_dict(of.state_dict())
                        self.assertEqual(self.files(other), [step[1] for step in steps[again:]])
                        break

    @corpus.of_each
    def test_max_padding_bounds_the_padding_of_each_sample(self, name, rows):
        count = self.rows.count
        for more in (dict(bucket=1024), dict(bucket=16), dict()):
            for ranks in (1, 2):
                batches = sum((self.files(rows.batches(max_seconds=40, max_padding=0.15, seed=1, rank=r, world_size=ranks, **more)) for r in range(ranks)), [])
                self.assertEqual(set(sum(batches, [])), set(self.taken))
                for batch in batches:
                    self.assertGreaterEqual(min(count[batch]), 0.85 * max(count[batch]) - 1e-9)
                if more == dict(bucket=1024):
                    self.assertTrue(any(len(batch) > 1 for batch in batches))

    @corpus.of_each
    def test_packed_batches_have_no_padding(self, name, rows):
        count = self.rows.count
        for ranks in (1, 2):
            seen = []
            for r in range(ranks):
                for batch in rows.batches(max_rows=2000, pack=True, bucket=30, seed=1, rank=r, world_size=ranks):
                    files, ends = batch["file"], batch["cu_seqlens"]
                    seen.extend(files.tolist())
                    self.assertEqual(ends.dtype, np.int32)
                    self.assertEqual(ends.tolist(), np.cumsum([0, *count[files]]).tolist())
                    self.assertEqual(batch["mel"].shape, (1, ends[-1], 20))
                    self.assertTrue(ends[-1] <= 2000 or len(files) == 1)
                    self.assertEqual(batch["length"].tolist(), count[files].tolist())
                    for i, file in enumerate(files):
                        np.testing.assert_array_equal(batch["mel"][0, ends[i]:ends[i + 1]], self.rows.recording(file))
            self.assertEqual(set(seen), set(self.taken))
            self.assertLess(len(seen) - len(self.taken), ranks)
        loader = rows.batches(max_rows=2000, pack=True, bucket=30, seed=1)
        self.assertGreater(loader.preview()["fill"], 0.9)
        self.assertEqual(loader.preview()["padding"], 0)
        both = melflow.open({"mel": self.mel, "audio": self.audio})
        for batch in both.batches(max_rows=2000, pack=True, normalize=False):
            for kind in ("mel", "audio"):
                self.assertEqual(batch[kind + "_cu_seqlens"].tolist(), np.cumsum([0, *batch[kind + "_length"]]).tolist())
                self.assertEqual(batch[kind].shape[:2], (1, batch[kind + "_cu_seqlens"][-1]))
        self.assertEqual(len(self.files(rows.batches(3, max_rows=2000, pack=True, drop_last=True))[0]), 3)

    @corpus.of_each
    def test_the_report_has_padding_fill_and_entropy(self, name, rows):
        count = self.rows.count
        for options in (dict(max_rows=2500), dict(max_rows=2500, bucket=1024), dict(batch_size=6, bucket=16)):
            loader = rows.batches(seed=1, **options)
            batches = self.files(loader)
            report = loader.report
            padded = sum(len(b) * max(count[b]) for b in batches)
            self.assertEqual(report["batches"], len(batches))
            self.assertAlmostEqual(report["padding"], 1 - sum(count[sum(batches, [])]) / padded)
            fill = np.mean([len(b) * max(count[b]) for b in batches]) / 2500 if "max_rows" in options else None
            self.assertEqual(report["fill"], fill if fill is None else report["fill"])
            if fill is not None:
                self.assertAlmostEqual(report["fill"], fill)
            # By definition, pair by pair: H(class of one | class of the other).
            order = {f: i for i, f in enumerate(sorted(self.taken, key=lambda f: count[f]))}
            classes = {f: order[f] * 32 // len(order) for f in order}
            pairs = [(classes[a], classes[b]) for batch in batches for i, a in enumerate(batch) for k, b in enumerate(batch) if i != k]
            if len(set(count[self.taken])) == len(self.taken):
                joint, single = (np.unique(of, axis=0, return_counts=True)[1] / len(pairs) for of in (pairs, [p[:1] for p in pairs]))
                self.assertAlmostEqual(report["entropy_of_neighbours"], -(joint * np.log2(joint)).sum() + (single * np.log2(single)).sum())

    def test_what_is_wrong_is_named(self):
        windows = melflow.open(self.make("cut", **corpus.WINDOWS)[1])
        for rows, options, error in (
                (self.rows, dict(max_seconds=10, max_rows=100), "max_rows and max_seconds: give one limit"), (self.rows, dict(max_seconds=0), "max_seconds is a number above 0"),
                (self.rows, dict(max_seconds="10"), "max_seconds is a number above 0"), (self.rows, dict(max_seconds=0.001), "less than a row, of which 100 are a second"),
                (self.rows, dict(max_cost=10), "max_cost and cost come together"), (self.rows, dict(cost=len), "max_cost and cost come together"),
                (self.rows, dict(max_cost=10, cost=3), "cost is a function"), (self.rows, dict(max_cost=10, cost=lambda n: -n), "a cost is a finite number of 0 or more"),
                (self.rows, dict(max_cost=10, cost=lambda n: 1e6 - n), r"rows cost \S+, less than \d+ rows"), (self.rows, dict(max_cost=10, cost=lambda n: 3), r"gives an array of the shape \(\)"),
                (self.rows, dict(max_padding=2), "max_padding is a number from 0 to 1"), (self.rows, dict(pack=True), "pack: takes max_rows or max_seconds"),
                (self.rows, dict(pack=True, max_cost=10, cost=lambda n: n), "pack: takes max_rows or max_seconds"), (self.rows, dict(pack=True, max_rows=9, max_padding=0.1), "packed batches have no padding"),
                (self.rows, dict(groups=2), "groups: is for batches by length"), (self.rows, dict(groups=3, bucket=16, rank=0, world_size=2), "groups: 3 batches are not shared out evenly by world_size 2"),
                (windows, dict(max_seconds=10), "max_seconds is for whole recordings"), (windows, dict(pack=True, max_rows=100), "(pack|max_rows) is for whole recordings"),
                (windows, dict(max_padding=0.1), "max_padding is for whole recordings")):
            with self.subTest(options), self.assertRaisesRegex((ValueError, TypeError), error):
                rows.batches(**options)


if __name__ == "__main__":
    unittest.main()
