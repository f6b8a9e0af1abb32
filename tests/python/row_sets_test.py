"""melflow.open of several files at once, beside h5py."""

import os
import tempfile
import unittest

import h5py
import melflow
import numpy as np

import corpus


class RowSetsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = os.path.join(cls.folder.name, "audio")
        corpus.make_corpus(cls.root, 40)
        cls.whole = cls.make("whole")
        cls.windows = cls.make("windows", segment=", length: 2000, hop: 1500")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def make(cls, name, **options):
        """Runs a pipeline with two sinks; gives their files."""
        files = {"mel": cls.path(name + ".h5"), "audio": cls.path(name + "_audio.h5")}
        sink = f"stage: hdf5_write, path: {files['mel']}, statistics: train"
        splits = ", splits: ratio, split_ratios: {train: 70, val: 30}"
        text = corpus.pipeline(cls.root, sink, files=splits, **options) + corpus.AUDIO.format(path=files["audio"])
        corpus.write_rows(cls.folder.name, name, text)
        return files

    def expected(self, files):
        """The rows of each recording that both files have rows of, by name."""
        out = {}
        for name, path in files.items():
            with h5py.File(path) as file:
                rows = file[file.attrs["rows"]][:]
                offset, count = file["files/offset"][:], file["files/count"][:]
                out[name] = [rows[o:o + n] for o, n in zip(offset, count)]
        return out

    def test_recordings_come_together(self):
        expected = self.expected(self.whole)
        both = melflow.open(self.whole)
        there = [i for i, rows in enumerate(expected["mel"]) if len(rows)]
        self.assertEqual(len(both), len(there))
        for name in self.whole:
            np.testing.assert_array_equal(both.recording(3)[name], expected[name][3])
            np.testing.assert_array_equal(both[-1][name], expected[name][there[-1]])
        for options in ({}, {"bucket": 16}, {"workers": 2, "rank": 1, "world_size": 2}, {"shuffle": False}):
            with self.subTest(options):
                loader = both.batches(5, seed=3, **options)
                one = melflow.open(self.whole["mel"]).batches(5, seed=3, **options)
                seen, alone = [], []
                for batch in loader:
                    self.assertEqual(sorted(batch), sorted(["mel", "audio", "mel_length", "audio_length", "path", "label", "split", "file",
                                                            "offset"]))
                    for k, i in enumerate(batch["file"]):
                        self.assertEqual(batch["path"][k], both.path[i])
                        for name in self.whole:
                            n = batch[name + "_length"][k]
                            np.testing.assert_array_equal(batch[name][k, :n], expected[name][i])
                            self.assertFalse(batch[name][k, n:].any())
                    seen.append(batch["file"].tolist())
                for batch in one:
                    alone.append(batch["file"].tolist())
                self.assertEqual(seen, alone)  # in the order of the first file by itself
                self.assertEqual(len(seen), len(loader))

    def test_windows_come_together(self):
        expected = self.expected(self.windows)
        both = melflow.open(self.windows)
        self.assertEqual(len(both), sum(len(rows) for rows in expected["mel"]))
        for name in self.windows:
            np.testing.assert_array_equal(both[len(expected[name][0]) + 1][name], expected[name][1][1])
        seen = 0
        for batch in both.batches(7, seed=1, split="val", normalize=["mel"]):
            self.assertEqual({both.split_names[s] for s in batch["split"]}, {"val"})
            for k, (i, o) in enumerate(zip(batch["file"], batch["offset"])):
                np.testing.assert_array_equal(batch["audio"][k], expected["audio"][i][o])
                scaled = (expected["mel"][i][o] - both.rows["mel"].mean) / both.rows["mel"].std
                np.testing.assert_allclose(batch["mel"][k], scaled, rtol=1e-4, atol=1e-4)
            seen += len(batch["file"])
        self.assertEqual(seen, both.batches(7, split="val").samples)
        # Windows as recordings, combined with frames of whole recordings.
        mixed = melflow.open({"mel": self.whole["mel"], "audio": self.windows["audio"]})
        with self.assertRaisesRegex(ValueError, "take recordings=True"):
            mixed.batches(4)
        batch = next(iter(mixed.batches(4, recordings=True, shuffle=False)))
        np.testing.assert_array_equal(batch["audio"][0, :batch["audio_length"][0]], expected["audio"][batch["file"][0]])

    def test_a_state_goes_on(self):
        both = melflow.open(self.windows)
        loader = both.batches(6, seed=4)
        whole = [list(zip(b["file"], b["offset"])) for b in loader]
        self.assertEqual(loader.epoch, 1)
        loader.set_epoch(0)
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        state = loader.state_dict()
        batches.close()
        other = both.batches(6, seed=4)
        other.load_state_dict(state)
        self.assertEqual([list(zip(b["file"], b["offset"])) for b in other], whole[3:])
        with self.assertRaisesRegex(ValueError, "other samples would follow: seed is 4 "):
            both.batches(6, seed=5).load_state_dict(state)

    def test_what_does_not_belong_together_is_refused(self):
        mel, audio = self.windows["mel"], self.windows["audio"]
        changed, fewer, labels = self.path("changed.h5"), self.path("fewer.h5"), self.path("labels.h5")
        for path in (changed, fewer, labels):
            with open(audio, "rb") as source, open(path, "wb") as to:
                to.write(source.read())
        with h5py.File(changed, "r+") as file:
            file["files/modified"][5] += 1
        with h5py.File(fewer, "r+") as file:
            paths = file["files/path"].asstr()[:]
            paths[2] = "other.wav"
            file["files/path"][:] = paths
        with h5py.File(labels, "r+") as file:
            file["files/label"][0] = 2
        for path in (changed, fewer, labels):
            corpus.rehash(path)
        for files, error, said in (
                ({"mel": mel, "audio": changed}, ValueError, "1 recordings were others when these were made, such as "),
                ({"mel": mel, "audio": fewer}, ValueError, "of other recordings: .*\\.wav is in the first only"),
                ({"mel": mel, "audio": labels}, ValueError, "have other label, "),
                ({"label": mel}, ValueError, "'label' cannot be the name of rows"),
                ({}, TypeError, "come by name"),
                ({"mel": "train.yaml"}, melflow.RunError, "train.yaml: there is no such file"),
        ):
            with self.subTest(said), self.assertRaisesRegex(error, said):
                melflow.open(files)
        with self.assertRaisesRegex(TypeError, "these are for a pipeline: store"):
            melflow.open({"mel": mel}, store="1GiB")
        both = melflow.open(self.windows)
        for options, said in ((dict(split="test"), "there are: train, val"), (dict(normalize=["mfcc"]), "no rows 'mfcc'; there are: mel, audio"),
                              (dict(normalize=True), "audio: there are no statistics"), (dict(bucket=4), "^bucket is for whole recordings")):
            with self.subTest(said), self.assertRaisesRegex(ValueError, said):
                both.batches(4, **options)
        # Windows of different lengths do not match.
        other = self.make("other", segment=", length: 3000")
        with self.assertRaisesRegex(ValueError, "windows in one and .* in the other"):
            melflow.open({"mel": mel, "audio": other["audio"]})

    def test_what_only_one_has_is_left_out(self):
        files = {"mel": self.path("part.h5"), "audio": self.whole["audio"]}
        sink = f"stage: hdf5_write, path: {files['mel']}"
        text = corpus.pipeline(self.root, sink, segment=", min_length: 20000", files=", splits: ratio, split_ratios: {train: 70, val: 30}")
        corpus.write_rows(self.folder.name, "part", text)
        both, expected = melflow.open(files), self.expected(files)
        there = {i for i, rows in enumerate(expected["mel"]) if len(rows)}
        self.assertTrue(0 < len(there) < 38)
        seen = {i for batch in both.batches(4) for i in batch["file"]}
        self.assertEqual(seen, there)


if __name__ == "__main__":
    unittest.main()
