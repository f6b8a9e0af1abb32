"""Statistics of each speaker, label or split (statistics_by), and rows scaled by them, beside numpy."""

import json
import os
import pathlib
import shutil
import unittest
import wave

import h5py
import melflow
import numpy as np

import corpus

COLUMNS = "columns: [speaker]"
WHO = ("ann", "Bob", "ann lee", "", "zoë")
SCALED = "normalize: true"


def groups_of(path):
    """Of HDF5 or .npy: the column, and by name frames, means and standard deviations."""
    if path.endswith(".npy"):
        with open(path[:-4] + ".index.json", encoding="utf-8") as file:
            by = json.load(file)["statistics_by"]
        column = by["column"]
    else:
        with h5py.File(path) as file:
            column = file["statistics"].attrs["by"]
            where = file["statistics/by_" + column]
            by = {name: where[name].asstr()[:].tolist() if name == "name" else where[name][:] for name in where}
    assert set(by) - {"column"} == {"name", "frames", "mean", "std"}
    return column, {name: (int(n), np.array(mean), np.array(std)) for name, n, mean, std in zip(by["name"], by["frames"], by["mean"], by["std"])}


class CmvnTest(corpus.CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.names = sorted(os.path.relpath(os.path.join(d, f), cls.root) for d, _, fs in os.walk(cls.root) for f in fs)
        cls.write_list("list.csv", cls.names)

    @classmethod
    def write_list(cls, name, names, who=lambda i: WHO[i % len(WHO)]):
        path = pathlib.Path(cls.folder.name, name)
        lines = [f"{at},{who(i)},{at.split('/')[0]},{'train' if i % 3 else 'test'}\n" for i, at in enumerate(names)]
        path.write_text("path,speaker,label,split\n" + "".join(lines), encoding="utf-8")
        return str(path)

    def listed(self, name="list.csv"):
        return f", manifest: {self.folder.name}/{name}, {COLUMNS}, labels: manifest, splits: manifest"

    def text(self, sink, files=None, **case):
        return corpus.pipeline(self.root, sink, files=self.listed() if files is None else files, **case).replace(", labels: top_dir", "")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def sink(self, name, more="statistics: all, statistics_by: speaker", stage="hdf5_write"):
        whole = "split_files: false, " if stage == "npy_write" and "split_files" not in more else ""
        return f"stage: {stage}, path: {self.path(name)}, overwrite: true, {whole}{more}"

    def expected(self, path, by):
        """By name: the rows of a file in float64, as frames."""
        with h5py.File(path) as file:
            rows = file[file.attrs["rows"]][:].astype(np.float64)
            texts = (file["columns/speaker"].asstr()[:] if by == "speaker" else
                     np.append(file[by + "s/name"].asstr()[:], "")[file["files/" + by][:]])
            out = {}
            for text, offset, count in zip(texts, file["files/offset"], file["files/count"]):
                if text and count:
                    out.setdefault(text, []).append(rows[offset:offset + count].reshape(-1, rows.shape[-1]))
        return {name: np.concatenate(parts) for name, parts in out.items()}

    def check(self, path, raw, by="speaker"):
        column, got = groups_of(path)
        want = self.expected(raw, by)
        self.assertEqual(column, by)
        self.assertEqual(list(got), sorted(want, key=os.fsencode))
        for name, (frames, mean, std) in got.items():
            self.assertEqual(frames, len(want[name]))
            np.testing.assert_allclose(mean, want[name].mean(0), rtol=1e-12)
            np.testing.assert_allclose(std, want[name].std(0), rtol=1e-10)

    def scaled(self, raw):
        """The rows of a file, scaled by numpy; of recordings without a speaker by the statistics of all."""
        want = self.expected(raw, "speaker")
        with h5py.File(raw) as file:
            rows = file[file.attrs["rows"]][:].astype(np.float64)
            everything = rows.reshape(-1, rows.shape[-1]).copy()
            for text, offset, count in zip(file["columns/speaker"].asstr()[:], file["files/offset"], file["files/count"]):
                of = want.get(text, everything)
                rows[offset:offset + count] = (rows[offset:offset + count] - of.mean(0)) / of.std(0)
        return rows

    def test_statistics_are_those_of_numpy(self):
        for what, by, more, case in (("frames", "speaker", "", {}), ("windows", "speaker", "", corpus.WINDOWS), ("label", "label", "", {}),
                                     ("split", "split", ", statistics: train", {}), ("half", "speaker", ", dtype: float16", {}),
                                     ("packed", "speaker", ", compression: deflate", {})):
            with self.subTest(what):
                options = f"statistics_by: {by}" + (more if "statistics:" in more else ", statistics: all" + more)
                self.run_program(self.text(self.sink("a.h5", options), **case))
                self.check(self.path("a.h5"), self.path("a.h5"), by)
        self.run_program(self.text(self.sink("n.h5")) + f"  npy: {{{self.sink('n.npy', stage='npy_write')}, from: rows}}\n")
        one, other = (groups_of(self.path(name)) for name in ("n.h5", "n.npy"))
        self.assertEqual(str(one), str(other))
        self.assertEqual(melflow.open(self.path("n.npy")).group_mean.tobytes(), melflow.open(self.path("n.h5")).group_mean.tobytes())
        self.program("verify", self.path("n.h5"))
        self.program("verify", self.path("n.npy"))

    def test_a_file_for_each_split_has_those_of_all(self):
        self.run_program(self.text(self.sink("s.h5", "statistics: train, statistics_by: speaker, split_files: true")))
        self.run_program(self.text(self.sink("whole.h5", "statistics: train, statistics_by: speaker")))
        want = str(groups_of(self.path("whole.h5")))
        self.assertEqual([str(groups_of(self.path(f"s.{split}.h5"))) for split in ("train", "test")], [want] * 2)

    def test_same_bytes_whatever_the_run(self):
        """With any number of workers, and by a job."""
        for more in ("", ", " + SCALED):
            for stage, ending in (("hdf5_write", "h5"), ("npy_write", "npy")):
                with self.subTest(stage, more=more):
                    def of(name, stage=stage, ending=ending, more=more):
                        return self.text(self.sink(f"{name}.{ending}", "statistics: all, statistics_by: speaker" + more, stage))
                    def read(name, ending=ending):
                        path = self.path(f"{name}.{ending}")
                        return melflow.open(path)[:].tobytes(), melflow.open(path).group_mean.tobytes(), str(groups_of(path))
                    self.run_program(of("one") + "workers: 1\n")
                    self.run_program(of("four") + "workers: 4\n")
                    self.assertEqual(read("one"), read("four"))
                    job = self.path("job")
                    shutil.rmtree(job, ignore_errors=True)
                    self.run_program(of("job"), "plan", "-o", job, "--part", "200KiB", code=0)
                    self.program("work", job)
                    self.program("merge", job, code=3, cwd=os.path.dirname(job))
                    self.assertEqual(read("one"), read("job"))

    def test_a_run_that_goes_on_has_those_of_the_whole(self):
        text = self.text(self.sink("killed.npy", "statistics: all, statistics_by: speaker, checkpoint: 1, " + SCALED, "npy_write"))
        self.run_program(text)
        whole = {name: pathlib.Path(self.path(name)).read_bytes() for name in ("killed.npy", "killed.index.npy", "killed.index.json")}
        for name in whole:
            os.remove(self.path(name))
        self.kill(text, self.path("killed.npy.part"), 500_000)
        self.run_program(text)
        self.assertEqual({name: pathlib.Path(self.path(name)).read_bytes() for name in whole}, whole)

    def test_an_update_has_those_of_a_run(self):
        for stage, ending in (("hdf5_write", "h5"), ("npy_write", "npy")):
            with self.subTest(stage):
                self.write_list("some.csv", self.names[:40])
                sink = self.sink("u." + ending, "statistics: all, statistics_by: speaker, max_dropped: 100%", stage)
                self.run_program(self.text(sink, self.listed("some.csv")))
                before = groups_of(self.path("u." + ending))[1]
                # Some are gone, others new, and all are other people's.
                self.write_list("some.csv", self.names[10:], lambda i: WHO[(i // 2) % len(WHO)])
                self.run_program(self.text(sink, self.listed("some.csv")), "update")
                self.run_program(self.text(self.sink("f." + ending, "statistics: all, statistics_by: speaker", stage), self.listed("some.csv")))
                got, want = (groups_of(self.path(f"{name}.{ending}"))[1] for name in "uf")
                self.assertEqual(str(got), str(want))
                self.assertNotEqual(str(got), str(before))

    def test_rows_are_normalised_by_speaker(self):
        for case in ({}, corpus.WINDOWS):
            self.run_program(self.text(self.sink("raw.h5"), **case))
            self.run_program(self.text(self.sink("done.h5", "statistics: all, statistics_by: speaker, " + SCALED), **case))
            want = self.scaled(self.path("raw.h5"))
            with h5py.File(self.path("done.h5")) as file:
                rows = file[file.attrs["rows"]][:]
                self.assertTrue(file["statistics"].attrs["applied"])
            np.testing.assert_allclose(rows, want, atol=1e-5)
            self.assertEqual(str(groups_of(self.path("raw.h5"))), str(groups_of(self.path("done.h5"))))
            self.program("verify", self.path("done.h5"), "--recompute", "100%")
            # The stage does the same by the file, for rows that are made later.
            scaled = "  scaled: {stage: normalize, from: rows, by: speaker, file: %s}\n" % self.path("raw.h5")
            text = self.text(self.sink("late.h5", "statistics: none"), **case).replace("from: rows}", "from: scaled}")
            self.run_program(text.replace("  out:", scaled + "  out:"))
            with h5py.File(self.path("late.h5")) as file:
                self.assertEqual(file[file.attrs["rows"]][:].tobytes(), rows.tobytes())

    def test_a_repair_scales_by_what_there_was(self):
        path = self.path("r.npy")
        text = self.text(self.sink("r.npy", "statistics: all, statistics_by: speaker, " + SCALED, "npy_write"))
        self.run_program(text)
        whole = pathlib.Path(path).read_bytes()
        damaged = bytearray(whole)
        damaged[-8000] ^= 1
        pathlib.Path(path).write_bytes(damaged)
        self.program("verify", path, code=1)
        self.program("repair", path)
        self.assertEqual(pathlib.Path(path).read_bytes(), whole)

    def test_a_recording_of_a_speaker_that_the_file_lacks_fails(self):
        self.run_program(self.text(self.sink("known.h5")))
        self.write_list("others.csv", self.names, lambda i: "carl" if i == 3 else WHO[i % len(WHO)])
        text = self.text(self.sink("o.h5", "statistics: none"), self.listed("others.csv")).replace("from: rows}", "from: scaled}")
        stage = "  scaled: {stage: normalize, from: rows, by: speaker, file: %s}\n" % self.path("known.h5")
        self.run_program(text.replace("  out:", stage + "  out:"))
        with h5py.File(self.path("o.h5")) as file:
            reasons = {p: r for p, r in zip(file["remarks/path"].asstr()[:], file["remarks/reason"].asstr()[:])}
        self.assertRegex(reasons[self.names[3]], r"known.h5 has no statistics of the speaker 'carl'")

    def test_batches(self):
        for case in ({}, corpus.WINDOWS):
            for stage, ending in (("hdf5_write", "h5"), ("npy_write", "npy")):
                self.run_program(self.text(self.sink("raw.h5"), **case) + f"  npy: {{{self.sink('raw.npy', stage='npy_write')}, from: rows}}\n")
                want = self.scaled(self.path("raw.h5"))
                rows = melflow.open(self.path("raw." + ending))
                seen = 0
                for batch in rows.batches(7, normalize="speaker", seed=3):
                    for k, file in enumerate(batch["file"]):
                        first = rows.offset[file] + (batch["offset"][k] if "length" not in batch else 0)
                        n = batch["length"][k] if "length" in batch else 1
                        got = batch["mel"][k][:n] if "length" in batch else batch["mel"][k:k + 1]
                        np.testing.assert_allclose(got, want[first:first + n], atol=1e-5)
                        seen += n
                self.assertGreaterEqual(seen, len(rows))
        sets = melflow.open({"mel": self.path("raw.h5"), "again": self.path("raw.npy")})
        batch = next(iter(sets.batches(5, normalize={"mel": "speaker"})))
        places = rows.offset[batch["file"]] + batch["offset"]
        np.testing.assert_allclose(batch["mel"], want[places], atol=1e-5)
        np.testing.assert_array_equal(batch["again"], rows[:][places])
        with self.assertRaisesRegex(ValueError, r"no statistics by 'label' to normalize by.*`statistics_by: label`; this one has those by 'speaker'"):
            rows.batches(normalize="label")
        self.run_program(self.text(self.sink("plain.h5", "statistics: all")))
        with self.assertRaisesRegex(ValueError, r"no statistics by 'speaker' to normalize by"):
            melflow.open(self.path("plain.h5")).batches(normalize="speaker")

    def test_loader(self):
        self.run_program(self.text(self.sink("raw.h5")))
        want = self.scaled(self.path("raw.h5"))
        with h5py.File(self.path("raw.h5")) as file:
            offsets, counts = file["files/offset"][:], file["files/count"][:]
        stage = "  scaled: {stage: normalize, from: rows, by: speaker, file: %s}\n" % self.path("raw.h5")
        text = self.text("stage: batches").replace("from: rows}", "from: scaled}").replace("  out:", stage + "  out:")
        seen = 0
        for batch in melflow.Loader(text, batch_size=4, shuffle=16):
            for k, i in enumerate(batch["file"]):
                n = batch["mel_length" if "mel_length" in batch else "length"][k]
                self.assertEqual(n, counts[i])
                np.testing.assert_allclose(batch["mel"][k][:n], want[offsets[i]:offsets[i] + n], atol=1e-5)
                seen += 1
        self.assertEqual(seen, (counts > 0).sum())

    def test_refusals(self):
        for options, code, why in (
                ("statistics: all, statistics_by: who", 1, r"statistics_by: the list has no column 'who'.*there are speaker"),
                ("statistics_by: speaker", 78, "needs the statistics of all rows, .*; set statistics: train")):
            self.assertRegex(self.run_program(self.text(self.sink("x.h5", options)), code=code), why)
        said = self.run_program(self.text(self.sink("x.h5", "statistics: all, statistics_by: label"), self.listed() + ", label_separator: '|'"), code=1)
        self.assertIn("statistics_by: recordings may have several labels; name a column of the list", said)
        self.run_program(self.text(self.sink("plain.h5", "statistics: all")))
        for options, why in ((f"by: speaker, file: {self.path('plain.h5')}", "plain.h5 has no statistics by speaker; make it with statistics_by: speaker"),):
            text = self.text(self.sink("x.h5", "statistics: none")).replace("from: rows}", "from: scaled}")
            said = self.run_program(text.replace("  out:", f"  scaled: {{stage: normalize, from: rows, {options}}}\n  out:"), code=78)
            self.assertIn(why, said)
        self.assertFalse(os.path.exists(self.path("x.h5")))

    def test_too_many_groups_are_refused_at_the_start(self):
        wav, path = self.path("long.wav"), self.path("many.csv")
        with wave.open(wav, "wb") as out:
            out.setparams((1, 2, 8000, 0, "NONE", ""))
            out.writeframes(bytes(16000))
        pathlib.Path(path).write_text("path,start,end,id\n" + "".join(f"long.wav,{i / 2000},{(i + 900) / 2000},u{i}\n" for i in range(1100)),
                                      encoding="utf-8")
        text = f"""version: 1
graph:
  files: {{stage: file_list, root: {self.folder.name}, manifest: {path}, utterances: {{}}, columns: [id]}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  segment: {{stage: segment, from: decode}}
  batch: {{stage: batch, from: segment}}
  rows: {{stage: mel, from: batch, sample_rate: 8000, n_fft: 8192, hop: 80, output: spectrogram}}
  out: {{{self.sink("many.h5", "statistics: all, statistics_by: id")}, from: rows}}
"""
        said = self.run_program(text, code=1)
        self.assertRegex(said, r"there are 1100 different texts in 'id', and with 4097 columns each at most 1023 may be")
        self.assertFalse(os.path.exists(self.path("many.h5")))


if __name__ == "__main__":
    unittest.main()
