"""melflow.open beside h5py."""

import os
import shutil
import tempfile
import unittest
import warnings

import h5py
import melflow
import numpy as np

import corpus

CASES = {
    "whole": dict(sink="statistics: all"),
    "windows": dict(sink="statistics: train", segment=", length: 2000, hop: 1500",
                    files=', splits: ratio, split_ratios: {train: 70, val: 30}'),
    "packed": dict(sink="compression: deflate, chunk: 8KiB", segment=", length: 2000"),
    "chunked": dict(sink="layout: chunked, chunk: 4KiB"),
    "half": dict(sink="dtype: float16", segment=", length: 2000"),
    "int16": dict(sink="dtype: int16, compression: deflate, access: shuffled", segment=", length: 2000",
                  chain=corpus.SAMPLES),
    "odd": dict(sink="statistics: none", segment=", length: 1501", chain=corpus.SAMPLES),
}


def places(batch):
    return np.stack([batch["file"], batch["offset"]], 1).tolist()


class RowsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = os.path.join(cls.folder.name, "audio")
        corpus.make_corpus(root)
        cls.files = {}
        for name, case in CASES.items():
            case = dict(case)
            out = os.path.join(cls.folder.name, name + ".h5")
            sink = f"stage: hdf5_write, path: {out}, {case.pop('sink')}"
            cls.files[name] = corpus.write_rows(cls.folder.name, name, corpus.pipeline(root, sink, **case))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_rows_are_those_of_h5py(self):
        for name, path in self.files.items():
            with self.subTest(name), h5py.File(path) as file:
                expected = file[file.attrs["rows"]][:]
                rows = melflow.open(path)
                self.assertEqual(rows.shape, expected.shape)
                self.assertEqual(rows.dtype, str(expected.dtype))
                np.testing.assert_array_equal(rows[:], expected)
                np.testing.assert_array_equal(rows[-1], expected[-1])
                np.testing.assert_array_equal(rows[5:17], expected[5:17])
                offset, count = file["files/offset"][3], file["files/count"][3]
                np.testing.assert_array_equal(rows.recording(3), expected[offset:offset + count])
                self.assertEqual(rows.path, file["files/path"].asstr()[:].tolist())
                self.assertEqual(rows.is_ragged, name in ("whole", "chunked"))
                with self.assertRaises(IndexError):
                    rows[len(expected)]

    def test_batches_have_every_sample_once(self):
        for name, path in self.files.items():
            with self.subTest(name), h5py.File(path) as file:
                expected, offset, count = file[file.attrs["rows"]][:], file["files/offset"][:], file["files/count"][:]
                rows = melflow.open(path)
                loader = rows.batches(16, seed=2, workers=2)
                seen = []
                for batch in loader:
                    for i, (f, o) in enumerate(places(batch)):
                        at = offset[f] + o
                        if rows.is_ragged:
                            n = batch["length"][i]
                            self.assertEqual((o, n), (0, count[f]))
                            np.testing.assert_array_equal(batch[rows.name][i, :n], expected[at:at + n])
                            self.assertTrue((batch[rows.name][i, n:] == 0).all())
                        else:
                            np.testing.assert_array_equal(batch[rows.name][i], expected[at])
                    self.assertEqual(batch["path"], [rows.path[f] for f in batch["file"]])
                    np.testing.assert_array_equal(batch["label"], rows.label[batch["file"]])
                    seen += places(batch)
                wanted = [[f, 0] for f in np.flatnonzero(count > 0)] if rows.is_ragged else \
                    [[f, o] for f in range(len(count)) for o in range(count[f])]
                self.assertEqual(sorted(seen), wanted)
                self.assertNotEqual(seen, wanted)
                self.assertEqual(loader.samples, len(wanted))
                in_order = sum((places(b) for b in rows.batches(16, shuffle=False)), [])
                self.assertEqual(in_order, wanted)

    def test_a_batch_that_no_cache_holds(self):
        rows = melflow.open(self.files["odd"])
        with h5py.File(self.files["odd"]) as file:
            expected = file[file.attrs["rows"]][:]
        batch, = rows.batches(len(rows), seed=2)
        self.assertGreater(batch["windows"].nbytes, 4 << 20)
        np.testing.assert_array_equal(batch["windows"], expected[rows.offset[batch["file"]] + batch["offset"]])

    def test_splits_and_statistics(self):
        rows = melflow.open(self.files["windows"])
        of_val = sum((b["split"].tolist() for b in rows.batches(9, split="val")), [])
        self.assertEqual(set(of_val), {rows.split_names.index("val")})
        self.assertEqual(len(of_val), rows.count[rows.split == rows.split_names.index("val")].sum())
        train = rows.batches(10_000, split="train", normalize=True)
        values = next(iter(train))["mel"].astype(np.float64).reshape(-1, 20)
        np.testing.assert_allclose(values.mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(values.std(0), 1, atol=1e-5)
        for wrong, said in ((dict(split="test"), "there are: train, val"), (dict(dtype="float16"), "float32"),
                            (dict(batch_size=0), "1 or more"), (dict(rank=2, world_size=2), "rank 2 of 2")):
            with self.assertRaisesRegex(ValueError, said):
                rows.batches(**wrong)
        with self.assertRaisesRegex(ValueError, "no statistics"):
            melflow.open(self.files["half"]).batches(normalize=True)
        as_float = next(iter(melflow.open(self.files["half"]).batches(dtype="float32")))["mel"]
        self.assertEqual(as_float.dtype, np.float32)

    def test_npy_gives_what_hdf5_gives(self):
        root, audio = os.path.join(self.folder.name, "audio"), ", splits: ratio, split_ratios: {train: 70, val: 30}"
        cases = {"ragged": dict(), "windows": dict(segment=", length: 2000, hop: 1500"),
                 "samples": dict(segment=", length: 2000", chain=corpus.SAMPLES)}
        for name, case in cases.items():
            npy, h5 = (os.path.join(self.folder.name, f"{name}_both.{ending}") for ending in ("npy", "h5"))
            options = ", statistics: train, split_files: false" + (", dtype: int16" if name == "samples" else "")
            text = corpus.pipeline(root, f"stage: hdf5_write, path: {h5}{options}", files=audio, **case)
            corpus.write_rows(self.folder.name, name + "_both", text + f"  more: {{stage: npy_write, from: rows, path: {npy}{options}}}\n")
            with self.subTest(name):
                rows, expected = melflow.open(npy), melflow.open(h5)
                np.testing.assert_array_equal(rows[:], np.load(npy))
                index = np.load(npy[:-4] + ".index.npy")
                np.testing.assert_array_equal(rows.recording(3), rows[index["offset"][3]:index["offset"][3] + index["count"][3]])
                self.assertEqual((len(rows), rows.shape, rows.dtype, rows.label_names, rows.is_ragged),
                                 (len(expected), expected.shape, expected.dtype, ["ant", "bee", "cat"], name == "ragged"))
                options = dict(batch_size=7, split="train", seed=3, normalize=name != "samples")
                loader, other = rows.batches(**options), expected.batches(**options)
                self.assertEqual(len(loader), len(other))
                self.assertEqual(loader.state_dict(), other.state_dict())
                for batch, wanted in zip(loader, other, strict=True):
                    self.assertEqual(list(batch), list(wanted))
                    for key, value in wanted.items():
                        np.testing.assert_array_equal(batch[key], value)
                for batch in melflow.open({"a": npy, "b": h5}).batches(9, seed=1):
                    np.testing.assert_array_equal(batch["a"], batch["b"])
                self.assertEqual(rows.select({"label": "bee"}).tolist(), expected.select({"label": "bee"}).tolist())
                copy = os.path.join(self.folder.name, "alone.npy")
                shutil.copy(npy, copy)
                for path, said in ((copy, "alone.npy: .* no rows that melflow wrote .there is no .*alone.index.json"),
                                   (npy[:-4] + ".index.npy", "index.npy: this is the index of .*_both.npy; name that")):
                    with self.assertRaisesRegex(melflow.RunError, said):
                        melflow.open(path)

    def test_where_takes_recordings_by_their_texts(self):
        root = os.path.join(self.folder.name, "audio")
        # The name of a file is a number of 2 or 3 digits, of which the first is the speaker.
        files = ", splits: ratio, split_ratios: {train: 70, val: 30}, columns: {speaker: '/(.)[0-9]+.wav', animal: parent_dir}"
        sink = f"stage: hdf5_write, path: {os.path.join(self.folder.name, 'where.h5')}"
        rows = melflow.open(corpus.write_rows(self.folder.name, "where", corpus.pipeline(root, sink, files=files)))
        train = rows.split_names.index("train")
        some = lambda is_so: [i for i in range(len(rows.path)) if rows.count[i] > 0 and is_so(i)]
        good = int(np.flatnonzero(rows.count > 0)[3])
        animal = lambda i: rows.path[i].split("/")[0]
        cases = [({"animal": "ant"}, lambda i: animal(i) == "ant"),
                 ({"animal": ["ant", "cat"]}, lambda i: animal(i) in ("ant", "cat")),
                 ({"label": ["bee"]}, lambda i: animal(i) == "bee"),
                 ({"animal": ("ant", "bee"), "label": "ant", "split": "train"},
                  lambda i: animal(i) == "ant" and rows.split[i] == train),
                 ({"path": rows.path[good]}, lambda i: i == good),
                 ({}, lambda i: True)]
        for where, is_so in cases:
            with self.subTest(where):
                expected = some(is_so)
                self.assertEqual(rows.select(where).tolist(), expected)
                batches = list(rows.batches(7, where=where, shuffle=False))
                self.assertEqual(sorted(i for b in batches for i in b["file"].tolist()), expected)
        self.assertEqual(sorted(i for b in rows.batches(7, split="train", where={"animal": "ant"}) for i in b["file"].tolist()),
                         some(lambda i: animal(i) == "ant" and rows.split[i] == train))
        state = rows.batches(7, where={"animal": "ant"}).state_dict()
        with self.assertRaisesRegex(ValueError, "would follow: .*rows is another"):
            rows.batches(7, where={"animal": "bee"}).load_state_dict(state)
        for where, error, text in [
                ({"anmal": "ant"}, ValueError, "where: there is no name 'anmal'. Did you mean 'animal'. There are: label, split, path, "),
                ({"animal": "and"}, ValueError, "where: there is no animal 'and'. Did you mean 'ant'. There are: ant, bee, cat"),
                ({"label": ["ant", "dog"]}, ValueError, "where: there is no label 'dog'; there are: ant, bee, cat"),
                ({"split": "test"}, ValueError, "where: there is no split 'test'; there are: train, val"),
                ({"animal": 3}, TypeError, "where: animal: 3: is no text and no list of texts"),
                ({"animal": []}, TypeError, "where: animal: .*: is no text and no list of texts"),
                ({"animal": "ant", "label": "bee"}, ValueError, "where: no recording with rows has all of ")]:
            with self.subTest(where), self.assertRaisesRegex(error, text):
                rows.batches(7, where=where)

    def test_files_of_splits_of_two_runs_are_told_apart(self):
        root, out = os.path.join(self.folder.name, "audio"), os.path.join(self.folder.name, "set.h5")
        sink = f"stage: hdf5_write, path: {out}, split_files: true, overwrite: true"
        train, val = out[:-3] + ".train.h5", out[:-3] + ".val.h5"

        def make(seed):
            splits = f", splits: ratio, split_seed: {seed}, split_ratios: {{train: 70, val: 30}}"
            corpus.write_rows(self.folder.name, "set", corpus.pipeline(root, sink, files=splits))

        make(1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            melflow.open(train)
        with open(val, "rb") as file:
            earlier = file.read()
        make(2)
        with open(val, "wb") as file:
            file.write(earlier)
        with self.assertWarnsRegex(UserWarning, "set.val.h5: this file is not of the same run as .*set.train.h5"):
            melflow.open(train)

    def test_ranks_together_are_one(self):
        rows = melflow.open(self.files["windows"])
        for ranks in (2, 3):
            one = [places(b) for b in rows.batches(8 * ranks, seed=4)]
            loaders = [rows.batches(8, seed=4, rank=r, world_size=ranks) for r in range(ranks)]
            parts = [[places(b) for b in loader] for loader in loaders]
            self.assertEqual({len(p) for p in parts}, {len(loaders[0])})
            together = [sum(batch, []) for batch in zip(*parts)]
            self.assertEqual(together[:-1], one[:-1])
            more = -len(one[-1]) % ranks
            self.assertEqual(together[-1], one[-1] + one[0][:more])  # the same number for each

    def test_no_sample_is_unseen_with_any_number_of_ranks(self):
        for name in ("windows", "whole"):
            rows = melflow.open(self.files[name])
            count = rows.batches().samples
            for size, ranks in ((5, 3), (8, 7), (64, 5), (1, 16), (4, count - 1), (2, count + 5), (3, 3 * count)):
                for more in ({}, dict(max_rows=3000), dict(bucket=40), dict(bucket=40, max_rows=3000)) if name == "whole" else ({},):
                    with self.subTest(name, size=size, ranks=ranks, more=more):
                        loaders = [rows.batches(size, seed=4, rank=r, world_size=ranks, **more) for r in range(ranks)]
                        batches = len(loaders[0])
                        parts = [[places(b) for b in loader] for loader in loaders]
                        seen = [tuple(s) for part in parts for batch in part for s in batch]
                        self.assertEqual(len(set(seen)), count)
                        self.assertLess(len(seen) - count, max(ranks, 2))
                        self.assertEqual({len(part) for part in parts}, {batches})
                        if "max_rows" not in more:
                            self.assertEqual(len({sum(map(len, part)) for part in parts}), 1)
                        # After a state at the end comes the next epoch.
                        if ranks < 8:
                            state = {**loaders[0].state_dict(), "epoch": 0, "delivered": count}
                            loaders[0].load_state_dict(state)
                            self.assertGreater(len(list(loaders[0])), 0)
                            self.assertEqual(loaders[0].epoch, 2)
                        if count < size * ranks and "max_rows" not in more:
                            with self.assertRaisesRegex(ValueError, f"drop_last: there are {count} samples, fewer than batch_size {size} for"):
                                rows.batches(size, rank=0, world_size=ranks, drop_last=True, **more)
                            continue
                        dropped = [sum(map(len, (places(b) for b in rows.batches(size, rank=r, world_size=ranks, drop_last=True, **more))))
                                   for r in range(min(ranks, 8))]
                        if not more:
                            self.assertEqual(set(dropped), {count // (size * ranks) * size})

    def test_a_state_goes_on_at_once_with_other_ranks(self):
        rows = melflow.open(self.files["windows"])
        whole = sum((places(b) for b in rows.batches(6, seed=4)), [])
        for stop in (0, 1, 9):
            one = rows.batches(3, seed=4, rank=1, world_size=2, workers=2)
            batches = iter(one)
            for _ in range(stop):
                next(batches)
            state = one.state_dict()
            batches.close()
            other = rows.batches(5, seed=4)
            other.load_state_dict(state)
            self.assertEqual(sum((places(b) for b in other), []), whole[6 * stop:])
        with self.assertRaisesRegex(ValueError, "other samples would follow: seed is 4 in the state and 5 here. Make it"):
            rows.batches(3, seed=5).load_state_dict(state)
        # Refuses a state of another corpus.
        other = melflow.open(self.files["odd"]).batches(3, seed=4)
        with self.assertRaisesRegex(ValueError, rf"samples is {len(rows)} in the state and {other.samples} here; rows is another"):
            other.load_state_dict(state)

    def test_epochs(self):
        rows = melflow.open(self.files["windows"])
        loader = rows.batches(8, seed=1)
        first, second = [sum((places(b) for b in loader), []) for _ in range(2)]
        self.assertNotEqual(first, second)
        self.assertEqual(sorted(first), sorted(second))
        self.assertEqual(sum((places(b) for b in rows.batches(8, seed=1, workers=3)), []), first)

    def test_a_misspelt_argument_is_told(self):
        rows = melflow.open(self.files["windows"])
        for method, options, said in ((rows.batches, {"shuffel": True}, "^batches has no argument 'shuffel'. Did you mean 'shuffle'"),
                                      (rows.samples, {"splits": "train"}, "^samples has no argument 'splits'. Did you mean 'split'")):
            with self.subTest(options), self.assertRaisesRegex(TypeError, said):
                method(**options)

    def test_damage_is_told(self):
        path = os.path.join(self.folder.name, "damaged.h5")
        with open(self.files["packed"], "rb") as good:
            data = bytearray(good.read())
        with h5py.File(self.files["packed"]) as file:
            info = file["mel"].id.get_chunk_info(2)
        data[info.byte_offset + 5] ^= 0xFF
        with open(path, "wb") as out:
            out.write(data)
        with self.assertRaisesRegex(melflow.RunError, "chunk 2 of the rows is damaged"):
            for _ in melflow.open(path).batches(8):
                pass
        with open(path, "wb") as out:
            out.write(b"nothing")
        with self.assertRaisesRegex(melflow.RunError, "damaged.h5: this is not an HDF5 file"):
            melflow.open(path)
        with h5py.File(path, "w") as file:
            file["x"] = [1]
        with self.assertRaisesRegex(melflow.RunError, "this is an HDF5 file, but none that melflow wrote"):
            melflow.open(path)


if __name__ == "__main__":
    unittest.main()
