"""Rows of a pipeline by number, beside those that the program writes for it."""

import glob
import os
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import warnings
import wave

import h5py
import melflow
import numpy as np

import corpus

CASES = {
    "whole": {},
    "windows": dict(segment=", length: 2000, hop: 1500", files=", splits: ratio, split_ratios: {train: 70, val: 30}"),
    "half": dict(segment=", length: 2000", dtype="float16"),
    "samples": dict(segment=", length: 2000", chain=corpus.SAMPLES, dtype="int16"),
    "deltas": dict(chain=corpus.MEL + "  more: {stage: deltas, from: rows}\n", rows="more"),
    "in pieces": dict(chain=corpus.MEL.replace("n_mels: 20", "n_mels: 20, log: db, ref: max, top_db: 80")),
}


def text(root, sink, *, dtype="float32", rows="rows", **case):
    out = corpus.pipeline(root, f"{sink}, dtype: {dtype}", **case)
    return out[:-len("rows}\n")] + rows + "}\n"


def scanned(path, **options):
    """Of which what fails has no rows, as in the file."""
    return melflow.open(path, scan=True, **options)


def contents(batches):
    return [{k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in b.items()} for b in batches]


class AudioRowsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.root = os.path.join(self.folder, "audio")
        corpus.make_corpus(self.root)

    def pipeline(self, **case):
        path = os.path.join(self.folder, "train.yaml")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text(self.root, "stage: batches", **case))
        return path

    def test_a_cache_that_a_loader_has_filled_is_read_in_place_of_the_recordings(self):
        cache = os.path.join(self.folder, "cache")
        case = dict(files=f", feed: cache, cache_path: {cache}", segment=", length: 2000")
        path = self.pipeline(**case)
        with self.assertWarnsRegex(UserWarning, "cache: there is no cache of these recordings and settings yet"):
            expected = scanned(path, index=False)
        self.assertFalse(os.path.exists(cache))
        wanted = {expected.path[i]: expected.recording(i) for i in np.flatnonzero(expected.count)}
        for _ in melflow.Loader(path):
            pass
        for recording in glob.glob(os.path.join(self.root, "*/*.wav")):  # makes files undecodable without changing size and time
            state = os.stat(recording)
            with open(recording, "r+b") as out:
                out.write(bytes(state.st_size))
            os.utime(recording, ns=(state.st_atime_ns, state.st_mtime_ns))
        rows = melflow.open(path, index=False, store=0)
        there = {rows.path[i]: rows.recording(i) for i in np.flatnonzero(rows.count)}
        self.assertGreater(len(there), 50)
        self.assertEqual(sorted(there), sorted(wanted))
        for name, values in there.items():
            np.testing.assert_array_equal(values, wanted[name], name)
        self.assertEqual(rows.losses, {})

    def test_rows_index_and_batches_are_those_of_the_file(self):
        for name, case in CASES.items():
            with self.subTest(name):
                out = os.path.join(self.folder, name + ".h5")
                path = corpus.write_rows(self.folder, name, text(self.root, f"stage: hdf5_write, path: {out}", **case))
                rows, expected = scanned(self.pipeline(**case)), melflow.open(path)
                self.assertEqual((rows.shape, rows.dtype, rows.name, rows.unit, rows.is_ragged),
                                 (expected.shape, expected.dtype, expected.name, expected.unit, expected.is_ragged))
                np.testing.assert_array_equal(rows[:], expected[:])
                for column in ("offset", "count", "status", "label"):
                    np.testing.assert_array_equal(getattr(rows, column), getattr(expected, column), column)
                with h5py.File(path) as file:
                    self.assertEqual(rows.attributes["feature_fingerprint"], file.attrs["feature_fingerprint"])
                options = dict(seed=3, split="train" if rows.split_names else None)
                self.assertEqual(contents(rows.batches(16, **options)), contents(expected.batches(16, **options)))
                # A state can be loaded by either: the samples are the same.
                first = rows.batches(16, **options)
                next(iter(first))
                then = expected.batches(16, **options)
                state = first.state_dict()
                for loader in (first, then):
                    loader.load_state_dict(state)
                self.assertEqual(contents(first), contents(then))

    def utterances(self):
        """An option of file_list: parts of recordings, some of which overlap, or are not there."""
        path = os.path.join(self.folder, "list.csv")
        lines = ["path,start,end"]
        for i in range(0, 60, 2):
            name = f"{('ant', 'bee', 'cat')[i % 3]}/{i:03}.wav"
            lines += [f"{name},{start},{end}" for start, end in ((0, 0.08), (0.05, 0.7), (0.7, 1.3), (5, 7.5), (6, "")) if i != 20 or end]
        lines += [f"cat/020.wav,{start},{start + 2.5}" for start in range(11, 62, 3)]  # in many blocks
        lines += ["cat/020.wav,11,40", "cat/020.wav,30,30.00001", "ant/nothing.wav,0,1"]
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
        return f", manifest: {path}, utterances: {{}}"

    def test_all_warnings_of_an_utterance_are_told(self):
        with wave.open(os.path.join(self.root, "ant/000.wav")) as file:
            seconds = file.getnframes() / file.getframerate()
        folder = os.path.join(self.folder, "data")
        os.mkdir(folder)
        for name, line in (("wav.scp", "r ant/000.wav"), ("segments", f"u r 0.1 {seconds + 0.3}"), ("reco2dur", "r 99")):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(line + "\n")
        path = self.pipeline(files=f", manifest: {folder}, utterances: {{}}")
        rows, loader = scanned(path), melflow.Loader(path)
        for _ in loader:
            pass
        self.assertEqual(rows.remarks, corpus.remarks_of(loader.report))
        self.assertRegex(rows.remarks[0][3], "^its list says that it is 99.000 s .*; files.utterances: ends 0.300 s after the end of its recording")

    def test_utterances_are_those_of_the_file(self):
        resampled = "  rate: {stage: resample, from: decode, rate: 6000}\n"
        for name, case in (("whole", {}), ("windows", dict(segment=", length: 2000, hop: 1500")),
                           ("samples", dict(chain=corpus.SAMPLES)),
                           ("in pieces", CASES["in pieces"]), ("resampled", dict(chain=corpus.MEL.replace("8000", "6000"), before=resampled))):
            with self.subTest(name):
                case = dict(case, files=self.utterances())
                before = case.pop("before", "")

                def pipeline(sink):
                    out = text(self.root, sink, **case)
                    return out.replace("  segment: {stage: segment, from: decode", before + "  segment: {stage: segment, from: rate") \
                        if before else out

                out = os.path.join(self.folder, name + ".h5")
                path = corpus.write_rows(self.folder, name, pipeline(f"stage: hdf5_write, path: {out}"))
                yaml = os.path.join(self.folder, "train.yaml")
                with open(yaml, "w", encoding="utf-8") as file:
                    file.write(pipeline("stage: batches"))
                rows, expected = scanned(yaml), melflow.open(path)
                self.assertEqual(rows.shape, expected.shape)
                np.testing.assert_array_equal(rows[:], expected[:])
                for column in ("offset", "count", "status", "label"):
                    np.testing.assert_array_equal(getattr(rows, column), getattr(expected, column), column)
                self.assertEqual(rows.computed, len({p.split("#")[0] for p in rows.path}) + 1)  # one is read twice
                loader = melflow.Loader(yaml)
                for _ in loader:
                    pass
                self.assertEqual(rows.remarks, corpus.remarks_of(loader.report))
                self.assertGreater(len(rows.remarks), 30)
                self.assertEqual({outcome for _, outcome, *_ in rows.remarks}, {"ok", "failed", "skipped"} if name == "windows" else {"ok", "failed"})
                options = dict(seed=3)
                self.assertEqual(contents(rows.batches(16, **options)), contents(expected.batches(16, **options)))
                if name != "whole":
                    continue
                # Compares with what serving computes from the samples of an utterance.
                i = rows.path.index("ant/000.wav#t=0,0.08")
                with wave.open(os.path.join(self.root, "ant/000.wav")) as file:
                    samples = np.frombuffer(file.readframes(640), np.int16)
                np.testing.assert_array_equal(melflow.Features(yaml)(samples, 8000), rows.recording(i))
                # Exact numbers, ranks, stopping, and a store that holds nothing.
                batches = rows.batches(5, seed=1)
                self.assertEqual(batches.samples, int((rows.count > 0).sum()))
                together = [p for b in batches for p in b["path"]]
                self.assertEqual(sorted(together), sorted(p for p, n in zip(rows.path, rows.count) if n > 0))
                self.assertEqual(len(list(rows.batches(5, seed=1))), len(batches))
                small = scanned(yaml, store=0, workers=7)
                self.assertEqual(small.computed, 0)
                first = small.batches(5, seed=1)
                seen = []
                for batch in first:
                    seen += batch["path"]
                    if len(seen) == 20:
                        break
                on = small.batches(5, seed=1)
                on.load_state_dict(first.state_dict())
                seen += [p for b in on for p in b["path"]]
                self.assertEqual(seen, [p for b in small.batches(5, seed=1) for p in b["path"]])
                self.assertEqual(sorted(seen), sorted(together))
                ranks = [list(rows.batches(5, seed=1, rank=r, world_size=2)) for r in range(2)]
                self.assertEqual(len(ranks[0]), len(ranks[1]))
                merged = [p for a, b in zip(*ranks) for one in (a, b) for p in one["path"]]
                self.assertEqual(merged[:len(together)], together)

    def test_utterances_of_a_recording_that_has_changed_are_lost(self):
        path = self.pipeline(files=self.utterances())
        scanned(path)
        rows = scanned(path, store=0)
        changed = os.path.join(self.root, "ant/000.wav")
        os.utime(changed, (1, 1))
        files = np.concatenate([b["file"] for b in rows.batches(5, seed=1)])
        self.assertEqual(len(files), rows.batches(5).samples)
        lost = [p for p in rows.path if p.startswith("ant/000.wav")]
        self.assertFalse(any(rows.path[i] in lost for i in files))
        self.assertTrue(set(rows.losses) <= set(lost) and rows.losses)
        self.assertEqual(scanned(path).computed, 1)  # the others are in the index

    def test_every_recording_is_accounted_for(self):
        rows = scanned(self.pipeline())
        loader = melflow.Loader(self.pipeline())
        for _ in loader:
            pass
        self.assertEqual(rows.remarks, corpus.remarks_of(loader.report))
        self.assertEqual(len(rows.remarks), 5)

    def test_the_index_saves_the_scan(self):
        path = self.pipeline()
        first = scanned(path)
        self.assertEqual(first.index, os.path.join(self.folder, "train.index.npz"))
        self.assertEqual(first.computed, 60)
        again = scanned(path)
        self.assertEqual(again.computed, 0)
        self.assertEqual(again.remarks, first.remarks)
        np.testing.assert_array_equal(again[:], first[:])
        # A new and a changed file are measured; removed files leave the index.
        os.rename(os.path.join(self.root, "ant/000.wav"), os.path.join(self.root, "ant/100.wav"))
        os.utime(os.path.join(self.root, "bee/001.wav"), (1, 1))
        self.assertEqual(scanned(path).computed, 2)
        self.assertEqual(scanned(path).computed, 0)
        # Other settings give other counts.
        self.assertEqual(scanned(path, sets={"segment.length": 2000}).computed, 60)
        self.assertEqual(glob.glob(os.path.join(self.folder, "*.part")), [])

    def test_an_index_that_cannot_be_used_is_said_and_made_anew(self):
        path = self.pipeline()
        expected = scanned(path, index=False)[:]
        self.assertFalse(os.path.exists(os.path.join(self.folder, "train.index.npz")))
        index = os.path.join(self.folder, "my.npz")
        scanned(path, index=index)
        with open(index, "rb") as file:
            whole = file.read()
        for damaged in (b"no index", whole[:len(whole) // 2], b""):
            with open(index, "wb") as out:
                out.write(damaged)
            with self.assertWarnsRegex(UserWarning, "my.npz: this is no index that can be read"):
                rows = scanned(path, index=index)
            np.testing.assert_array_equal(rows[:], expected)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual(scanned(path, index=index).computed, 0)
        with self.assertWarnsRegex(UserWarning, "the index cannot be written"):
            scanned(path, index="/proc/no/my.npz")

    def test_the_store_has_a_limit(self):
        path = self.pipeline()
        small = scanned(path, store="64KiB")
        large = scanned(path)
        self.assertLessEqual(small.stored_bytes, 64 << 10)
        self.assertEqual(contents(small.batches(7, seed=1)), contents(large.batches(7, seed=1)))
        self.assertGreater(small.computed, large.computed)
        self.assertEqual(large.computed, 55)  # each recording with rows once
        self.assertLessEqual(small.stored_bytes, 64 << 10)
        none = scanned(path, store=0)
        np.testing.assert_array_equal(none[5:500], large[5:500])
        self.assertEqual(none.stored_bytes, 0)

    def test_the_first_batch_waits_for_no_more_of_a_recording_than_it_has_rows_of(self):
        path = self.pipeline(segment=", length: 2000", files=", include: [cat/020.wav]")  # 60 s
        expected = scanned(path)[:]
        self.assertEqual(len(expected), 240)
        for first, computed in ((130, 0), (230, 1)):  # of nearly all rows, the rest is computed and kept, too
            rows = scanned(path)
            batch, = rows.batches(first, shuffle=False, drop_last=True)
            self.assertEqual(rows.computed, computed)
            np.testing.assert_array_equal(batch["mel"], expected[:first])
            np.testing.assert_array_equal(rows[:], expected)
            self.assertEqual(rows.computed, 1)
        # Starts in the middle.
        loader = scanned(path, store=0).batches(70, shuffle=False)
        loader.load_state_dict({**loader.state_dict(), "delivered": 60})
        np.testing.assert_array_equal(np.concatenate([b["mel"] for b in loader]), expected[60:])
        # A stage that needs all rows of a recording gets them.
        deltas = self.pipeline(segment=", length: 2000", files=", include: [cat/020.wav]", rows="more",
                               chain=corpus.MEL + "  more: {stage: deltas, from: rows}\n")
        rows = scanned(deltas, index=False)
        np.testing.assert_array_equal(next(iter(scanned(deltas).batches(130, shuffle=False)))["mel"], rows[:130])

    def test_ranks_workers_and_stops_give_the_same_samples(self):
        path = self.pipeline(segment=", length: 2000")
        together = [tuple(x) for b in scanned(path).batches(8, seed=5) for x in zip(b["file"], b["offset"])]
        self.assertEqual(len(together), len(set(together)))
        for workers in (1, 2, 7):
            rows = scanned(path, workers=workers)
            loader = rows.batches(8, seed=5, workers=3)
            seen = []
            for batch in loader:
                seen += zip(batch["file"], batch["offset"])
                if len(seen) == 24:
                    break
            on = rows.batches(8, seed=5)
            on.load_state_dict(loader.state_dict())
            for batch in on:
                seen += zip(batch["file"], batch["offset"])
            self.assertEqual([tuple(x) for x in seen], together)
        rows = scanned(path)
        ranks = [list(rows.batches(4, seed=5, rank=r, world_size=2)) for r in range(2)]
        self.assertEqual(len(ranks[0]), len(ranks[1]))
        merged = [tuple(x) for a, b in zip(*ranks) for one in (a, b) for x in zip(one["file"], one["offset"])]
        self.assertEqual(merged[:len(together)], together)

    def test_recordings_lost_after_the_scan_are_replaced_and_reported(self):
        path = self.pipeline(segment=", length: 2000")
        scanned(path)
        gone, changed = os.path.join(self.root, "ant/003.wav"), os.path.join(self.root, "bee/004.wav")
        rows = [scanned(path, store=0), scanned(path, store=0, workers=1)]
        os.unlink(gone)
        with wave.open(changed, "rb") as old:
            parameters, frames = old.getparams(), old.readframes(old.getnframes())
        with wave.open(changed, "wb") as new:
            new.setparams(parameters)
            new.writeframes(frames + bytes(4000))
        batches = [list(r.batches(8, seed=5)) for r in rows]
        self.assertEqual(contents(batches[0]), contents(batches[1]))
        self.assertEqual(len(batches[0]), len(rows[0].batches(8)))
        files = np.concatenate([b["file"] for b in batches[0]])
        self.assertEqual(len(files), rows[0].batches(8).samples)
        lost = [rows[0].path.index(p) for p in ("ant/003.wav", "bee/004.wav")]
        self.assertFalse(np.isin(files, lost).any())
        self.assertEqual(set(rows[0].losses), {"ant/003.wav", "bee/004.wav"})
        self.assertIn("does not exist", rows[0].losses["ant/003.wav"])
        self.assertIn("has changed since it was indexed", rows[0].losses["bee/004.wav"])
        # Ends with an error if all are gone.
        for file in glob.glob(os.path.join(self.root, "*", "*.wav")):
            os.unlink(file)
        with self.assertRaisesRegex(melflow.RunError, "cannot be read any more"):
            list(melflow.AudioRows.batches(rows[1], 8))

    def test_lengths_are_those_of_headers_where_rows_follow_from_them(self):
        resampled = "  rate: {stage: resample, from: decode, rate: %d, length: %s}\n"
        for name, case, before in (
                [(n, c, "") for n, c in CASES.items()] +
                [("least", dict(segment=", length: 2000, min_length: 1s, max_length: 6s, tail: pad"), ""),
                 ("two-stage", dict(segment=", long: {length: 1s}, short: {length: 1000, hop: 300}"), "")] +
                [(f"{rate} {length}", dict(chain=corpus.SAMPLES.replace("8000", str(rate))), resampled % (rate, length))
                 for rate in (6000, 7919, 11025) for length in ("round", "ceil", "librosa")]):
            with self.subTest(name):
                yaml = self.pipeline(**case)
                if before:
                    with open(yaml, encoding="utf-8") as file:
                        of = file.read()
                    with open(yaml, "w", encoding="utf-8") as out:
                        out.write(of.replace("  segment: {stage: segment, from: decode", before + "  segment: {stage: segment, from: rate"))
                rows, exact = melflow.open(yaml, index=False), scanned(yaml, index=False)
                there = exact.count > 0
                np.testing.assert_array_equal(rows.count[there], exact.count[there])
                self.assertLess(rows.computed, 60 if name == "least" else 8)
                for i in np.flatnonzero(there)[:10]:
                    np.testing.assert_array_equal(rows.recording(i), exact.recording(i))
        # Stages that need the samples, or whose library is not loaded into this process, are computed.
        trim = self.pipeline()
        with open(trim, encoding="utf-8") as file:
            of = file.read()
        quiet = "quiet: {stage: trim_silence, from: decode, threshold: -90dB}\n  segment: {stage: segment, from: quiet"
        self.assertEqual(melflow.open(of.replace("segment: {stage: segment, from: decode", quiet)).computed, 60)
        with self.assertRaisesRegex(melflow.RunError, "downmix asks for channel 2"):
            melflow.open(of.replace("truncated: fail", "truncated: fail, downmix: right"))

    def test_a_recording_that_is_other_than_its_header_says_gives_its_places_to_others(self):
        path = self.pipeline(segment=", length: 2000", files=", exclude: [cat/020.wav]")
        rows = [melflow.open(path, workers=w, store=s) for w, s in ((2, "1GiB"), (1, 0))]
        exact = scanned(path, index=False)
        broken = np.flatnonzero((rows[0].count > 0) & (exact.count == 0))
        self.assertEqual(len(broken), 4)
        self.assertEqual(contents(rows[0].batches(8, seed=5)), contents(rows[0].batches(8, seed=5)))
        for r in rows:
            batches = list(r.batches(8, seed=5))
            self.assertEqual(len(batches), len(r.batches(8)))
            files = np.concatenate([b["file"] for b in batches])
            self.assertEqual(len(files), r.batches(8).samples)
            self.assertFalse(np.isin(files, broken).any())
            self.assertEqual(set(r.losses), {r.path[i] for i in broken})
            self.assertFalse({path for path, *_ in r.remarks} & set(r.losses))
        # All ranks have equally many batches.
        ranks = [list(rows[0].batches(4, seed=5, rank=k, world_size=2)) for k in range(2)]
        self.assertEqual(len(ranks[0]), len(ranks[1]))
        # scan computes the recordings whose count came from headers, and nothing after that.
        self.assertGreater(scanned(path).computed, 50)
        self.assertEqual(scanned(path).computed, 0)
        self.assertEqual(len(melflow.open(path)), len(exact))

    def test_samples_of_a_recording_come_together_where_the_store_is_small(self):
        path = self.pipeline(segment=", length: 800", files=", exclude: [cat/020.wav]")
        large = scanned(path)
        row = 4 * int(np.prod(large.shape[1:]))
        store = 4 * int(large.count.max()) * row + len(large) * row // 4
        self.assertLess(store, len(large) * row)
        rows = scanned(path, store=store)
        first, again, other, workers = (
            [tuple(x) for b in r.batches(8, seed=s, workers=w) for x in zip(b["file"], b["offset"])]
            for r, s, w in ((rows, 5, 2), (rows, 5, 2), (rows, 6, 2), (scanned(path, store=store, workers=7), 5, 5)))
        self.assertEqual((first, first), (again, workers))
        self.assertNotEqual(first, other)
        self.assertEqual(sorted(first), sorted(other))
        self.assertEqual((len(first), len(set(first))), (len(large), len(large)))
        # Each recording is computed once, and its samples are mixed with those of others.
        rows = scanned(path, store=store)
        list(rows.batches(8, seed=5))
        self.assertEqual(rows.computed, int((large.count > 0).sum()))
        self.assertGreater(np.count_nonzero(np.diff([f for f, _ in first])), len(first) // 3)
        # Resumes in the middle, and divides batches among ranks.
        loader, seen = rows.batches(8, seed=5), []
        for batch in loader:
            seen += zip(batch["file"], batch["offset"])
            if len(seen) == 80:
                break
        on = rows.batches(8, seed=5)
        on.load_state_dict(loader.state_dict())
        self.assertEqual(seen + [x for b in on for x in zip(b["file"], b["offset"])], first)
        with self.assertRaisesRegex(ValueError, r"window \(by store\)"):
            large.batches(8, seed=5).load_state_dict(loader.state_dict())
        ranks = [list(rows.batches(4, seed=5, rank=r, world_size=2)) for r in range(2)]
        merged = [tuple(x) for a, b in zip(*ranks) for one in (a, b) for x in zip(one["file"], one["offset"])]
        self.assertEqual(merged[:len(first)], first)
        # Lost samples are replaced by those of another recording, always the same ones.
        os.unlink(os.path.join(self.root, "ant/003.wav"))
        lost = [[b["file"].tolist() for b in scanned(path, store=store, workers=w, index=os.path.join(self.folder, "train.index.npz"))
                 .batches(8, seed=5)] for w in (1, 7)]
        self.assertEqual(lost[0], lost[1])

    def test_an_epoch_that_will_be_slow_is_said_before_it_begins(self):
        path = self.pipeline(segment=", length: 800")
        loader = scanned(path, store=0).batches(8, seed=5)
        with self.assertWarnsRegex(UserWarning, r'will be slow: the rows of a recording take up to [1-9].* [KM]iB, and store keeps (0 bytes|[1-9].*[KM]iB).*store="\d+MiB"'):
            next(iter(loader))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            next(iter(loader))  # once
            next(iter(scanned(path).batches(8, seed=5)))
            next(iter(scanned(path, store=0).batches(8, shuffle=False)))

    def test_an_epoch_that_memory_makes_slow_is_said_before_it_begins(self):
        rows = melflow.open(self.pipeline(segment=", length: 2000"), store="64MiB")
        self.assertGreater(rows._reader.storable_bytes, 0)
        self.assertLessEqual(rows._reader.storable_bytes, 64 << 20)
        batches = rows.batches(8)
        for able, is_short in ((0, True), (64 << 20, False)):
            batches._first = types.SimpleNamespace(_reader=types.SimpleNamespace(row_bytes=rows._reader.row_bytes, storable_bytes=able),
                                                   _kept_rows=rows._kept_rows)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                batches._warn_if_short()
            self.assertEqual([str(w.message)[:28] for w in said], ["this epoch will be slow: sto"] if is_short else [])

    def test_what_takes_long_shows_a_bar_on_a_terminal(self):
        path = self.pipeline()
        main, terminal = os.openpty()
        code = "import melflow, sys\nmelflow.open(sys.argv[1])\nmelflow.open(sys.argv[1], scan=True)"
        ended = subprocess.run([sys.executable, "-c", code, path], stderr=terminal, timeout=60)
        os.close(terminal)
        said = os.read(main, 65536).decode()
        os.close(main)
        self.assertEqual(ended.returncode, 0)
        self.assertIn("train.yaml: reads lengths [####################] 60 of 60 recordings", said)
        self.assertIn("train.yaml: counts rows [####################] 59 of 59 recordings", said)
        silent = subprocess.run([sys.executable, "-c", code, path], capture_output=True, timeout=60)
        self.assertEqual((silent.returncode, silent.stderr), (0, b""))

    def test_what_cannot_be_is_said(self):
        two = corpus.pipeline(self.root, "stage: batches") + "  more: {stage: discard, from: rows}\n"
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        with open(os.path.join(empty, "a.wav"), "wb"):
            pass
        for text, what in ((two, "several outputs"),
                           (corpus.pipeline(self.root, "stage: discard"), "ends in"),
                           (corpus.pipeline(empty, "stage: batches"), "no recording gave rows; the first: a.wav"),
                           (corpus.pipeline(self.root, "stage: no_such"), "no_such")):
            with self.assertRaisesRegex((melflow.RunError, melflow.ConfigError), what):
                scanned(text)
        with self.assertRaisesRegex(ValueError, "store: "):
            scanned(self.pipeline(), store="much")
        with self.assertRaisesRegex(TypeError, "these are for a pipeline: store"):
            melflow.open("features.h5", store="1GiB")

    def test_threads_and_forks(self):
        path = self.pipeline()
        rows = scanned(path, store=0)
        expected, errors = rows[:], []

        def check():
            for i in range(0, len(rows), 997):
                if not np.array_equal(rows[i], expected[i]):
                    errors.append(i)

        threads = [threading.Thread(target=check) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])
        code = ("import melflow, os, sys\n"
                "rows = melflow.open(sys.argv[1])\nnext(iter(rows.batches(4)))\n"
                "if os.fork() == 0:\n"
                "    try: rows[0:5000]; os._exit(1)\n"
                "    except melflow.RunError as e: os._exit(0 if 'forked off' in str(e) else 2)\n"
                "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))\n")
        self.assertEqual(subprocess.run([sys.executable, "-c", code, path], timeout=60).returncode, 0)


if __name__ == "__main__":
    unittest.main()
