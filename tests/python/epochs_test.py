"""What all loaders have in common: a `for` is an epoch, states, pickling."""

import functools
import importlib.util
import itertools
import multiprocessing
import os
import pickle
import threading
import unittest

import h5py
import melflow
import numpy as np

import corpus

has_torch = importlib.util.find_spec("torch") is not None


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


class EpochsTest(corpus.CorpusTest):
    """Each check for every kind of loader."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.yaml, cls.mel, cls.audio = cls.make("windows", **corpus.WINDOWS)
        with h5py.File(cls.mel) as file:
            cls.total = len(file["mel"])
        cls.rows = {"of a pipeline": melflow.open(cls.yaml, scan=True), "of a file": melflow.open(cls.mel),
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

    @corpus.of_each
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
            self.assertEqual(keys(loader), epoch(1), number)  # an epoch that was begun counts
            self.assertEqual(loader.epoch, 2, number)
        # An iterator without a first batch does not count.
        loader = make()
        iter(loader)
        loader.close()
        self.assertEqual(keys(loader), epoch(0))

    @corpus.of_each
    def test_a_sanity_check_of_two_batches_takes_nothing_from_evaluations(self, name, make, epoch):
        loader = make(batch_size=100)
        list(itertools.islice(loader, 2))
        for _ in range(3):
            places = sum(keys(loader), [])
            self.assertEqual(len(places), self.total)
            self.assertEqual(len(set(places)), self.total)

    @corpus.of_each
    def test_two_loaders_go_side_by_side(self, name, make, epoch):
        short, long = make(), make()
        long.set_epoch(1)
        for _ in range(2):
            pairs = list(zip(itertools.islice(short, 2), long))
            self.assertEqual(len(pairs), 2)
        self.assertEqual(keys(short), epoch(2))
        self.assertEqual(keys(long), epoch(3))

    @corpus.of_each
    def test_an_earlier_iterator_says_that_it_was_broken_off(self, name, make, epoch):
        said = "was broken off: another iterator of it has begun, .* make a second one for two at once"
        loader = make()
        seen = []
        with self.assertRaisesRegex(melflow.RunError, said):
            for _ in loader:
                seen.append(keys(loader))  # in a second `for`
        self.assertEqual(seen, [epoch(1)])
        with self.assertRaisesRegex(melflow.RunError, said):
            list(zip(loader, loader))
        for call, name in ((lambda: loader.close(), "close"), (lambda: loader.set_epoch(7), "set_epoch"),
                           (lambda: loader.load_state_dict(loader.state_dict()), "load_state_dict")):
            with self.assertRaisesRegex(melflow.RunError, rf"was broken off: {name}\(\) was called"):
                for _ in loader:
                    call()

    @corpus.of_each
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

    @corpus.of_each
    def test_several_threads_take_from_one_iterator(self, name, make, epoch):
        batches, taken = iter(make(batch_size=8)), [[] for _ in range(4)]
        threads = [threading.Thread(target=lambda to=to: to.extend(keys(batches))) for to in taken]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(sorted(sum(taken, [])), sorted(keys(make(batch_size=8))))
        # All threads get the error when the epoch is cancelled.
        loader = make(batch_size=8)
        batches = iter(loader)
        next(batches)
        loader.close()
        for _ in range(3):
            with self.assertRaisesRegex(melflow.RunError, r"was broken off: close\(\) was called"):
                next(batches)

    @corpus.of_each
    def test_a_state_goes_on_once(self, name, make, epoch):
        one = make()
        list(itertools.islice(one, 2))
        state = one.state_dict()  # after a break
        self.assertEqual(state["epoch"], 0)
        for other in (make(), one):
            for _ in range(2):  # whatever was loaded before
                other.load_state_dict(state)
            iter(other)  # nothing is taken from it
            self.assertEqual(keys(itertools.islice(other, 1)), epoch(0)[2:3])
            self.assertEqual(keys(other), epoch(1))
            other.load_state_dict(state)
            self.assertEqual(keys(other), epoch(0)[2:])
            self.assertEqual(keys(other), epoch(1))

    @corpus.of_each
    def test_a_state_of_another_order_of_samples_is_refused(self, name, make, epoch):
        loader = make()
        next(iter(loader))
        state = loader.state_dict()
        of_0_1 = {key: value for key, value in state.items() if key != "order"}
        for other, said in ((of_0_1, "melflow 0.1"), ({**state, "order": state["order"] + 1}, "another version of melflow")):
            with self.assertRaisesRegex(ValueError, rf"the state is of {said}, .* begin its epoch anew by set_epoch\(0\)"):
                loader.load_state_dict(other)
        loader.load_state_dict(state)
        self.assertEqual(keys(loader), epoch(0)[1:])

    @corpus.of_each
    def test_a_state_behind_the_last_batch_is_the_beginning_of_the_next_epoch(self, name, make, epoch):
        states, taken, last = [], [], make()
        for batch in last:
            states.append(last.state_dict())
            taken.append(key(batch))
        self.assertEqual(taken, epoch(0))  # the states took nothing from the loop
        self.assertEqual([(s["epoch"], s["delivered"] > 0) for s in states], [(0, True)] * (len(taken) - 1) + [(1, False)])
        broken_off = make()
        for i, _ in enumerate(broken_off):
            if i == len(taken) - 1:
                break
        for state in (states[-1], last.state_dict(), broken_off.state_dict()):
            other = make()
            other.load_state_dict(state)
            self.assertEqual([keys(other), keys(other)], [epoch(1), epoch(2)])
        # With the last batches dropped, too.
        short = make(batch_size=60, drop_last=True)
        expected = [keys(short), keys(short), keys(short)][1:]
        one = make(batch_size=60, drop_last=True)
        for _ in one:
            state = one.state_dict()
        other = make(batch_size=60, drop_last=True)
        other.load_state_dict(state)
        self.assertEqual([keys(other), keys(other)], expected)

    @corpus.of_each
    def test_what_is_broken_off_holds_no_threads_and_no_files(self, name, make, epoch):
        def held():
            return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

        for _ in range(2):  # for everything that is created once
            list(itertools.islice(make(batch_size=2), 1))
        before, loader = held(), make(batch_size=2)
        for _ in range(5):
            batches = iter(loader)
            next(batches)
            del batches
            files, threads = held()
            self.assertLessEqual(files, before[0])
            self.assertLessEqual(threads, before[1] + 2)  # oneTBB keeps threads

    @corpus.of_each
    def test_a_loader_is_opened_again_in_another_process(self, name, make, epoch):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            loader = make(workers=2)
            loader.set_epoch(4)
            self.assertLess(len(pickle.dumps(loader)), 2000)
            self.assertEqual(in_a_process(pool, keys, loader), epoch(4))
            # Its next `for` continues like the original's, even in the middle of an epoch.
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
        self.assertEqual(again.computed, 0)  # counts come from the index

    @corpus.of_each
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


if __name__ == "__main__":
    unittest.main()
