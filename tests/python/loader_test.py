"""melflow.Loader beside the rows that the program writes for the same pipeline."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import warnings
import wave

import h5py
import melflow
import numpy as np

import corpus


def key(batch):
    return list(zip(batch["file"].tolist(), batch["offset"].tolist()))


def in_a_child(text):
    try:
        next(iter(melflow.Loader(text)))
        return "a batch"
    except melflow.RunError as error:
        return str(error)


class LoaderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = os.path.join(cls.folder.name, "audio")
        corpus.make_corpus(cls.root)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def text(self, sink="stage: batches", **options):
        return corpus.pipeline(self.root, sink, **options)

    def rows(self, name, **options):
        out = os.path.join(self.folder.name, name + ".h5")
        text = self.text(f"stage: hdf5_write, path: {out}, overwrite: true", **options)
        return corpus.write_rows(self.folder.name, name, text)

    def test_recordings_are_those_of_a_file(self):
        with h5py.File(self.rows("whole")) as file:
            rows, offset, count = file["mel"][:], file["files/offset"][:], file["files/count"][:]
            labels, names = file["files/label"][:], file["labels/name"].asstr()[:]
            paths = file["files/path"].asstr()[:]
            fingerprint = file.attrs["feature_fingerprint"]
        loader = melflow.Loader(self.text(), batch_size=8)
        seen = []
        for batch in loader:
            self.assertLessEqual(len(batch["path"]), 8)
            self.assertEqual(batch["mel"].shape, (len(batch["path"]), batch["length"].max(), 20))
            self.assertEqual(batch["mel"].ctypes.data % 64, 0)
            for i, f in enumerate(batch["file"]):
                n = batch["length"][i]
                np.testing.assert_array_equal(batch["mel"][i, :n], rows[offset[f]:offset[f] + count[f]])
                self.assertTrue((batch["mel"][i, n:] == 0).all())
                self.assertEqual(batch["path"][i], paths[f])
                self.assertEqual(loader.label_names[batch["label"][i]], names[labels[f]])
            seen += batch["file"].tolist()
        self.assertEqual(seen, np.flatnonzero(count > 0).tolist())
        self.assertEqual(loader.report["files"]["failed"], 4)
        self.assertEqual(loader.report["files"]["skipped"], 1)
        self.assertEqual(len(loader.report["remarks"]), 5)
        self.assertEqual(melflow.Features(self.text()).fingerprint, fingerprint)

    def test_windows_are_those_of_a_file(self):
        segment = ", length: 2000, hop: 1500"
        with h5py.File(self.rows("windows", segment=segment)) as file:
            rows = file["mel"][:]
        batches = list(melflow.Loader(self.text(segment=segment), batch_size=7))
        np.testing.assert_array_equal(np.concatenate([b["mel"] for b in batches]), rows)
        self.assertTrue(all(len(b["mel"]) == 7 for b in batches[:-1]))
        self.assertEqual([len(b["mel"]) for b in melflow.Loader(self.text(segment=segment), batch_size=7, drop_last=True)],
                         [7] * (len(rows) // 7))
        with self.assertRaisesRegex(melflow.RunError, "drop_last: an epoch has fewer samples than a batch of 2000"):
            list(melflow.Loader(self.text(segment=segment), batch_size=2000, drop_last=True))

    def test_samples(self):
        segment = ", length: 3000"
        with h5py.File(self.rows("samples", segment=segment, chain=corpus.SAMPLES)) as file:
            rows = file["windows"][:]
        text = self.text(segment=segment, chain=corpus.SAMPLES)
        for dtype, factor in (("float32", 1), ("int16", 32768)):
            got = np.concatenate([b["windows"] for b in melflow.Loader(text, dtype=dtype)])
            self.assertEqual(got.dtype, dtype)
            np.testing.assert_array_equal(got, rows * factor)
        half = next(iter(melflow.Loader(text, dtype="bfloat16", batch_size=3)))["windows"]
        self.assertTrue(hasattr(half, "__dlpack__"))

    def test_several_kinds_of_rows_are_those_of_loaders_of_each(self):
        chain = corpus.MEL.replace("rows:", "mel:") + corpus.SAMPLES.replace("rows:", "audio:")
        for segment, audio in (("", "waveform"), (", length: 2000, hop: 700", "windows")):
            text = corpus.pipeline(self.root, "stage: batches", segment=segment, chain=chain).replace("from: rows", "from: [mel, audio]")
            options = dict(batch_size=6, shuffle=20, seed=4)
            alone = [list(melflow.Loader(self.text(segment=segment, chain=c), **options)) for c in (corpus.MEL, corpus.SAMPLES)]
            for workers in (1, 2, 7):
                loader = melflow.Loader(text, workers=workers, **options)
                batches = list(loader)
                self.assertEqual(len(batches), len(alone[0]))
                self.assertEqual(loader.report["files"]["ok"], 52 if segment else 55)  # three are shorter than a window
                for both, mel, samples in zip(batches, *alone):
                    self.assertEqual(key(both), key(mel))
                    self.assertEqual(key(both), key(samples))
                    np.testing.assert_array_equal(both["mel"], mel["mel"])
                    np.testing.assert_array_equal(both[audio], samples[audio])
                    if not segment:
                        np.testing.assert_array_equal(both["mel_length"], mel["length"])
                        np.testing.assert_array_equal(both["waveform_length"], samples["length"])
                    self.assertNotIn("length", both)
        named = next(iter(melflow.Loader(text, sets={"out.names": "[features, audio]"})))
        self.assertEqual(named["features"].shape[:1], named["audio"].shape[:1])
        with self.assertRaisesRegex(melflow.RunError, "several outputs or inputs"):
            melflow.open(text)

    def test_the_order_depends_on_seed_and_epoch_alone(self):
        def order(**options):
            epoch = options.pop("epoch", 0)
            loader = melflow.Loader(self.text(segment=", length: 2000"), batch_size=16, **options)
            loader.set_epoch(epoch)
            return [(key(b), b["mel"].tobytes()) for b in loader]

        first = order(shuffle=50, seed=3, workers=1)
        plain = order()
        for workers in (2, 7):
            self.assertEqual(order(shuffle=50, seed=3, workers=workers), first)
        others = [order(shuffle=50, seed=4), order(shuffle=50, seed=3, epoch=1), order(shuffle=7, seed=3), plain]
        for i, other in enumerate(others):
            self.assertNotEqual(other, first)
            self.assertEqual(sorted(sum((k for k, _ in other), [])), sorted(sum((k for k, _ in first), [])), i)
            self.assertTrue(all(other != o for o in others[:i]))

    def test_recordings_are_shuffled(self):
        listed = sum((b["file"].tolist() for b in melflow.Loader(self.text())), [])
        for options in (dict(seed=1), dict(shuffle_recordings=True), dict(shuffle_recordings=True, workers=5)):
            loader = melflow.Loader(self.text(), **options)
            files, labels = [], []
            for batch in loader:
                files += batch["file"].tolist()
                labels += [loader.label_names[i] == path.split("/")[0] for i, path in zip(batch["label"], batch["path"])]
            self.assertEqual(sorted(files), listed)
            self.assertNotEqual(files, listed)
            self.assertTrue(all(labels))
        self.assertEqual(sum((b["file"].tolist() for b in melflow.Loader(self.text(), seed=1, shuffle_recordings=False)), []),
                         listed)

    def test_epochs_follow_each_other(self):
        loader = melflow.Loader(self.text(), shuffle=10, seed=1)
        first, second = [[key(b) for b in loader] for _ in range(2)]
        self.assertNotEqual(first, second)
        self.assertEqual(loader.epoch, 2)
        loader.set_epoch(0)
        self.assertEqual([key(b) for b in loader], first)

    def test_a_state_goes_on_with_the_same_samples(self):
        def loader(workers=2):
            return melflow.Loader(self.text(segment=", length: 2000"), batch_size=5, shuffle=30, seed=9, workers=workers)

        whole = [(key(b), b["mel"].tobytes()) for b in loader()]
        for stop in (0, 1, 2, 11, len(whole) - 1):
            one = loader()
            batches = iter(one)
            for _ in range(stop):
                next(batches)
            state = json.loads(json.dumps(one.state_dict()))
            self.assertLess(len(json.dumps(state)), 600)
            batches.close()
            other = loader(workers=1)
            other.load_state_dict(state)
            self.assertEqual([(key(b), b["mel"].tobytes()) for b in other], whole[stop:])
            self.assertEqual(other.epoch, 1)
        with self.assertRaisesRegex(ValueError, "lacks epoch"):
            loader().load_state_dict({})
        for options, said in ((dict(seed=8), "seed is '9' in the state and '8' here"), (dict(split="val"), "split is None in .* 'val' here"),
                              (dict(shuffle=40), "shuffle is '30' in the state and '40' here"), (dict(rank=0, world_size=2), "world_size is 1 "),
                              (dict(sets={"rows.n_mels": 8}), "sets is another")):
            other = melflow.Loader(self.text(segment=", length: 2000"), **(dict(batch_size=5, shuffle=30, seed=9) | options))
            with self.assertRaisesRegex(ValueError, f"the state is of another Loader, so other samples would follow: {said}"):
                other.load_state_dict(state)

    def test_a_state_says_which_of_its_variables_is_another(self):
        text = self.text().replace("n_mels: 20", 'n_mels: "${BANDS}"').replace("hop: 80", 'hop: "${B}"')
        def loader(**given):
            return melflow.Loader(text, **({"vars": {"BANDS": 20, "B": 80}, "sets": {"rows.fmin": 20}} | given))

        state = json.loads(json.dumps(loader().state_dict()))
        for given, said in (({"vars": {"BANDS": 21, "B": 80}}, r"vars\['BANDS'\] is not as in the state"),
                            ({"vars": {"BANDS": 20, "B": 40}}, r"vars\['B'\] is not as in the state"),
                            ({"vars": {"BANDS": 21, "B": 40}}, r"vars\['BANDS'\], vars\['B'\] are not as in the state"),
                            ({"sets": {"rows.fmin": 40}}, r"sets\['rows.fmin'\] is not as in the state")):
            with self.subTest(given), self.assertRaisesRegex(ValueError, f"would follow: {said}. Make it"):
                loader(**given).load_state_dict(state)
        # A state of an earlier version has no digests of each.
        older = {key: value for key, value in state["loader"].items() if "." not in key}
        loader().load_state_dict({**state, "loader": older})
        with self.assertRaisesRegex(ValueError, "would follow: vars is another"):
            loader(vars={"BANDS": 21, "B": 80}).load_state_dict({**state, "loader": older})

    def test_lost_recordings_are_warned_of_and_named(self):
        loader = melflow.Loader(self.text())
        with self.assertWarnsRegex(UserWarning, r"^4 of 60 recordings gave no rows:\n(  .*\n){3}  and 1 more; the Loader's report\[\"remarks\"\] has all$"):
            list(loader)
        self.assertEqual(len([r for r in loader.report["remarks"] if r["status"] == "failed"]), 4)
        self.assertIsInstance(loader.report, melflow.Report)

    def test_a_state_is_refused_where_the_list_has_changed(self):
        def change(act):
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            root = os.path.join(folder.name, "audio")
            corpus.make_corpus(root, 12)
            path = lambda name: os.path.join(root, name)
            loader = lambda: melflow.Loader(corpus.pipeline(root, "stage: batches"), batch_size=2, seed=1)
            one, fresh = loader(), loader().state_dict()
            next(iter(one))
            state = one.state_dict()
            loader().load_state_dict(state)
            act(path)
            other = loader()
            other.load_state_dict(fresh)  # that state is for a whole epoch
            with self.assertRaises(ValueError) as raised:
                other.load_state_dict(state)
            return str(raised.exception)

        said = change(lambda path: os.unlink(path("ant/000.wav")))
        self.assertIn("recordings is 12 in the state and 11 here; list is another", said)
        said = change(lambda path: os.rename(path("ant/000.wav"), path("ant/001.wav")))
        self.assertIn("would follow: list is another", said)

    def test_names_are_known_before_the_first_batch(self):
        loader = melflow.Loader(self.text(files=", splits: ratio, split_ratios: {train: 70, val: 30}"))
        self.assertEqual((loader.label_names, loader.split_names, loader.target_names), (["ant", "bee", "cat"], ["train", "val"], []))

    def test_shuffle_false_shuffles_nothing(self):
        listed = sum((b["file"].tolist() for b in melflow.Loader(self.text())), [])
        text = self.text("stage: batches, shuffle: 30")
        for options, is_listed in ((dict(shuffle=False), True), (dict(shuffle=False, seed=3), True), (dict(shuffle=0, seed=3), False),
                                   (dict(shuffle=False, shuffle_recordings=True), False), (dict(), False)):
            files = sum((b["file"].tolist() for b in melflow.Loader(text, **options)), [])
            self.assertEqual((sorted(files), files == listed), (listed, is_listed), options)

    def test_the_report_counts_what_others_take(self):
        text = self.text(files=", splits: ratio, split_ratios: {train: 70, val: 30}")
        reports = []
        for options in (dict(), dict(split="val"), dict(split="val", rank=1, world_size=3)):
            loader = melflow.Loader(text, **options)
            list(loader)
            reports.append(loader.report)
            f = loader.report["files"]
            self.assertEqual(f["found"], f["ok"] + f["skipped"] + f["failed"] + f["other_splits"] + f["other_ranks"])
            self.assertEqual(len(loader.report["remarks"]), f["skipped"] + f["failed"])
        others = [(r["files"]["other_splits"] > 0, r["files"]["other_ranks"] > 0) for r in reports]
        self.assertEqual(others, [(False, False), (True, False), (True, True)])
        first, second, third = (set(corpus.remarks_of(r)) for r in reports)
        self.assertTrue(third <= second <= first)

    def test_the_report_is_that_of_the_program(self):
        def keys(value, at=""):
            """Paths of all keys; of a list those of its entries."""
            if isinstance(value, dict):
                return {at + key for key in value}.union(*(keys(v, at + key + ".") for key, v in value.items()))
            return set().union(*(keys(v, at + "[].") for v in value)) if isinstance(value, list) else set()

        for options in (dict(), dict(segment=", length: 2000")):
            text = self.text("stage: batches, size: 8", **options)
            ran = melflow.run(text)
            loader = melflow.Loader(text)
            self.assertIsNone(loader.report)
            rows = sum(len(batch["file"]) for batch in loader)
            report = loader.report
            ran.pop("series")  # only in the program's report
            self.assertEqual(report.pop("waits")["batches"], len(list(loader)))
            for one in (report, ran):
                one["limit"]["hints"] = []  # depend on what else the machine does
            only_loaders = {"files.other_splits", "files.other_ranks", "stages.[].summary.waiting_for_program"}
            self.assertEqual(keys(report) - only_loaders, keys(ran))
            self.assertEqual({k: v for k, v in report["files"].items() if not k.startswith("other")}, ran["files"])
            self.assertEqual(report["config"], ran["config"])
            self.assertEqual(report["remarks"], ran["remarks"])
            self.assertEqual((report["ending"], report["exit_code"]), ("complete", 3))
            self.assertEqual([s["name"] for s in report["stages"]], [s["name"] for s in ran["stages"]])
            self.assertEqual([(e["from"], e["to"]) for e in report["edges"]], [(e["from"], e["to"]) for e in ran["edges"]])
            self.assertEqual(report["stages"][-1]["summary"]["samples"], rows)
            decode = next(s for s in report["stages"] if s["name"] == "decode")
            self.assertGreater(decode["seconds"]["busy"], 0)
            self.assertEqual(report["machine"]["bytes_read"], ran["machine"]["bytes_read"])

    def test_what_shuffle_holds_is_part_of_the_budget(self):
        windows = self.text(segment=", length: 2000")
        for chain, text, said in (("mel", windows, "shuffle: 100000 examples take 391MiB, .* more than memory.host .64MiB.; set memory.host: "),
                                  ("samples", self.text(segment=", length: 2000", chain=corpus.SAMPLES),
                                   "; set memory.host: [0-9]+MiB, or shuffle: [0-9]+, or dtype: int16, which takes half")):
            with self.subTest(chain), self.assertRaisesRegex(melflow.ConfigError, said):
                melflow.Loader(text, shuffle=100_000)
        # All recordings together take 9 MiB, and half of the budget is 4 MiB.
        text = self.text(chain=corpus.SAMPLES, memory="8MiB")
        options = dict(batch_size=4, shuffle=60, seed=1, sets={"read.whole": "64KiB", "read.buffer": "64KiB"})
        loader = melflow.Loader(text, **options)
        with self.assertWarnsRegex(UserWarning, "batches: shuffle: [0-9]+ recordings at a time, and not 60, .*raise memory.host") as warned:
            batches = list(loader)
        self.assertEqual(sum("shuffle" in str(one.message) for one in warned.warnings), 1)
        self.assertEqual(warned.filename, __file__)
        self.assertEqual(len({f for b in batches for f in b["file"].tolist()}), 55)
        state = None
        for workers in (1, 3):
            other = melflow.Loader(text, workers=workers, **options)
            with self.assertWarnsRegex(UserWarning, "batches: shuffle: "):
                for i, batch in enumerate(other):
                    self.assertEqual(key(batch), key(batches[i]))
                    if i == 5:
                        state = other.state_dict()
        other.load_state_dict(state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertEqual([key(b) for b in other], [key(b) for b in batches[6:]])

    def test_a_rank_without_recordings_says_so(self):
        text = self.text(files=", splits: ratio, split_ratios: {train: 100}")
        for options, said in ((dict(rank=60, world_size=70), "rank 60 of 70 has no recordings, since the list has 60; let at most"),
                              (dict(rank=60, world_size=70, split="train"), "since the split 'train' has 60")):
            with self.assertRaisesRegex(melflow.RunError, said):
                next(iter(melflow.Loader(text, **options)))

    def test_ranks_share_the_recordings(self):
        whole = sum((b["file"].tolist() for b in melflow.Loader(self.text())), [])
        for seed in (None, 5):
            parts = [sum((b["file"].tolist() for b in melflow.Loader(self.text(), seed=seed, rank=r, world_size=3)), [])
                     for r in range(3)]
            self.assertEqual(sorted(sum(parts, [])), whole)
        with self.assertRaisesRegex(ValueError, "rank 3 of 3"):
            melflow.Loader(self.text(), rank=3, world_size=3)
        with self.assertRaisesRegex(ValueError, "world_size is 3, and rank is not given: each program gives its own, 0 to 2"):
            melflow.Loader(self.text(), world_size=3)
        with self.assertRaisesRegex(ValueError, "rank is 0, and world_size is not given: it is the number of programs"):
            melflow.Loader(self.text(), rank=0)

    def test_samples_say_of_which_result_they_are(self):
        stereo = os.path.join(self.folder.name, "stereo")
        os.makedirs(stereo, exist_ok=True)
        for i in range(9):
            with wave.open(os.path.join(stereo, f"{i}.wav"), "wb") as out:
                out.setnchannels(2)
                out.setsampwidth(2)
                out.setframerate(corpus.RATE)
                out.writeframes((np.random.default_rng(i).standard_normal((5000 + 999 * i, 2)) * 3000).astype(np.int16).tobytes())

        def channels(text):
            return text.replace("decode, from: read", "decode, from: read, downmix: each").replace(self.root, stereo)

        def both(text):
            return corpus.varied(channels(text))

        for name, several, nodes in (("speeds", corpus.varied, ["takes"]), ("channels", channels, ["decode"]),
                                     ("both", both, ["takes", "decode"]), ("one", str, [])):
            for kind, options in (("recordings", {}), ("windows", corpus.WINDOWS)):
                with self.subTest(name, kind=kind):
                    out = os.path.join(self.folder.name, f"{name}.{kind}.h5")
                    rows = melflow.open(corpus.write_rows(self.folder.name, f"{name}.{kind}", several(
                        self.text(f"stage: hdf5_write, path: {out}, overwrite: true", **options))))
                    places = {}
                    for batch in melflow.Loader(several(self.text(**options)), batch_size=7, shuffle=20, seed=3):
                        self.assertEqual(list(batch.get("result", ())), nodes)
                        self.assertEqual("result_offset" in batch, bool(nodes))
                        within = batch.get("result_offset", batch["offset"])
                        for k, (file, offset) in enumerate(key(batch)):
                            is_one = kind == "windows"
                            mine = batch["mel"][k][None] if is_one else batch["mel"][k][:batch["length"][k]]
                            np.testing.assert_array_equal(rows.recording(file)[offset:offset + len(mine)], mine)
                            places[file, offset] = len(mine), int(within[k]), {node: int(n[k]) for node, n in batch.get("result", {}).items()}
                    expected = {}
                    for file in np.flatnonzero(rows.count):
                        offset = 0
                        for said, of_result in rows.results(file):
                            for first in range(len(of_result)) if kind == "windows" else [0]:
                                length = 1 if kind == "windows" else len(of_result)
                                expected[file, offset + first] = length, first, said.get("number", {})
                            offset += len(of_result)
                    self.assertEqual(places, expected)
        with self.assertRaisesRegex(melflow.ConfigError, "a batch has another entry 'result'"):
            melflow.Loader(self.text("stage: batches, names: [result]"))

    def test_splits(self):
        text = self.text(files=", splits: ratio, split_ratios: {train: 70, val: 30}")
        whole = {f: s for b in melflow.Loader(text) for f, s in zip(b["file"].tolist(), b["split"].tolist())}
        for number, split in enumerate(("train", "val")):
            for options in (dict(), dict(seed=3)):
                loader = melflow.Loader(text, split=split, **options)
                files = sum((b["file"].tolist() for b in loader), [])
                self.assertEqual(sorted(files), sorted(f for f, s in whole.items() if s == number))
            self.assertEqual(loader.split_names, ["train", "val"])
        with self.assertRaisesRegex(melflow.RunError, "no split 'test'; there are: train, val"):
            next(iter(melflow.Loader(text, split="test")))

    def test_max_rows_counts_the_padding(self):
        batches = list(melflow.Loader(self.text(), batch_size=100, max_rows=2000))
        for b in batches:
            self.assertTrue(b["mel"].shape[0] == 1 or b["mel"].shape[0] * b["mel"].shape[1] <= 2000)
        self.assertTrue(any(b["mel"].shape[0] > 1 for b in batches))

    def test_who_keeps_all_batches_does_not_stop_the_run(self):
        # Together they exceed the budget.
        kept = list(melflow.Loader(self.text(segment=", length: 2000, hop: 50", memory="14MiB"), batch_size=64))
        self.assertGreater(sum(b["mel"].nbytes for b in kept), 16 << 20)

    def test_an_epoch_can_be_broken_off(self):
        list(melflow.Loader(self.text()))  # for everything that is created once

        def held():
            return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

        before = held()
        for taken in (0, 1, 3) * 5:
            loader = melflow.Loader(self.text(), batch_size=2, prefetch=1)
            batches = iter(loader)
            for _ in range(taken):
                next(batches)
            loader.close()
            del batches
        self.assertLessEqual(held()[0], before[0])
        self.assertLessEqual(held()[1], before[1] + 2)  # oneTBB keeps threads

    def test_a_run_that_fails_says_why(self):
        bad = os.path.join(self.folder.name, "bad", "a")
        os.makedirs(bad, exist_ok=True)
        with open(os.path.join(bad, "x.wav"), "w", encoding="utf-8") as out:
            out.write("this is no sound")
        with self.assertRaisesRegex(melflow.RunError, "all files failed"):
            list(melflow.Loader(corpus.pipeline(os.path.dirname(bad), "stage: batches")))
        with self.assertRaisesRegex(melflow.ConfigError, "unknown option of batches"):
            melflow.Loader(self.text("stage: batches, sise: 3"))  # fails at construction, not at the first batch
        with self.assertRaisesRegex(melflow.RunError, "ends in one node of the stage batches, and this one has none"):
            melflow.Loader(self.text("stage: discard"))
        with self.assertRaisesRegex(melflow.ConfigError, "nothing.yaml: cannot be read"):
            melflow.Loader("nothing.yaml")
        with self.assertRaisesRegex(melflow.RunError, "'train: {stage: batches, from: mel}' in place of the node that writes rows"):
            melflow.Loader(self.text("stage: hdf5_write, path: a.h5"))

    def test_a_fork_is_told_what_to_do(self):
        self.assertTrue(next(iter(melflow.Loader(self.text()))))
        with multiprocessing.get_context("fork").Pool(1) as pool:
            self.assertIn("forked off", pool.apply(in_a_child, (self.text(),)))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            self.assertEqual(pool.apply(in_a_child, (self.text(),)), "a batch")

    def test_control_c(self):
        # The signal may be ignored, if tests run in the background.
        program = ("import melflow, signal, sys, itertools\n"
                   "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
                   "for i in itertools.count():\n"
                   "    for b in melflow.Loader(sys.argv[1], batch_size=2):\n"
                   "        print('batch', flush=True)\n")
        child = subprocess.Popen([sys.executable, "-c", program, self.text()], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        self.assertIn("KeyboardInterrupt", err)
        self.assertNotEqual(child.returncode, 0)


if __name__ == "__main__":
    unittest.main()
