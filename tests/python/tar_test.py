"""The stage tar_write, beside h5py, by tarfile, and by webdataset where it is installed; an export has the same members
(exports_test.py)."""

import glob
import importlib.util
import io
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tarfile
import unittest
import warnings

import h5py
import melflow
import numpy as np

import corpus

LONG = "a" * 70 + "/" + "b" * 60
SPLITS = ', splits: ratio, split_ratios: {train: 70, val: 30}'
SINK = "stage: tar_write, path: '{out}', overwrite: true"
CASES = {
    "whole": (", statistics: all, normalize: true", {}),
    "windows": (", dtype: float16", corpus.WINDOWS),
    "waves": (", dtype: int16", dict(chain=corpus.SAMPLES)),
}


def members(paths):
    """The members of archives in turn, by name."""
    out = {}
    for path in paths:
        with tarfile.open(path) as file:
            for member in file:
                assert member.name not in out, member.name
                assert (member.mtime, member.uid, member.gid, member.mode) == (0, 0, 0, 0o644), member
                out[member.name] = file.extractfile(member).read()
    return out


def contents(folder):
    return {name: pathlib.Path(folder, name).read_bytes() for name in sorted(os.listdir(folder)) if not name.endswith(".json")}


class TarTest(corpus.CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.renames(os.path.join(cls.root, "ant", "003.wav"), os.path.join(cls.root, "ant", LONG + ".wav"))
        os.rename(os.path.join(cls.root, "ant", "006.wav"), os.path.join(cls.root, "ant", os.fsdecode(b"caf\xe9.wav")))

    def text(self, path, more="", **case):
        return corpus.pipeline(self.root, SINK.format(out=path) + more, **case)

    def test_values_are_those_of_hdf5(self):
        for name, (more, case) in CASES.items():
            for shards in ("a.tar", "a-{08..12}.tar"):
                with self.subTest(name, shards=shards):
                    out = self.out("values")
                    h5 = out + ".h5"
                    self.run_program(self.text(os.path.join(out, shards), more, **case) +
                                     f"  h5: {{stage: hdf5_write, from: rows, overwrite: true, path: {h5}{more}}}\n")
                    paths = sorted(glob.glob(os.path.join(out, "*.tar")))
                    self.assertEqual(len(paths), 1 if shards == "a.tar" else 5)
                    self.assertEqual(sorted(set(os.listdir(out)) - set(map(os.path.basename, paths))), ["a.index.json", "a.index.npy"])
                    there = members(paths)
                    with h5py.File(h5) as file:
                        rows = file[file.attrs["rows"]][:]
                        listed = zip(file["files/path"][:], file["files/offset"], file["files/count"], file["files/label"],
                                     file["files/duration"])
                        labels = file["labels/name"].asstr()[:]
                        for path, offset, count, label, duration in listed:
                            path = os.fsdecode(path)
                            key = path[:-4]
                            if count == 0:
                                self.assertNotIn(key + ".json", there)
                                continue
                            array = np.load(io.BytesIO(there.pop(key + ".npy")))
                            want = rows[offset:offset + count]
                            self.assertEqual((array.dtype, array.shape, array.tobytes()), (want.dtype, want.shape, want.tobytes()))
                            about = json.loads(there.pop(key + ".json"))
                            self.assertEqual(about, {"path": path, "label": labels[label], "rows": count, "sample_rate": 8000,
                                                     "duration": duration, "feature_fingerprint": file.attrs["feature_fingerprint"]})
                            self.assertEqual(there.pop(key + ".cls"), b"%d" % label)
                    self.assertEqual(there, {})
                    sizes = [os.path.getsize(path) for path in paths]
                    self.assertLess(max(sizes) - min(sizes), 2.2 * 8000 * 60 * 2 + 10_000)  # the longest recording
                    self.assertEqual([size % 512 for size in sizes], [0] * len(sizes))
                    for path in paths:
                        subprocess.run(["tar", "tf", path], check=True, capture_output=True)

    @unittest.skipUnless(importlib.util.find_spec("webdataset"), "webdataset: not installed")
    def test_webdataset_reads_it(self):
        import webdataset
        out = self.out("web")
        self.run_program(self.text(os.path.join(out, "w-{0..2}.tar"), files=SPLITS))
        read = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # of the library's files
            for split in ("train", "val"):
                shards = os.path.join(out, "w-{0..2}." + split + ".tar")
                samples = list(webdataset.WebDataset(shards, shardshuffle=False).decode())
                self.assertTrue(all(s["json"]["split"] == split for s in samples))
                read += samples
        index = np.concatenate([np.load(os.path.join(out, f"w.{split}.index.npy")) for split in ("train", "val")])
        self.assertEqual(sorted(s["npy"].shape for s in read), sorted((n, 20) for n in index["count"] if n))

    @unittest.skipUnless(importlib.util.find_spec("webdataset") and importlib.util.find_spec("torch"), "webdataset or torch: not installed")
    def test_torch_loads_it_by_several_workers(self):
        import torch
        import webdataset
        out = self.out("torch")
        self.run_program(self.text(os.path.join(out, "t-{0..3}.tar"), **corpus.WINDOWS))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = webdataset.WebDataset(os.path.join(out, "t-{0..3}.tar"), shardshuffle=False).decode().to_tuple("npy", "json")
            loader = torch.utils.data.DataLoader(samples, batch_size=None, num_workers=2)
            read = {about["path"]: rows.numpy() for rows, about in loader}
        index = np.load(os.path.join(out, "t.index.npy"))
        self.assertEqual(sorted(rows.shape for rows in read.values()), sorted((n, 26, 20) for n in index["count"] if n))

    def test_columns(self):
        table = os.path.join(self.folder.name, "list.csv")
        names = sorted(os.listdir(os.path.join(self.root, "bee")))
        pathlib.Path(table).write_text("path,text,rows\n" + "".join(f"bee/{n},said {n},x\n" for n in names), encoding="utf-8")
        out = self.out("columns")
        self.run_program(self.text(os.path.join(out, "c.tar"), files=f", manifest: {table}, columns: [text, rows]").replace(
            ", labels: top_dir", ""))
        there = members([os.path.join(out, "c.tar")])
        self.assertEqual({n: d for n, d in there.items() if n.endswith(".txt")},
                         {n[:-5] + ".txt": f"said {n[4:-5]}.wav".encode() for n in there if n.endswith(".json")})
        about = json.loads(there["bee/001.json"])
        self.assertEqual((about["text"], about["rows_"], type(about["rows"])), ("said 001.wav", "x", int))
        self.assertFalse([n for n in there if n.endswith(".cls")])

    def test_same_bytes_whatever_the_run(self):
        more = ", statistics: train, normalize: true"
        a, b, c = (self.out(name) for name in ("same1", "same2", "same3"))
        for folder, workers in ((a, 1), (b, 4)):
            self.run_program(self.text(os.path.join(folder, "s-{00..03}.tar"), more, files=SPLITS) + f"workers: {workers}\n")
        one = contents(a)
        self.assertEqual(len(one), 10)
        self.assertEqual(one, contents(b))
        job = os.path.join(self.folder.name, "job")
        self.run_program(self.text(os.path.join(c, "s-{00..03}.tar"), more, files=SPLITS), "plan", "-o", job, "--part", "200KiB", code=0)
        self.program("work", job)
        self.program("merge", job, code=3, cwd=os.path.dirname(job))
        self.assertEqual(one, contents(c))

    def test_rows_moved_apart_halfway_are_made_again(self):
        """A run that ends while it moves the rows apart, for want of room, leaves work that the next one goes on with."""
        for path in ("h.tar", "h-{0..2}.tar"):
            with self.subTest(path):
                whole, out = self.out("whole"), self.out("halfway")
                self.run_program(self.text(os.path.join(whole, path)))
                rows = np.load(os.path.join(whole, "h.index.npy"))["count"].sum() * 80
                text = self.text(os.path.join(out, path))
                room = int(rows + 500) if path == "h.tar" else int(rows // 2)
                said = self.run_program(text, code=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
                self.assertRegex(said, "tar.part.*File too large")
                self.assertFalse(glob.glob(os.path.join(out, "*.tar")))
                self.run_program(text)
                self.assertEqual(contents(out), contents(whole))

    def test_work_of_a_killed_run_is_known(self):
        whole, out = self.out("known"), self.out("left")
        self.run_program(self.text(os.path.join(whole, "l-{0..2}.tar")))
        for name in os.listdir(whole):
            shutil.copy(os.path.join(whole, name), os.path.join(out, name + ".part"))
        self.run_program(self.text(os.path.join(out, "l-{0..2}.tar")))
        self.assertEqual(contents(out), contents(whole))

    def test_no_shard_is_empty(self):
        # A recording of 60 s has more rows than several shards.
        for files in ("", SPLITS):
            out = self.out("full")
            self.run_program(self.text(os.path.join(out, "f-{00..11}.tar"), files=files))
            paths = sorted(glob.glob(os.path.join(out, "*.tar")))
            self.assertEqual(len(paths), 24 if files else 12)
            for path in paths:
                self.assertTrue(members([path]), path)
        out = self.out("many")
        for files, why in (("", "there are 1500 shards for 60 recordings, and none may be empty; name at most 60 in"),
                           (SPLITS, "1500 shards for [0-9]+ recordings of the split train")):
            self.assertRegex(self.run_program(self.text(os.path.join(out, "m-{0000..1499}.tar"), files=files), code=1), why)
        self.assertEqual(os.listdir(out), [])

    def test_names_by_a_column(self):
        table = os.path.join(self.folder.name, "ids.csv")
        names = sorted(os.listdir(os.path.join(self.root, "bee")))
        pathlib.Path(table).write_text("path,id,who\n" + "".join(f"bee/{n},a.{n[:-4]},x\n" for n in names), encoding="utf-8")
        out = self.out("named")
        text = self.text(os.path.join(out, "n.tar"), ", utterance: id", files=f", manifest: {table}, columns: [id, who]").replace(
            ", labels: top_dir", "")
        self.run_program(text)
        self.assertIn("a%2E001.npy", members([os.path.join(out, "n.tar")]))
        for column, why in (("who", "tar_write.utterance: bee/.* has the name 'x', which another one has"), ("what", "no column 'what'")):
            self.assertRegex(self.run_program(text.replace("utterance: id", "utterance: " + column), code=1), why)

    def test_a_result_is_a_member(self):
        out = self.out("results")
        h5 = out + ".h5"
        self.run_program(corpus.varied(self.text(os.path.join(out, "r-{0..9}.tar")) +
                                       f"  h5: {{stage: hdf5_write, from: rows, overwrite: true, path: {h5}}}\n"))
        there = {}
        for path in sorted(glob.glob(os.path.join(out, "*.tar"))):
            of_shard = members([path])
            abouts = [name for name in of_shard if name.endswith(".json")]
            self.assertEqual(len(abouts) % 2, 0)  # both results of a recording lie together
            there.update(of_shard)
        rows, n = melflow.open(h5), 0
        for i in np.flatnonzero(rows.count).tolist():
            for said, values in rows.results(i):
                key = f"{rows.path[i][:-4]}-{said['number']['takes']}"
                self.assertEqual(np.load(io.BytesIO(there[key + ".npy"])).tobytes(), values.tobytes(), key)
                about = json.loads(there[key + ".json"])
                self.assertEqual((about["result"], about["rows"]), (said, len(values)))
                n += 1
        self.assertEqual(3 * n, len(there))

    def test_names_of_results_are_those_of_an_export(self):
        """Each is one of its own, also where a recording is called as the result of another would be."""
        out, root = self.out("alike"), self.out("alike_audio")
        for name in ("a.wav", "a-0.wav", "a-1.wav"):
            shutil.copy(os.path.join(self.root, "bee", "001.wav"), os.path.join(root, name))
        h5 = out + ".h5"
        text = corpus.varied(self.text(os.path.join(out, "r.tar")) + f"  h5: {{stage: hdf5_write, from: rows, overwrite: true, path: {h5}}}\n")
        self.run_program(text.replace(self.root, root))
        folder = os.path.join(out, "exported")
        melflow.export(h5, folder, "tar")
        there = members([os.path.join(out, "r.tar")])
        self.assertEqual(there, members(glob.glob(os.path.join(folder, "*.tar"))))
        self.assertEqual(sum(name.endswith(".npy") for name in there), 6)

    def test_a_run_without_rows_replaces_nothing(self):
        out = self.out("kept")
        text = self.text(os.path.join(out, "k-{0..1}.tar"))
        self.run_program(text)
        before = contents(out)
        silent = os.path.join(self.folder.name, "silent")
        os.mkdir(silent)
        for name in ("a.wav", "b.wav"):
            shutil.copy(os.path.join(self.root, "bee", "007.wav"), os.path.join(silent, name))  # has no samples: skipped
        said = self.run_program(text.replace(self.root, silent), code=1)
        self.assertIn("an existing output stays as it was", said)
        self.assertEqual(contents(out), before)

    def test_refusals(self):
        out = self.out("refused")
        for path, more, why in (("a.tgz", "", "does not end in .tar"), ("a-{0..9.tar", "", "braces stand for shards"),
                                ("a-{9..0}.tar", "", "braces stand for shards"), ("a-{0..10}.tar", "", "braces stand for shards"),
                                ("a-{0000..4096}.tar", "", "at most 4096 in all"), ("a-{0..1}-{0..1}.tar", "", "braces stand for"),
                                ("a-{x..y}.tar", "", "braces stand for shards"), ("a.tar", ", dtype: bfloat16", "have no bfloat16")):
            with self.subTest(path):
                self.assertRegex(self.run_program(self.text(os.path.join(out, path), more), code=78), why)
        self.assertEqual(os.listdir(out), [])
        text = self.text(os.path.join(out, "a.tar"))
        self.run_program(text)
        self.assertIn("archives cannot be updated", self.run_program(text, "update", code=1))
        self.assertIn("are read by webdataset or tarfile", self.program("inspect", os.path.join(out, "a.tar"), code=1))
        said = self.run_program(text.replace("overwrite: true", "overwrite: false"), code=1)
        self.assertIn("a.tar: exists already", said)
        stranger = os.path.join(out, "b-1.tar.part")
        pathlib.Path(stranger).write_text("a letter\n" * 100, encoding="utf-8")
        said = self.run_program(self.text(os.path.join(out, "b-{0..1}.tar")), code=1)
        self.assertIn("b-1.tar.part: this exists already and is not melflow's", said)
        self.assertTrue(os.path.exists(stranger))


if __name__ == "__main__":
    unittest.main()
