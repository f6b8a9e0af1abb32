"""melflow.join, Mix and batches(mix=...)."""

import itertools
import os
import pickle
import shutil
import unittest
import warnings

import melflow
import numpy as np
from melflow._melflow import mixed_order

import corpus

NONE = np.zeros(0, np.int64)


def mixed(weights, sizes, lengths=NONE, end="first", count=0, repeat=True, seed=1, epoch=0):
    """The order of sources with so many samples each, and of which source each place is."""
    ends = np.cumsum(sizes)
    sources = [{"samples": np.arange(end - size, end), "weight": float(w)} for w, size, end in zip(weights, sizes, ends) if w > 0]
    samples, ended = mixed_order(sources, lengths, end, count, repeat, True, seed, epoch)
    return samples, np.searchsorted(ends, samples, side="right"), ended


class OrderTest(unittest.TestCase):
    def test_each_source_has_its_share_at_every_place(self):
        random = np.random.default_rng(5)
        for case in range(60):
            count = int(random.integers(2, 51))
            weights = (random.random(count) + 1e-6, 10.0 ** random.uniform(-4, 0, count), random.integers(1, 6, count), np.ones(count))[case % 4]
            sizes = random.integers(1, 60, count)
            steps = 100_000 if case < 4 else 3000
            lengths = random.integers(1, 3000, sizes.sum()) if case % 2 else NONE
            samples, sources, _ = mixed(weights, sizes, lengths, "count", steps)
            self.assertEqual(len(samples), steps)
            amounts = lengths[samples].astype(float) if case % 2 else np.ones(steps)
            passed = np.cumsum(amounts)
            for i, share in enumerate(weights / weights.sum()):
                had = np.cumsum(np.where(sources == i, amounts, 0))
                self.assertLessEqual(np.abs(had - share * passed).max(), (lengths.max() if case % 2 else 1) + 1e-6, (case, i))

    def test_a_pass_has_each_sample_once_and_the_next_one_another_order(self):
        samples, sources, _ = mixed([3, 1], [50, 40], end="count", count=1000)
        of_first = samples[sources == 0]
        passes = [of_first[i:i + 50].tolist() for i in range(0, 750, 50)]
        self.assertTrue(all(sorted(p) == list(range(50)) for p in passes))
        self.assertEqual(len(set(map(tuple, passes))), 15)
        self.assertNotEqual(passes[0], mixed([3, 1], [50, 40], epoch=1)[0][:50].tolist())

    def test_ends(self):
        samples, sources, ended = mixed([1, 1, 2], [10, 30, 100])
        self.assertEqual((sources == 0).sum(), 10)
        self.assertEqual(ended.tolist(), [len(samples), 0, 0])
        self.assertEqual(sources[-1], 0)
        samples, sources, ended = mixed([1, 1, 2], [10, 30, 100], end="last")
        self.assertEqual(set(samples.tolist()), set(range(140)))
        self.assertEqual(np.bincount(sources).tolist()[2], 100)
        self.assertEqual(max(ended), len(samples))
        samples, sources, ended = mixed([1, 1, 2], [10, 30, 100], end="last", repeat=False)
        self.assertEqual(sorted(samples.tolist()), list(range(140)))
        for i, size in enumerate((10, 30, 100)):  # where it says that a source ends, that has come
            self.assertEqual((sources[:ended[i]] == i).sum(), size)
            self.assertEqual(sources[int(ended[i]) - 1], i)
        after = sources[ended[0]:ended[1]]  # the others go on with their weights
        self.assertTrue(np.abs(np.cumsum(after == 1) - np.arange(1, len(after) + 1) / 3).max() <= 1)


