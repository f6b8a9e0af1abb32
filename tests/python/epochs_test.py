"""What all loaders have in common: a `for` is an epoch, states, pickling, batches by length."""

import functools
import importlib.util
import itertools
import multiprocessing
import os
import pickle
import tempfile
import threading
import unittest

import h5py
import melflow
import numpy as np

import corpus

has_torch = importlib.util.find_spec("torch") is not None
WINDOWS = dict(segment=", length: 2000, hop: 1500")
AUDIO = """  audio: {{stage: samples, from: segment, sample_rate: 8000}}
  more: {{stage: hdf5_write, from: audio, path: {path}}}
"""


def key(batch):
    return list(zip(batch["file"].tolist(), batch["offset"].tolist()))


def keys(batches):
    return [key(batch) for batch in batches]


def itself(batch):
    return batch


def in_a_process(pool, function, *arguments):
    return pool.apply_async(function, arguments).get(120)


def first_row(rows):
    row = rows[0]
    return {k: v.tobytes() for k, v in row.items()} if isinstance(row, dict) else row.tobytes()


def tones(features):
    return features(np.arange(4000, dtype=np.int16), corpus.RATE).tobytes()


def of_each(test):
    """Runs it for what kinds() of its class gives."""
    @functools.wraps(test)
    def run(self):
        for name, *what in self.kinds():
            with self.subTest(name):
                test(self, name, *what)
    return run


class Corpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.root = os.path.join(cls.folder.name, "audio")
        corpus.make_corpus(cls.root)

    @classmethod
    def make(cls, name, **case):
        """Of one corpus: a pipeline for training, and two files of rows."""
        mel, audio = (os.path.join(cls.folder.name, f"{name}_{kind}.h5") for kind in ("mel", "audio"))
        text = corpus.pipeline(cls.root, f"stage: hdf5_write, path: {mel}", **case)
        corpus.write_rows(cls.folder.name, name, text + AUDIO.format(path=audio))
        yaml = os.path.join(cls.folder.name, name + ".train.yaml")
        with open(yaml, "w", encoding="utf-8") as out:
            out.write(corpus.pipeline(cls.root, "stage: batches", **case))
        return yaml, mel, audio