class MixTest(unittest.TestCase):
    sizes = {"a": 100.0, "b": 25.0, "c": 400.0}

    def test_weights_are_flattened(self):
        for weights, options, shares in (
                ({"a": 2, "b": 1, "c": 1}, {}, (0.5, 0.25, 0.25)), ({"a": "size", "b": "size", "c": 0}, {}, (0.8, 0.2, 0)),
                ({"a": "size", "b": "size", "c": "size"}, dict(power=0.5), (10 / 35, 5 / 35, 20 / 35)),
                ({"x": (3, {"a": 1, "b": 1}), "c": 1}, {}, (3 / 8, 3 / 8, 1 / 4)), ({"x": ("size", {"a": 1, "b": 4}), "c": "size"}, {}, (125 / 525 / 5, 4 * 125 / 525 / 5, 400 / 525)),
                ({"x": (1, {"a": 1, "y": (1, {"b": 3, "c": 1})})}, {}, (1 / 2, 3 / 8, 1 / 8)), ({0: {"a": 1, "b": 1, "c": 2}, 2: {"a": 1, "b": 0, "c": 0}}, {}, (0.25, 0.25, 0.5)),
                (lambda epoch: {"a": 1 + epoch, "b": 1, "c": 0}, {}, (0.5, 0.5, 0))):
            found = melflow.Mix(weights, **options).shares(0, self.sizes)
            np.testing.assert_allclose([found[name] for name in "abc"], shares, rtol=1e-12)
        self.assertEqual(melflow.Mix({0: {"a": 1, "b": 1, "c": 1}, 2: {"a": 1, "b": 0, "c": 0}}).shares(7, self.sizes)["b"], 0)

    def test_what_is_wrong_is_named(self):
        for weights, error in (({"a": 1, "b": 1}, "no weight is given for the source 'c'; give 0"), ({"a": 1, "b": 1, "cc": 1}, "there is no source 'cc'. Did you mean 'c'"),
                               ({"a": 1, "b": -1, "c": 1}, 'b: a weight is a number of 0 or more, "size", or a pair'), ({"a": 0, "b": 0, "c": 0}, "all weights are 0"),
                               ({"x": (1, {"a": 0, "b": 0}), "c": 1}, "x: all weights are 0"), ({"a": 1, "b": float("nan"), "c": 1}, "b: a weight is"),
                               ({"a": 1, "b": True, "c": 1}, "b: a weight is"), ({"x": (1, {"a": 1, "b": 1}), "a": 1, "c": 1}, "a: has two weights"),
                               ({"x": (1, {}), "a": 1, "b": 1, "c": 1}, "x: weights are a dict")):
            with self.assertRaisesRegex((ValueError, TypeError), error):
                melflow.Mix(weights).shares(0, self.sizes)
        for options, error in ((dict(unit="hours"), "unit is samples or seconds"), (dict(power=-1), "power is a number from 0"), (dict(ends="middle"), "ends is first, last or a number"),
                               (dict(ends=0), "ends .* is 1 or more"), (dict(repeat=1), "repeat is True or False")):
            with self.assertRaisesRegex((ValueError, TypeError), error):
                melflow.Mix({"a": 1}, **options)
        for weights, error in (({}, "weights are a dict"), (3, "weights are a dict"), ({1: {"a": 1}}, "begin with epoch 0, not 1")):
            with self.assertRaisesRegex((ValueError, TypeError), error):
                melflow.Mix(weights)


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) if isinstance(a[k], np.ndarray) else a[k] == b[k] for k in a)


class MixedBatchesTest(corpus.CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.yaml, cls.mel, cls.audio = cls.make("whole")
        cls.cut, cls.windows, _ = cls.make("cut", **corpus.WINDOWS)
        other = os.path.join(cls.folder.name, "other")
        corpus.make_corpus(other, 40)
        os.rename(os.path.join(other, "ant"), os.path.join(other, "dog"))
        cls.root, earlier = other, cls.root
        cls.other_yaml, cls.other_mel, _ = cls.make("other")
        cls.root = earlier

    def of_files(self):
        return melflow.join({"one": self.mel, "two": self.other_mel})

    def of_audio(self, **options):
        return melflow.join({"one": melflow.open(self.yaml, scan=True, **options), "two": melflow.open(self.other_yaml, scan=True, **options)})

    def kinds(self):
        yield "files", self.of_files()
        yield "audio", self.of_audio()

    @corpus.of_each
    def test_joined_rows_are_those_of_each(self, name, rows):
        parts = [melflow.open(self.mel), melflow.open(self.other_mel)]
        self.assertEqual(len(rows), sum(map(len, parts)))
        self.assertEqual(rows.path, parts[0].path + parts[1].path)
        self.assertEqual(set(rows.label_names), {"ant", "bee", "cat", "dog"})
        for i in range(len(rows.path)):
            part, k = (parts[0], i) if i < len(parts[0].path) else (parts[1], i - len(parts[0].path))
            np.testing.assert_array_equal(rows.recording(i), part.recording(k))
            self.assertEqual(rows.label_names[rows.label[i]], part.label_names[part.label[k]])
        at = len(parts[0]) - 3
        np.testing.assert_array_equal(rows[at:at + 6], np.concatenate([parts[0][at:], parts[1][:3]]))
        for batch in rows.batches(7, seed=2):
            for i, source in enumerate(batch["source"]):
                self.assertEqual(source, "one" if batch["file"][i] < len(parts[0].path) else "two")
                np.testing.assert_array_equal(batch["mel"][i, :batch["length"][i]], rows.recording(batch["file"][i]))
        self.assertEqual({s for b in rows.batches(7, where={"source": "two"}) for s in b["source"]}, {"two"})

    CASES = (dict(batch_size=4), dict(batch_size=4, bucket=16), dict(max_seconds=12, bucket=16), dict(max_seconds=12), dict(max_seconds=12, pack=True, bucket=20))

    @corpus.of_each
    def test_batches_are_the_same_with_any_workers(self, name, rows):
        mixes = melflow.Mix({"one": 0.7, "two": 0.3}, ends=90), melflow.Mix({"one": 0.25, "two": 0.75}, unit="seconds", ends="last")
        for (case, options), mix in itertools.product(enumerate(self.CASES), mixes):
            epochs = [[b for _ in range(2) for b in rows.batches(seed=3, mix=mix, workers=workers, **options)] for workers in (1, 2, 7)]
            for other in epochs[1:]:
                self.assertEqual(len(epochs[0]), len(other), case)
                self.assertTrue(all(map(same, epochs[0], other)), case)

    @corpus.of_each
    def test_a_state_goes_on_at_any_batch(self, name, rows):
        random = np.random.default_rng(2)
        for options in self.CASES:
            mix = melflow.Mix({0: {"one": 3, "two": 1}, 1: {"one": 1, "two": 3}}, ends="last")
            loader = rows.batches(seed=3, mix=mix, **options)
            whole = [list(loader) for _ in range(2)]
            for _ in range(10):
                epoch = int(random.integers(2))
                stop = int(random.integers(1, len(whole[epoch])))
                one = rows.batches(seed=3, mix=mix, workers=2, **options)
                one.set_epoch(epoch)
                for batch in itertools.islice(one, stop):
                    pass
                other = rows.batches(seed=3, mix=mix, workers=int(random.choice([1, 7])), **options)
                other.load_state_dict(one.state_dict())
                left = list(other)
                self.assertEqual(len(left), len(whole[epoch]) - stop)
                self.assertTrue(all(map(same, left, whole[epoch][stop:])))

    @corpus.of_each
    def test_ranks_together_are_one(self, name, rows):
        for options in self.CASES:
            options = {"seed": 3, "mix": melflow.Mix({"one": 2, "two": 1}, ends="last"), **options}
            if "bucket" in options:
                options["groups"] = 4
            one = [b["file"].tolist() for b in rows.batches(**options)]
            for ranks in (2, 4):
                loaders = [rows.batches(rank=r, world_size=ranks, **options) for r in range(ranks)]
                self.assertEqual({len(of) for of in loaders}, {len(loaders[0])})
                steps = list(zip(*([b["file"].tolist() for b in of] for of in loaders)))
                together = [batch for step in steps for batch in step]
                if "groups" in options:
                    self.assertEqual(together, one)
                else:
                    flat, all_of = sum(together, []), sum(one, [])
                    self.assertEqual(set(flat), set(all_of))
                    self.assertEqual(flat[:len(all_of) - 4 * ranks], all_of[:len(all_of) - 4 * ranks] if "max_seconds" not in options else flat[:len(all_of) - 4 * ranks])

    def test_the_report_has_shares(self):
        rows = self.of_files()
        loader = rows.batches(5, mix=melflow.Mix({"one": 0.7, "two": 0.3}, ends=200), seed=1)
        self.assertIsNone(loader.report)
        came = [s for batch in loader for s in batch["source"]]
        report = loader.report
        self.assertEqual(report["samples"], 200)
        self.assertEqual(report["waits"]["batches"], 40)
        for name, asked in (("one", 0.7), ("two", 0.3)):
            of = report["mix"][name]
            self.assertAlmostEqual(of["asked"], asked)
            self.assertEqual(of["samples"], came.count(name))
            self.assertLessEqual(abs(of["samples"] - 200 * asked), 1)
            self.assertEqual(of["reached"], came.count(name) / 200)
        there = (melflow.open(self.mel).count > 0).sum()
        self.assertEqual(report["mix"]["one"]["passes"], report["mix"]["one"]["samples"] / there)
        self.assertEqual({k: v for k, v in report.items() if k != "waits"}, loader.preview(0))
        ended = rows.batches(5, mix=melflow.Mix({"one": 1, "two": 1}, ends="last", repeat=False)).preview()["mix"]
        self.assertEqual(ended["two"]["passes"], 1)
        self.assertLess(ended["two"]["ended_after"], ended["one"]["ended_after"])
        seconds = rows.batches(5, mix=melflow.Mix({"one": 1, "two": 3}, unit="seconds", ends="last")).preview()["mix"]
        self.assertAlmostEqual(seconds["two"]["reached"], 0.75, delta=60 / sum(of["seconds"] for of in seconds.values()))

    def test_the_weight_0_leaves_a_source_out(self):
        loader = self.of_files().batches(5, mix={"one": 1, "two": 0})
        self.assertEqual({s for batch in loader for s in batch["source"]}, {"one"})
        self.assertEqual(loader.report["mix"]["two"], {"asked": 0.0, "reached": 0.0, "samples": 0, "passes": 0.0, "ended_after": None, "seconds": 0.0})

    def test_labels_and_windows_are_mixed(self):
        for rows in (melflow.open(self.windows), melflow.open(self.cut, scan=True, store="64KiB")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loader = rows.batches(16, mix=melflow.Mix({"ant": 1, "bee": 2, "cat": 1}, column="label"), seed=1)
                labels = np.concatenate([batch["label"] for batch in loader])
            for i, share in enumerate((0.25, 0.5, 0.25)):
                self.assertLessEqual(np.abs(np.cumsum(labels == i) - share * np.arange(1, len(labels) + 1)).max(), 1)

    def test_weights_change_between_epochs(self):
        rows = self.of_files()
        loader = rows.batches(5, mix=melflow.Mix({"one": 1, "two": 1}, ends=100))
        list(loader)
        loader.set_mix(melflow.Mix({"one": 1, "two": 4}, ends=100))
        self.assertEqual(loader.report["mix"]["two"]["samples"], 50)
        for batch in loader:
            with self.assertRaisesRegex(melflow.RunError, "set_mix: epoch 1 is under way"):
                loader.set_mix({"one": 1, "two": 1})
            break
        state = loader.state_dict()
        with self.assertRaisesRegex(ValueError, "shares is {'one': 0.2, 'two': 0.8} in the state and {'one': 0.5, 'two': 0.5} here"):
            rows.batches(5, mix=melflow.Mix({"one": 1, "two": 1}, ends=100)).load_state_dict(state)
        with self.assertRaisesRegex(ValueError, "mix is 'samples by source, ends 100, repeats' in the state and 'samples by source, ends first, repeats' here"):
            rows.batches(5, mix={"one": 1, "two": 4}).load_state_dict(state)
        loader.load_state_dict(state)
        with self.assertRaisesRegex(melflow.RunError, "set_mix: epoch 1 is under way"):
            loader.set_mix({"one": 1, "two": 1})
        self.assertEqual(len(list(loader)), 19)
        self.assertEqual(loader.report["mix"]["two"]["samples"], 80)
        with self.assertRaisesRegex(ValueError, "there is no source 'tow'. Did you mean 'two'"):
            loader.set_mix({"one": 1, "tow": 1})
        self.assertEqual(len(loader), 20)  # it is as it was
        with self.assertRaisesRegex(ValueError, "set_mix: is for batches"):
            rows.batches(5).set_mix({"one": 1})

    def test_a_source_without_samples_is_named(self):
        rows = melflow.join({"one": self.mel, "two": self.other_mel})
        with self.assertRaisesRegex(ValueError, "mix: two has no samples: none of its 40 recordings is in what `split` and `where` take"):
            rows.batches(5, mix={"one": 1, "two": 1}, where={"label": "ant"})
        damaged = os.path.join(self.folder.name, "damaged")
        os.makedirs(os.path.join(damaged, "bad"))
        for i in range(3):
            with open(os.path.join(damaged, "bad", f"{i}.wav"), "wb") as out:
                out.write(b"RIFFxxxx")
        shutil.copytree(os.path.join(self.root, "ant"), os.path.join(damaged, "good"))
        text = corpus.pipeline(damaged, "stage: batches", files="")
        with self.assertRaisesRegex(ValueError, r"mix: bad has no samples: all of its 3 recordings gave no rows; the first: bad/0.wav: decode: "):
            melflow.open(text, scan=True).batches(5, mix=melflow.Mix({"bad": 1, "good": 1}, column="label"))
        only = corpus.pipeline(os.path.join(damaged, "bad"), "stage: batches", files="").replace("labels: top_dir", "labels: none")
        with self.assertRaisesRegex(melflow.RunError, r"join: two: no recording gave rows; the first: 0.wav: decode"):
            melflow.join({"one": self.mel, "two": only})

    def test_lost_recordings_are_replaced_by_others_of_their_source(self):
        gone = os.path.join(self.folder.name, "gone")
        shutil.copytree(self.root, gone)
        text = corpus.pipeline(gone, "stage: batches", files="")
        rows = melflow.open(text, store=0)
        for i, path in enumerate(rows.path):
            if path.startswith("bee/") and i % 2:
                os.unlink(os.path.join(gone, path))
        mix = melflow.Mix({"ant": 1, "bee": 1, "cat": 1}, column="label", ends=60)
        whole = [rows.label_names[k] for batch in melflow.open(self.mel).batches(6, mix=mix, seed=1) for k in batch["label"]]
        labels = [rows.label_names[k] for batch in rows.batches(6, mix=mix, seed=1) for k in batch["label"]]
        self.assertEqual(labels.count("bee"), whole.count("bee"))
        for path in rows.path:
            if path.startswith("bee/") and os.path.exists(os.path.join(gone, path)):
                os.unlink(os.path.join(gone, path))
        with self.assertRaisesRegex(melflow.RunError, "101 samples one after the other of the source bee cannot be read any more; the last one: bee/"):
            list(rows.batches(6, mix=mix, seed=1))

    def test_what_cannot_be_joined_is_named(self):
        for sources, error in (({"one": self.mel, "two": self.audio}, "join: the rows of one is 'mel', and of two 'waveform'"),
                               ({"one": self.mel, "two": self.windows}, "join: the shape of a row of one is .*, and of two "),
                               ({"one": melflow.open({"a": self.mel})}, "join: one: is RowSets"), ({"": self.mel}, "the name of a source is a text"),
                               ({}, "sources come by name"), (["a"], "sources come by name"), ({"one": melflow.join({"x": self.mel})}, "a column called source")):
            with self.assertRaisesRegex((ValueError, TypeError), error):
                melflow.join(sources)
        rows = self.of_files()
        for options, error in ((dict(mix=melflow.Mix({"x": 1}, column="speaker")), "recordings have no single speaker, which column names; it is one of: label, source"),
                               (dict(mix=melflow.Mix({"one": 1, "two": 1}, ends=1000, repeat=False)), "ends after 1000 samples, and without repetition there are"),
                               (dict(mix=melflow.Mix({"one": 1, "two": 1e-12}, ends="last")), "an epoch would have some .* samples, more than .* until two, whose share is 1e-12")):
            with self.assertRaisesRegex(ValueError, error):
                rows.batches(5, **options)

    def test_joined_rows_are_normalized_by_source_and_pickled(self):
        files = {}
        for name, root in (("one", self.root), ("two", os.path.join(self.folder.name, "other"))):
            files[name] = corpus.write_rows(self.folder.name, "stat_" + name, corpus.pipeline(
                root, f"stage: hdf5_write, statistics: all, path: {os.path.join(self.folder.name, 'stat_' + name)}.h5"))
        rows = pickle.loads(pickle.dumps(melflow.join(files)))
        for batch in rows.batches(8, normalize=True):
            for i, source in enumerate(batch["source"]):
                of = rows.sources[source]
                np.testing.assert_allclose(batch["mel"][i, :batch["length"][i]], (rows.recording(batch["file"][i]) - of.mean) / of.std, atol=1e-4)
        loader = pickle.loads(pickle.dumps(rows.batches(8, mix={"one": 1, "two": 2}, seed=3)))
        self.assertTrue(all(map(same, loader, rows.batches(8, mix={"one": 1, "two": 2}, seed=3))))


if __name__ == "__main__":
    unittest.main()