class EpochsTest(Corpus):
    """Each check for every kind of loader."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.yaml, cls.mel, cls.audio = cls.make("windows", **WINDOWS)
        with h5py.File(cls.mel) as file:
            cls.total = len(file["mel"])
        cls.rows = {"of a pipeline": melflow.open(cls.yaml), "of a file": melflow.open(cls.mel),
                    "of files": melflow.open({"mel": cls.mel, "audio": cls.audio})}

    def kinds(self):
        """Of each: what makes a new one, and what its epochs have to be."""
        makers = {name: rows.batches for name, rows in self.rows.items()}
        makers["stream"] = functools.partial(melflow.Loader, self.yaml, shuffle=40)
        for name, maker in makers.items():
            make = functools.partial(maker, batch_size=64, seed=3)

            @functools.lru_cache(None)
            def epoch(number, make=make):
                loader = make()
                loader.set_epoch(number)
                return keys(loader)

            yield name, make, epoch

    @of_each
    def test_an_epoch_begins_at_its_beginning_whatever_became_of_the_last(self, name, make, epoch):
        def leave(loader):
            for _ in loader:
                break

        def leave_in_the_last(loader, batches):
            for i, _ in enumerate(loader):
                if i == batches - 1:
                    break

        def fail(loader):
            try:
                for _ in loader:
                    raise KeyError
            except KeyError:
                pass

        batches = len(epoch(0))
        self.assertGreater(batches, 3)
        ways = [leave, lambda l: leave_in_the_last(l, batches), fail, lambda l: next(iter(l)),
                lambda l: list(itertools.islice(l, 2)), lambda l: list(zip(l, range(2))),
                lambda l: list(zip(range(2), l)), lambda l: (next(iter(l)), l.close())]
        for number, way in enumerate(ways):
            loader = make()
            way(loader)
            self.assertEqual(loader.epoch, 0, number)
            self.assertEqual(keys(loader), epoch(1), number)  # one that was begun counts
            self.assertEqual(loader.epoch, 2, number)
        # What was not begun does not.
        loader = make()
        iter(loader)
        loader.close()
        self.assertEqual(keys(loader), epoch(0))

    @of_each
    def test_a_sanity_check_of_two_batches_takes_nothing_from_evaluations(self, name, make, epoch):
        loader = make(batch_size=100)
        list(itertools.islice(loader, 2))
        for _ in range(3):
            places = sum(keys(loader), [])
            self.assertEqual(len(places), self.total)
            self.assertEqual(len(set(places)), self.total)

    @of_each
    def test_two_loaders_go_side_by_side(self, name, make, epoch):
        short, long = make(), make()
        long.set_epoch(1)
        for _ in range(2):
            pairs = list(zip(itertools.islice(short, 2), long))
            self.assertEqual(len(pairs), 2)
        self.assertEqual(keys(short), epoch(2))
        self.assertEqual(keys(long), epoch(3))

    @of_each
    def test_an_earlier_iterator_says_that_it_was_broken_off(self, name, make, epoch):
        said = "was broken off: another iterator of it has begun, .* make a second one for two at once"
        loader = make()
        seen = []
        with self.assertRaisesRegex(melflow.RunError, said):
            for _ in loader:
                seen.append(keys(loader))  # by a second `for`
        self.assertEqual(seen, [epoch(1)])
        with self.assertRaisesRegex(melflow.RunError, said):
            list(zip(loader, loader))
        for call, name in ((lambda: loader.close(), "close"), (lambda: loader.set_epoch(7), "set_epoch"),
                           (lambda: loader.load_state_dict(loader.state_dict()), "load_state_dict")):
            with self.assertRaisesRegex(melflow.RunError, rf"was broken off: {name}\(\) was called"):
                for _ in loader:
                    call()

    @of_each
    def test_a_loop_in_another_thread_is_told(self, name, make, epoch):
        loader, said = make(), []
        has_begun, goes_on = threading.Event(), threading.Event()

        def loop():
            try:
                for _ in loader:
                    has_begun.set()
                    goes_on.wait(60)
            except melflow.RunError as error:
                said.append(str(error))

        thread = threading.Thread(target=loop)
        thread.start()
        self.assertTrue(has_begun.wait(60))
        loader.close()
        goes_on.set()
        thread.join(60)
        self.assertEqual(len(said), 1)
        self.assertEqual(keys(loader), epoch(1))

    @of_each
    def test_a_state_goes_on_once(self, name, make, epoch):
        one = make()
        list(itertools.islice(one, 2))
        state = one.state_dict()  # after a break
        self.assertEqual(state["epoch"], 0)
        for other in (make(), one):
            for _ in range(2):  # whatever was loaded before
                other.load_state_dict(state)
            iter(other)  # from which nothing is taken
            self.assertEqual(keys(itertools.islice(other, 1)), epoch(0)[2:3])
            self.assertEqual(keys(other), epoch(1))
            other.load_state_dict(state)
            self.assertEqual(keys(other), epoch(0)[2:])
            self.assertEqual(keys(other), epoch(1))
        # Behind the last batch nothing is left of the epoch, and the next is whole.
        last = make()
        for _ in last:
            state = last.state_dict()
        other = make()
        other.load_state_dict(state)
        self.assertEqual([keys(other), keys(other)], [[], epoch(1)])

    @of_each
    def test_what_is_broken_off_holds_no_threads_and_no_files(self, name, make, epoch):
        def held():
            return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

        for _ in range(2):  # what is made once is there
            list(itertools.islice(make(batch_size=2), 1))
        before, loader = held(), make(batch_size=2)
        for _ in range(5):
            batches = iter(loader)
            next(batches)
            del batches
            files, threads = held()
            self.assertLessEqual(files, before[0])
            self.assertLessEqual(threads, before[1] + 2)  # oneTBB keeps threads

    @of_each
    def test_a_loader_is_opened_again_in_another_process(self, name, make, epoch):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            loader = make(workers=2)
            loader.set_epoch(4)
            self.assertLess(len(pickle.dumps(loader)), 2000)
            self.assertEqual(in_a_process(pool, keys, loader), epoch(4))
            # Its next `for` is that of the original, in the middle of an epoch, too.
            batches = iter(loader)
            next(batches)
            self.assertEqual(in_a_process(pool, keys, loader), epoch(5))
            self.assertEqual(key(next(batches)), epoch(4)[1])
            loader.load_state_dict(loader.state_dict())
            self.assertEqual(in_a_process(pool, keys, loader), epoch(4)[2:])

    def test_rows_and_features_are_opened_again_in_another_process(self):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            for name, rows in self.rows.items():
                with self.subTest(name):
                    self.assertLess(len(pickle.dumps(rows)), 1000)
                    self.assertEqual(in_a_process(pool, first_row, rows), first_row(rows))
            features = melflow.Features(self.yaml, sets={"rows.n_mels": 8})
            self.assertEqual(in_a_process(pool, tones, features), tones(features))
        again = pickle.loads(pickle.dumps(self.rows["of a pipeline"]))
        self.assertEqual(again.computed, 0)  # by the index

    @of_each
    @unittest.skipUnless(has_torch, "torch is not installed")
    def test_torch_iterates_over_batches(self, name, make, epoch):
        from torch.utils.data import DataLoader
        loader = make()
        dataset = loader.as_torch()
        if name == "stream":
            self.assertRaises(TypeError, len, dataset)
        else:
            self.assertEqual(len(dataset), len(epoch(0)))
            self.assertEqual(len(DataLoader(dataset, batch_size=None)), len(epoch(0)))
        self.assertEqual(keys(DataLoader(dataset, batch_size=None, collate_fn=itself)), epoch(0))
        self.assertEqual(keys(pickle.loads(pickle.dumps(dataset))), epoch(1))
        with self.assertRaisesRegex(RuntimeError, "without worker processes"):
            next(iter(DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="spawn")))

    @unittest.skipUnless(has_torch, "torch is not installed")
    def test_worker_processes_of_torch_take_rows(self):
        from torch.utils.data import DataLoader
        expected = self.rows["of a file"][:]
        for name, rows in self.rows.items():
            with self.subTest(name):
                loaded = DataLoader(rows, batch_size=50, num_workers=2, multiprocessing_context="spawn")
                self.assertEqual(len(loaded), -(-self.total // 50))
                batches = [batch["mel"] if isinstance(batch, dict) else batch for batch in loaded]
                np.testing.assert_array_equal(np.concatenate([b.numpy() for b in batches]), expected)


class BatchesByLengthTest(Corpus):
    """`bucket` and `max_rows`, of the stream and by number."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.yaml, cls.mel, cls.audio = cls.make("whole")
        cls.rows = melflow.open(cls.mel)
        cls.taken = np.flatnonzero(cls.rows.count > 0).tolist()

    def kinds(self):
        both = melflow.open({"mel": self.mel, "audio": self.audio})
        by_pipeline = melflow.open(self.yaml)
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

    @of_each
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

    @of_each
    def test_what_is_dropped_may_have_any_length(self, name, make):
        by_length = [f for f in np.argsort(self.rows.count, kind="stable").tolist() if f in self.taken]
        loader = make(batch_size=9, bucket=1024, drop_last=True, seed=1)
        dropped = [set(self.taken) - set(sum(epoch, [])) for epoch in self.epochs(loader, 8)]
        self.assertEqual({len(files) for files in dropped}, {len(self.taken) % 9})
        middles = [np.mean([by_length.index(f) for f in files]) for files in dropped]
        self.assertLess(min(middles), len(self.taken) / 2)
        self.assertGreater(max(middles), len(self.taken) / 2)
        self.assertGreater(len(set(middles)), 3)

    @of_each
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
                if "bucket" not in options:  # each takes what it can
                    for files, following in zip(epoch, epoch[1:]):
                        self.assertGreater((len(files) + 1) * max(count[files + following[:1]]), 2500)

    @of_each
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
            with self.assertRaisesRegex(ValueError, "the state is of other|the state is of another"):
                make(**options, bucket=21).load_state_dict(one.state_dict())
            larger = make(**options | {"batch_size": 7}, **more)
            if "bucket" in more:
                with self.assertRaisesRegex(ValueError, "with bucket also"):
                    larger.load_state_dict(one.state_dict())
            else:  # the same samples follow
                larger.load_state_dict(one.state_dict())
                self.assertEqual(sum(self.epochs(larger)[0], []), sum(whole[stop:], []))

    @of_each
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
                self.assertEqual(len(files), len(set(files)))
                self.assertGreater(len(files) + ranks, len(self.taken))
                for batch in sum(parts, []):
                    self.assertTrue(1 <= len(batch) <= 4)
                    if "max_rows" in more:
                        self.assertTrue(len(batch) == 1 or len(batch) * max(count[batch]) <= 2500)
                if more == dict(bucket=24):  # together they are one with a larger batch
                    one, = self.epochs(make(batch_size=4 * ranks, seed=4, bucket=24))
                    self.assertEqual([sum(step, []) for step in zip(*parts)], one[:len(parts[0])])

    def test_without_shuffling_nothing_is_drawn(self):
        loader = self.rows.batches(6, bucket=1024, shuffle=False)
        one, two = self.epochs(loader, 2)
        self.assertEqual(one, two)
        lengths = [self.rows.count[f] for f in sum(one, [])]
        self.assertEqual(lengths, sorted(lengths))

    def test_a_recording_in_the_place_of_a_lost_one_is_no_longer_than_the_batch_allows(self):
        rows = melflow.open(self.yaml, store=0, index=False)
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
        yaml, mel, _ = self.make("cut", **WINDOWS)
        for option in ("bucket", "max_rows"):
            with self.assertRaisesRegex(ValueError, f"{option} is for whole recordings"):
                melflow.open(mel).batches(8, **{option: 16})
            with self.assertRaisesRegex(melflow.ConfigError, f"{option}: is for whole recordings"):
                melflow.Loader(yaml, **{option: 16})


if __name__ == "__main__":
    unittest.main()
