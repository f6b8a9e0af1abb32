"""melflow.export, beside h5py and the libraries that read the formats. A format whose library is not installed is skipped."""

import contextlib
import csv
import importlib.util
import io
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
import warnings
import wave

import h5py
import melflow
import numpy as np

import corpus

SPLITS = ', splits: ratio, split_ratios: {train: 70, val: 30}'
CASES = {
    "whole": dict(sink="statistics: all", files=SPLITS),
    "windows": dict(sink="dtype: float32", segment=", length: 2000, hop: 1500", files=SPLITS),
    "half": dict(sink="dtype: float16"),
    "brain": dict(sink="dtype: bfloat16"),
    "int16": dict(sink="dtype: int16", segment=", length: 2000", chain=corpus.SAMPLES),
    "waves": dict(sink="dtype: int16", chain=corpus.SAMPLES),
}


def needs(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"{', '.join(missing)}: not installed")


def members(folder):
    """The members of all archives of a folder, by name; JSON as an object, whose columns have no order."""
    out = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".tar"):
            with tarfile.open(os.path.join(folder, name)) as file:
                out.update({member.name: file.extractfile(member).read() for member in file})
    return {name: json.loads(data) if name.endswith(".json") else data for name, data in out.items()}


class ExportsTest(corpus.CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.rename(os.path.join(cls.root, "ant", "003.wav"), os.path.join(cls.root, "ant", "a b.c.wav"))
        os.rename(os.path.join(cls.root, "ant", "006.wav"), os.path.join(cls.root, "ant", os.fsdecode(b"caf\xe9.wav")))
        os.rename(os.path.join(cls.root, "ant", "009.wav"), os.path.join(cls.root, "ant", "naïve.wav"))
        os.rename(os.path.join(cls.root, "ant", "027.wav"), os.path.join(cls.root, "ant", "a\u3000b.wav"))
        os.rename(os.path.join(cls.root, "ant", "015.wav"), os.path.join(cls.root, "ant", ".wav"))
        cls.files = {}
        for name, case in CASES.items():
            case = dict(case)
            sink = f"stage: hdf5_write, path: {cls.folder.name}/{name}.h5, {case.pop('sink')}"
            cls.files[name] = corpus.write_rows(cls.folder.name, name, corpus.pipeline(cls.root, sink, **case))

    def exports(self, format, *cases):
        """For each case: the folder, by number the rows as h5py has them and the path, and the names in recordings.csv."""
        for case in cases or CASES:
            with h5py.File(self.files[case]) as file:
                folder = os.path.join(self.folder.name, f"{case}.{format}")
                done = melflow.export(self.files[case], folder, format, shard="1MiB", overwrite=True)
                rows, paths = file[file.attrs["rows"]][:], [os.fsdecode(p) for p in file["files/path"][:]]
                expected = {i: rows[o:o + n] for i, (o, n) in enumerate(zip(file["files/offset"], file["files/count"])) if n}
                splits = [s.decode() for s in file["splits/name"][:]]
                split = {i: splits[file["files/split"][i]] if splits else "" for i in expected}
                with open(os.path.join(folder, "recordings.csv"), encoding="utf-8", errors="surrogateescape") as table:
                    listed = list(csv.DictReader(table))
                reasons = {int(f): r.decode() for f, r in zip(file["remarks/file"], file["remarks/reason"])}
                for i, row in enumerate(listed):
                    status = ("ok", "skipped", "failed", "not_run")[file["files/status"][i]]
                    self.assertEqual((int(row["number"]), row["status"], int(row["rows"]), row["reason"]),
                                     (i, status, file["files/count"][i], reasons.get(i, "")))
                self.assertEqual(len(listed), len(paths))
                self.assertTrue({"failed", "skipped"} <= {row["status"] for row in listed} or case == "waves")
                self.assertEqual(len({row["name"] for row in listed}), len(listed))
                self.assertEqual((done["recordings"], done["rows"]), (len(expected), len(rows)))
                with open(os.path.join(folder, "about.json"), encoding="utf-8") as about:
                    self.assertEqual(json.load(about)["attributes"]["feature_fingerprint"], file.attrs["feature_fingerprint"])
                self.assertEqual([n for n in os.listdir(folder) if n.startswith(".")], [])
            yield folder, expected, split, [row["name"] for row in listed]

    def check(self, read, expected):
        """Bit by bit; wider types hold the same values."""
        self.assertEqual(sorted(read), sorted(expected))
        for i, rows in read.items():
            want = expected[i].astype(rows.dtype)
            self.assertEqual(rows.tobytes(), want.tobytes(), i)
            self.assertEqual(rows.shape, want.shape)

    @needs("pyarrow")
    def test_parquet(self):
        import pyarrow.dataset as ds
        for folder, expected, split, _ in self.exports("parquet"):
            shape = next(iter(expected.values())).shape[1:]
            table = ds.dataset(os.path.join(folder, "data")).to_table().to_pydict()
            read = {i: np.array(rows, next(iter(expected.values())).dtype).reshape(-1, *shape)
                    for i, rows in zip(table["number"], table["rows"])}
            self.check(read, expected)
            self.assertEqual({i: s or "" for i, s in zip(table["number"], table.get("split", [""] * len(read)))}, split)

    @needs("pyarrow")
    def test_arrow(self):
        import pyarrow as pa
        for folder, expected, _, _ in self.exports("arrow"):
            read = {}
            for name in os.listdir(os.path.join(folder, "data")):
                with pa.ipc.open_file(os.path.join(folder, "data", name)) as file:
                    table = file.read_all().to_pydict()
                read.update(zip(table["number"], table["rows"]))
            kind = next(iter(expected.values())).dtype
            self.check({i: np.array(rows, kind) for i, rows in read.items()}, expected)

    @needs("datasets")
    def test_hf(self):
        import datasets
        for folder, expected, split, _ in self.exports("hf"):
            there = datasets.load_from_disk(folder)
            parts = there if isinstance(there, dict) else {"": there}
            read = {}
            for name, part in parts.items():
                for row in part.with_format("numpy"):
                    read[int(row["number"])] = row["rows"]
                    self.assertEqual(split[int(row["number"])], name)
            self.check(read, expected)

    @needs("datasets")
    def test_datasets_finds_the_splits_of_parquet(self):
        import datasets
        datasets.disable_progress_bars()
        for folder, expected, split, _ in self.exports("parquet", "whole"):
            there = datasets.load_dataset(folder, cache_dir=os.path.join(self.folder.name, "cache"))
            self.assertEqual({n: len(part) for n, part in there.items()},
                             {n: list(split.values()).count(n) for n in ("train", "val")})

    @needs("zarr")
    def test_zarr(self):
        import zarr
        for folder, expected, _, _ in self.exports("zarr"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                group = zarr.open_group(folder, mode="r")
                rows, offset, count = group["rows"][:], group["files/offset"][:], group["files/count"][:]
                self.check({i: rows[o:o + n] for i, (o, n) in enumerate(zip(offset, count)) if n}, expected)
                self.assertEqual(group["files/path"].shape, count.shape)
            self.assertIsNotNone(group["rows"].shards)

    @needs("kaldiio")
    def test_kaldi(self):
        import kaldiio
        for folder, expected, split, names in self.exports("kaldi"):
            read = {}
            number = {name: i for i, name in enumerate(names)}
            for part in set(split.values()):
                where = os.path.join(folder, part)
                before = os.getcwd()
                os.chdir(where)
                try:
                    with open("feats.scp", "rb") as file:
                        lines = [os.fsdecode(line).split() for line in file]
                    by_scp = {key: kaldiio.load_mat(at) for key, at in lines}
                    order = [os.fsencode(key) for key, _ in lines]
                    with open("utt2spk", "rb") as file:
                        self.assertEqual([line.split()[0] for line in file], order)
                finally:
                    os.chdir(before)
                self.assertEqual(order, sorted(order))
                for key, values in by_scp.items():
                    name = key.rsplit("-", 1)[0] if key not in number else key
                    self.assertEqual(split[number[name]], part)
                    read.setdefault(number[name], []).append(values)
            ragged = next(iter(expected.values())).ndim < 3
            self.check({i: v[0] if ragged else np.stack(v) for i, v in read.items()}, expected)

    def test_tar(self):
        for folder, expected, split, names in self.exports("tar"):
            read = {}
            shards = [name for name in os.listdir(folder) if name.endswith(".tar")]
            for name in shards:
                with tarfile.open(os.path.join(folder, name)) as file:
                    for member in file:
                        self.assertEqual((member.mtime, member.uid, member.uname), (0, 0, ""))
                        if member.name.endswith(".json"):
                            number, about = names.index(member.name[:-5]), json.load(file.extractfile(member))
                            self.assertEqual((about.get("split", "rows"), split[number] or "rows"), (name.split("-")[0],) * 2)
                        elif member.name.endswith(".npy"):
                            self.assertEqual(names.index(member.name[:-4]), number)
                            read[number] = np.load(io.BytesIO(file.extractfile(member).read()))
            self.check(read, expected)

    @staticmethod
    def cuts(folder):
        from lhotse import CutSet
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # of the library's files
            return list(CutSet.from_shar(in_dir=folder))

    @needs("lhotse")
    def test_shar(self):
        from lhotse import validate
        for folder, expected, split, names in self.exports("shar"):
            read = {}
            for part in set(split.values()):
                for cut in self.cuts(os.path.join(folder, part or "rows")):
                    known = cut.custom["melflow"]
                    number = known["number"]
                    self.assertEqual((cut.id, cut.supervisions[0].recording_id, split[number]), (names[number], names[number], part))
                    if cut.has_features:
                        validate(cut)
                        rows = cut.load_features()
                        self.assertEqual((cut.num_frames, cut.num_features, cut.features.frame_shift), (*rows.shape, 0.01))
                        self.assertLess(abs(cut.duration - known["duration"]), 256 / 8000 + 0.01)
                    else:
                        rows = cut.load_rows()
                        self.assertEqual(cut.duration, known["duration"])
                    read[number] = rows
            self.check(read, expected)

    @needs("lhotse")
    def test_shar_has_texts_speakers_and_batches(self):
        from lhotse import CutSet
        from lhotse.dataset.collation import collate_features
        source, folder = self.told(), os.path.join(self.folder.name, "told.shar")
        melflow.export(source, folder, "shar", utterance="id", shard="100KiB")
        cuts, rows = self.cuts(os.path.join(folder, "rows")), melflow.open(source)
        number = {name: i for i, name in enumerate(rows.columns["id"])}
        self.assertEqual(sorted(cut.id for cut in cuts), sorted(name for name, i in number.items() if rows.count[i]))
        for cut in cuts:
            i, spoken = number[cut.id], cut.supervisions[0]
            path = os.fsencode(rows.path[i]).decode("utf-8", "backslashreplace")
            self.assertEqual((spoken.text, spoken.speaker, cut.custom["melflow"]["path"]),
                             (rows.columns["text"][i], rows.columns["speaker"][i], path))
        features, lengths = collate_features(CutSet.from_cuts(cuts[:5]))
        for cut, one, n in zip(cuts, features.numpy(), lengths.tolist()):
            self.assertEqual(one[:n].tobytes(), rows.recording(number[cut.id]).tobytes())
        self.assertGreater(len([name for name in os.listdir(os.path.join(folder, "rows")) if name.startswith("cuts.")]), 5)

    def told(self):
        """A file of recordings that a list names, with texts and speakers."""
        path = os.path.join(self.folder.name, "told.h5")
        names = sorted(os.path.relpath(os.path.join(d, f), self.root) for d, _, fs in os.walk(self.root) for f in fs)
        with open(os.path.join(self.folder.name, "told.csv"), "wb") as out:
            out.write(b"path,id,text,speaker\n")
            for i, name in enumerate(names):
                out.write(os.fsencode(f"{name},utt{i:03},{'' if i == 4 else f'said {i}'},{('ann lee', 'bob')[i % 2]}\n"))
        files = f", manifest: {self.folder.name}/told.csv, columns: [id, text, speaker]"
        text = corpus.pipeline(self.root, f"stage: hdf5_write, path: {path}, overwrite: true, statistics: all, statistics_by: speaker",
                               files=files)
        return corpus.write_rows(self.folder.name, "told", text.replace(", labels: top_dir", ""))

    @needs("lhotse", "kaldi_native_io")
    def test_lhotse(self):
        from lhotse import CutSet, RecordingSet, SupervisionSet, validate
        source, folder = self.told(), os.path.join(self.folder.name, "told.lhotse")
        melflow.export(source, folder, "lhotse", utterance="id", shard="1MiB")
        rows = melflow.open(source)
        number = {name: i for i, name in enumerate(rows.columns["id"])}
        cuts = CutSet.from_file(os.path.join(folder, "cuts.jsonl.gz"))
        self.assertEqual(sorted(cut.id for cut in cuts), sorted(name for name, i in number.items() if rows.count[i]))
        validate(RecordingSet.from_file(os.path.join(folder, "recordings.jsonl.gz")))
        validate(SupervisionSet.from_file(os.path.join(folder, "supervisions.jsonl.gz")))
        told = []
        for cut in cuts:
            i = number[cut.id]
            validate(cut)
            self.assertEqual(cut.load_features().tobytes(), rows.recording(i).tobytes())
            self.assertEqual((cut.supervisions[0].text, cut.supervisions[0].speaker), (rows.columns["text"][i], rows.columns["speaker"][i]))
            told.append(cut.duration == rows._duration[i])
            if cut.has_recording and told[-1]:
                self.assertEqual(cut.load_audio().shape[1], round(rows._duration[i] * 8000))
        self.assertGreater(sum(told), len(told) // 4)  # the others' frames are not those that lhotse would count
        with self.assertRaisesRegex(melflow.RunError, "lhotse: its features are frames of recordings that are not cut"):
            melflow.export(self.files["windows"], os.path.join(self.folder.name, "windows.lhotse"), "lhotse")

    @needs("lhotse", "kaldi_native_io")
    def test_lhotse_of_utterances_in_recordings(self):
        from lhotse import CutSet, validate
        listed = os.path.join(self.folder.name, "spans.csv")
        with open(listed, "w", encoding="utf-8") as out:
            out.write("path,id,start,duration\nant/000.wav,one,0.05,0.4\nant/000.wav,two,0.3,0.25\n")
        path = os.path.join(self.folder.name, "spans.h5")
        text = corpus.pipeline(self.root, f"stage: hdf5_write, path: {path}, overwrite: true",
                               files=f", manifest: {listed}, columns: [id], utterances: {{}}").replace(", labels: top_dir", "")
        folder = os.path.join(self.folder.name, "spans.lhotse")
        melflow.export(corpus.write_rows(self.folder.name, "spans", text), folder, "lhotse", utterance="id")
        cuts = {cut.id: cut for cut in CutSet.from_file(os.path.join(folder, "cuts.jsonl.gz"))}
        self.assertEqual({name: (cut.start, cut.recording_id) for name, cut in cuts.items()}, {"one": (0.05, "ant/000"), "two": (0.3, "ant/000")})
        rows = melflow.open(path)
        samples = corpus.samples_of(os.path.join(self.root, "ant/000.wav"))
        for i, name in enumerate(rows.columns["id"]):
            cut = cuts[name]
            validate(cut)
            self.assertEqual(cut.load_features().tobytes(), rows.recording(i).tobytes())
            audio = cut.load_audio()[0]
            begin = round(cut.start * 8000)
            np.testing.assert_array_equal(audio, samples[begin:begin + len(audio)] / np.float32(32768))

    @needs("lhotse", "kaldi_native_io")
    def test_lhotse_of_odd_files(self):
        """A name with #, another rate, two channels, and a root that is relative to another folder."""
        from lhotse import CutSet, validate
        root = os.path.join(self.folder.name, "odd", "clips")
        os.makedirs(root)
        for name, rate, channels in (("talk", 8000, 1), ("talk#b", 8000, 1), ("fast", 22050, 1), ("wide", 8000, 2)):
            with wave.open(os.path.join(root, name + ".wav"), "wb") as file:
                file.setparams((channels, 2, rate, 0, "NONE", ""))
                file.writeframes(np.random.default_rng(3).integers(-9000, 9000, rate * channels).astype("<i2").tobytes())
        path, folder = os.path.join(self.folder.name, "odd.h5"), os.path.join(self.folder.name, "odd.lhotse")
        text = corpus.pipeline("clips", f"stage: hdf5_write, path: {path}, overwrite: true").replace(", labels: top_dir", "").replace(
            "  segment: {stage: segment, from: decode", "  even: {stage: resample, from: decode, rate: 8000}\n  segment: {stage: segment, from: even")
        before = os.getcwd()
        os.chdir(os.path.dirname(root))
        try:
            corpus.write_rows(self.folder.name, "odd", text)
        finally:
            os.chdir(before)
        with self.assertWarnsRegex(UserWarning, "lhotse: 4 of 4 recordings have cuts with features alone: their audio is no file of one channel of its own "
                                                f"below 'clips', looked for from {re.escape(before)}$"):
            melflow.export(path, folder, "lhotse")
        os.chdir(os.path.dirname(root))
        try:
            with self.assertWarnsRegex(UserWarning, "lhotse: 1 of 4 recordings"):
                melflow.export(path, folder, "lhotse", overwrite=True)
            melflow.export(path, os.path.join(self.folder.name, "odd.nemo"), "nemo")
        finally:
            os.chdir(before)
        cuts = {cut.id: cut for cut in CutSet.from_file(os.path.join(folder, "cuts.jsonl.gz"))}
        self.assertEqual({name: cut.has_recording for name, cut in cuts.items()}, {"fast": True, "talk": True, "talk%23b": True, "wide": False})
        for name, cut in cuts.items():
            validate(cut)
            self.assertEqual(cut.load_features().shape[0], cut.num_frames, name)
            if cut.has_recording:
                self.assertEqual(cut.recording.sampling_rate, 22050 if name == "fast" else 8000)
                self.assertGreater(cut.load_audio().shape[1], 0)

    @needs("lhotse", "kaldi_native_io")
    def test_recipes_of_several_sources_and_of_recordings_in_archives(self):
        from lhotse import CutSet, RecordingSet, validate
        root = os.path.join(self.folder.name, "several")
        for folder in ("near", "far"):
            os.makedirs(os.path.join(root, folder))
            for name in ("a", "b"):
                shutil.copy(os.path.join(self.root, "ant/000.wav"), os.path.join(root, folder, name + ".wav"))
        with tarfile.open(os.path.join(root, "far", "packed.tar"), "w") as out:
            out.add(os.path.join(root, "far", "b.wav"), "talk.wav")
        path = os.path.join(self.folder.name, "several.h5")
        text = corpus.pipeline(os.path.join(root, "near"), f"stage: hdf5_write, path: {path}, overwrite: true").replace(", labels: top_dir", "")
        text = text.replace("  read: {stage: disk_read, from: files}", f"  others: {{stage: file_list, root: {root}/far, include: ['*.wav']}}\n"
                            f"  packed: {{stage: file_list, root: {root}/far/packed.tar}}\n  read: {{stage: disk_read, from: [files, others, packed]}}")
        rows = melflow.open(corpus.write_rows(self.folder.name, "several", text))
        self.assertEqual(len(rows.path), 5)
        folder = os.path.join(self.folder.name, "several.lhotse")
        with self.assertWarnsRegex(UserWarning, f"lhotse: 1 of 5 recordings have cuts with features alone: .* below '{root}/near' or '{root}/far' or "
                                f"'{root}/far/packed.tar', looked for"):
            melflow.export(path, folder, "lhotse")
        cuts = list(CutSet.from_file(os.path.join(folder, "cuts.jsonl.gz")))
        self.assertEqual(sorted(cut.has_recording for cut in cuts), [False, True, True, True, True])
        validate(RecordingSet.from_file(os.path.join(folder, "recordings.jsonl.gz")))
        by_name = {os.path.splitext(p)[0]: i for i, p in enumerate(rows.path)}
        for cut in cuts:
            validate(cut)
            if cut.has_recording:
                i = by_name[cut.recording_id]
                self.assertEqual(cut.load_features().tobytes(), rows.recording(i).tobytes())
                self.assertEqual(cut.recording.sources[0].source, os.path.join(root, rows.path[i].replace("files/", "near/").replace("others/", "far/")))
        with self.assertRaisesRegex(melflow.RunError, r"nemo: packed/.* is no file of its own that is there now"):
            melflow.export(path, os.path.join(self.folder.name, "several.nemo"), "nemo")
        melflow.export(path, os.path.join(self.folder.name, "several.espnet"), "espnet")
        with open(os.path.join(self.folder.name, "several.espnet", "feats.scp"), encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 5)

    def test_espnet(self):
        source, folder = self.told(), os.path.join(self.folder.name, "told.espnet")
        melflow.export(source, folder, "espnet", utterance="id")
        rows = melflow.open(source)
        tables = {}
        for name in ("feats.scp", "feats_shape", "text", "utt2spk", "spk2utt", "utt2num_frames", "cmvn.scp"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                lines = [line.rstrip("\n").split(" ", 1) for line in file]
            self.assertEqual(lines, sorted(lines), name)
            tables[name] = dict(lines)
        number = {name: i for i, name in enumerate(rows.columns["id"])}
        made = sorted(name for name, i in number.items() if rows.count[i])
        self.assertEqual([sorted(tables[name]) for name in ("feats.scp", "feats_shape", "utt2spk")], [made] * 3)
        self.assertEqual(tables["feats_shape"], {name: f"{rows.count[number[name]]},20" for name in made})
        self.assertEqual(sorted(key for of in tables["spk2utt"].values() for key in of.split()), made)
        for name, at in [*tables["feats.scp"].items(), *tables["cmvn.scp"].items()]:
            path, _, offset = at.rpartition(":")
            self.assertTrue(os.path.isabs(path) and os.path.getsize(path) > int(offset), name)
        with open(os.path.join(folder, "feats_type"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "extracted\n")
        alone = os.path.join(self.folder.name, "brain.espnet")
        melflow.export(self.files["brain"], alone, "espnet")
        with open(os.path.join(alone, "utt2spk"), "rb") as one, open(os.path.join(alone, "spk2utt"), "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_nemo(self):
        source, folder = self.told(), os.path.join(self.folder.name, "told.nemo")
        melflow.export(source, folder, "nemo", utterance="id")
        rows = melflow.open(source)
        with open(os.path.join(folder, "rows.json"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual(len(lines), int((rows.count > 0).sum()))
        number = {name: i for i, name in enumerate(rows.columns["id"])}
        for line in lines:
            i = number[line["melflow"]]
            self.assertEqual((line["text"], line["duration"]), (rows.columns["text"][i], rows._duration[i]))
            self.assertTrue(os.path.isfile(line["audio_filepath"]))
        os.rename(self.root, self.root + ".moved")
        try:
            with self.assertRaisesRegex(melflow.RunError, "nemo: .* is no file of its own that is there now"):
                melflow.export(source, os.path.join(self.folder.name, "moved.nemo"), "nemo")
        finally:
            os.rename(self.root + ".moved", self.root)

    def test_each_result_has_a_name(self):
        path = os.path.join(self.folder.name, "varied.h5")
        source = corpus.write_rows(self.folder.name, "varied",
                                   corpus.varied(corpus.pipeline(self.root, f"stage: hdf5_write, path: {path}", files=SPLITS)))
        rows = melflow.open(source)
        expected = {}
        for i in np.flatnonzero(rows.count).tolist():
            for said, values in rows.results(i):
                expected[i, said["number"]["takes"]] = values
        self.assertEqual(len(expected), 2 * (rows.count > 0).sum())

        def parquet(folder):
            import pyarrow.dataset as ds
            for row in ds.dataset(os.path.join(folder, "data")).to_table().to_pylist():
                yield row["name"], row["number"], json.loads(row["result"])["number"]["takes"], np.array(row["rows"], np.float32)

        def tar(folder):
            there = members(folder)
            for name in [name[:-5] for name in there if name.endswith(".json")]:
                about = there[name + ".json"]
                yield name, rows.path.index(about["path"]), about["result"]["number"]["takes"], np.load(io.BytesIO(there[name + ".npy"]))

        def shar(folder):
            for part in ("train", "val"):
                for cut in self.cuts(os.path.join(folder, part)):
                    known = cut.custom["melflow"]
                    yield cut.id, known["number"], known["result"]["number"]["takes"], cut.load_features()

        def kaldi(folder):
            import kaldiio
            with open(os.path.join(folder, "recordings.csv"), encoding="utf-8", errors="surrogateescape") as file:
                number = {row["name"]: int(row["number"]) for row in csv.DictReader(file)}
            for part in ("train", "val"):
                with open(os.path.join(folder, part, "feats.scp"), "rb") as file:
                    for line in file:
                        key, at = os.fsdecode(line[:-1]).split()
                        name, take = key.rsplit("-", 1)
                        yield key, number[name], int(take), kaldiio.load_mat(os.path.join(folder, part, at))

        def safetensors(folder):
            from safetensors import safe_open
            with open(os.path.join(folder, "recordings.csv"), encoding="utf-8", errors="surrogateescape") as file:
                number = {os.fsencode(row["name"]).decode("utf-8", "backslashreplace"): int(row["number"]) for row in csv.DictReader(file)}
            for part in os.listdir(folder):
                if part.endswith(".safetensors"):
                    with safe_open(os.path.join(folder, part), "np") as file:
                        for key in file.keys():
                            name, take = key.rsplit("-", 1)
                            yield key, number[name], int(take), file.get_tensor(key)

        for format, read, library in (("parquet", parquet, "pyarrow"), ("tar", tar, "tarfile"), ("shar", shar, "lhotse"),
                                      ("kaldi", kaldi, "kaldiio"), ("safetensors", safetensors, "safetensors")):
            if importlib.util.find_spec(library):
                with self.subTest(format):
                    folder = os.path.join(self.folder.name, "varied." + format)
                    melflow.export(source, folder, format, overwrite=True)
                    got = {}
                    for name, number, take, values in read(folder):
                        self.assertTrue(name.endswith(f"-{take}"), name)
                        got[number, take] = values
                    self.check(got, expected)

    def test_results_have_numbers(self):
        path = os.path.join(self.folder.name, "numbers.h5")
        corpus.write_rows(self.folder.name, "numbers", corpus.varied(corpus.pipeline(self.root, f"stage: hdf5_write, path: {path}")))
        with h5py.File(path, "r+") as file:
            results = file["files/results"].asstr()[:]
            first = next(i for i, said in enumerate(results) if said)
            for one in (said := json.loads(results[first])):
                one["number"] = {"repeat": "x/../../../outside"}
            results[first] = json.dumps(said)
            file["files/results"][:] = results
        corpus.rehash(path)
        for format in ("tar", "shar"):
            with self.assertRaisesRegex(melflow.RunError, "is damaged: a result of .* has the number .*outside"):
                melflow.export(path, os.path.join(self.folder.name, "numbers." + format), format)

    def test_names_by_a_column(self):
        source, folder = self.told(), os.path.join(self.folder.name, "by_id")
        melflow.export(source, folder, "tar", utterance="id")
        with tarfile.open(os.path.join(folder, "rows-00000-of-00001.tar")) as file:
            self.assertIn("utt000.npy", file.getnames())
        program = [os.environ["MELFLOW_PROGRAM"], "export", source, folder, "--format", "tar", "--utterance", "id", "--overwrite"]
        subprocess.run(program, check=True, capture_output=True, env={**os.environ, "MELFLOW_PYTHON": sys.executable})
        for column, why in (("who", "utterance: there is no column 'who'; there are: id, speaker, text"),
                            ("speaker", r"utterance: ant/.* has the name .(bob|ann%20lee). in .speaker., as ant/.* has; each utterance")):
            with self.assertRaisesRegex(ValueError, why):
                melflow.export(source, os.path.join(self.folder.name, "no_names"), "tar", utterance=column)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "no_names")))

    def test_archives_are_those_of_the_stages(self):
        columns = f", manifest: {self.folder.name}/told.csv, columns: [id, text, speaker]"
        self.told()
        cases = {"paths": {}, "windows": corpus.WINDOWS, "packed": {}, "named": {}, "results": {}}
        for case, options in cases.items():
            with self.subTest(case):
                out = self.out("stages_" + case)
                sums = "" if case == "results" else ", statistics: all, statistics_by: speaker"
                named, packed = ", utterance: id" * (case == "named"), 2 * (case == "packed")
                text = corpus.pipeline(self.root, f"stage: hdf5_write, path: {out}/f.h5, overwrite: true{sums}", files=columns, **options)
                text = text.replace(", labels: top_dir", "") + (
                    f"  ark: {{stage: kaldi_write, from: rows, path: {out}/feats.ark, speaker: speaker, text: text, compression: {packed}{named}{sums}}}\n"
                    f"  tar: {{stage: tar_write, from: rows, path: {out}/t.tar{named}}}\n")
                self.run_program(corpus.varied(text) if case == "results" else text)
                kaldi, tar = (os.path.join(out, "of_" + format) for format in ("kaldi", "tar"))
                utterance = "id" if named else None
                melflow.export(f"{out}/f.h5", kaldi, "kaldi", shard="100KiB", utterance=utterance, compression=packed)
                melflow.export(f"{out}/f.h5", tar, "tar", shard="100KiB", utterance=utterance)

                def read(folder, *names):
                    return b"".join(pathlib.Path(folder, name).read_bytes() for name in names)
                arks = sorted(name for name in os.listdir(kaldi) if name.startswith("feats-"))
                self.assertGreater(len(arks), 3)
                self.assertEqual(read(kaldi, *arks), read(out, "feats.ark"))
                for name in ("utt2spk", "spk2utt", "text", *(("cmvn.ark", "cmvn.scp") if sums else ())):
                    self.assertEqual(read(kaldi, name), read(out, name), name)
                keys = [line.split(b" ")[0] for line in read(out, "feats.scp").splitlines()]
                for line in read(kaldi, "feats.scp").splitlines():
                    key, ark, at = re.fullmatch(rb"(\S+) (feats-\d+\.ark):(\d+)", line).groups()
                    self.assertEqual(key, keys.pop(0))
                    self.assertIn(key + b" \0B", read(kaldi, os.fsdecode(ark))[int(at) - len(key) - 1:int(at) + 2])
                self.assertEqual(keys, [])
                self.assertEqual(len(read(kaldi, "utt2num_frames").splitlines()), len(read(kaldi, "feats.scp").splitlines()))
                self.assertEqual(members(tar), members(out))

    def test_compression_is_for_matrices_of_kaldi(self):
        for format, method in (("kaldi", 4), ("tar", 2), ("kaldi", 8)):
            with self.assertRaisesRegex(ValueError, f"compression is for kaldi, lhotse and espnet, and is one of 1, 2, 3, 5; not {method} for {format}"):
                melflow.export(self.files["whole"], os.path.join(self.folder.name, "no"), format, compression=method)
        with self.assertRaisesRegex(ValueError, "compression: the recordings of .*waves.h5 are samples, so vectors, which Kaldi does not compress"):
            melflow.export(self.files["waves"], os.path.join(self.folder.name, "no"), "kaldi", compression=2)
        self.assertFalse([name for name in os.listdir(self.folder.name) if name.startswith("no.")])

    @needs("datasets")
    def test_datasets_finds_splits_with_other_names(self):
        import datasets
        datasets.disable_progress_bars()
        split = "splits: ratio, split_ratios: {train-clean-100: 60, dev.x: 20, dev_x: 20}"
        path = os.path.join(self.folder.name, "dashes.h5")
        source = corpus.write_rows(self.folder.name, "dashes", corpus.pipeline(self.root, f"stage: hdf5_write, path: {path}", files=", " + split))
        for format in ("parquet", "hf"):
            folder = os.path.join(self.folder.name, "dashes." + format)
            done = melflow.export(source, folder, format)
            names = {"train-clean-100": "train_clean_100", "dev.x": "dev_x", "dev_x": "dev_x_2"}
            self.assertEqual(done["renamed_splits"], names)
            with open(os.path.join(folder, "about.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["renamed_splits"], names)
            there = (datasets.load_from_disk(folder) if format == "hf" else
                     datasets.load_dataset(folder, cache_dir=os.path.join(self.folder.name, "cache")))
            self.assertEqual({new: set(there[new]["split"]) for new in names.values()}, {new: {old} for old, new in names.items()})

    @needs("zarr", "xarray")
    def test_xarray_reads_zarr(self):
        import xarray
        for folder, expected, _, _ in self.exports("zarr", "whole", "windows", "int16"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = xarray.open_zarr(folder, consolidated=False)["rows"]
                files = xarray.open_zarr(folder, group="files", consolidated=False)
                self.assertEqual(rows.dims, ("row", "frame", "column")[:rows.ndim] if rows.ndim == 3 else ("row", "column"))
                places = {i: (int(o), int(n)) for i, (o, n) in enumerate(zip(files["offset"].values, files["count"].values)) if n}
                self.check({i: rows.isel(row=slice(o, o + n)).values for i, (o, n) in places.items()}, expected)

    @needs("safetensors")
    def test_safetensors(self):
        from safetensors import safe_open
        for folder, expected, _, names in self.exports("safetensors", *(c for c in CASES if c != "brain")):
            with open(os.path.join(folder, "rows.safetensors.index.json"), encoding="utf-8") as file:
                index = json.load(file)["weight_map"]
            read = {}
            text = {os.fsencode(n).decode("utf-8", "backslashreplace"): i for i, n in enumerate(names)}
            for name, at in index.items():
                with safe_open(os.path.join(folder, at), "np") as file:
                    read[text[name]] = file.get_tensor(name)
            self.check(read, expected)

    @needs("safetensors")
    def test_safetensors_keeps_bfloat16(self):
        import safetensors
        for folder, expected, _, _ in self.exports("safetensors", "brain"):
            count = 0
            for name in os.listdir(folder):
                if name.endswith(".safetensors"):
                    with open(os.path.join(folder, name), "rb") as file:
                        for _, tensor in safetensors.deserialize(file.read()):
                            self.assertEqual(tensor["dtype"], "BF16")
                            count += tensor["shape"][0]
            self.assertEqual(count, sum(map(len, expected.values())))

    def test_same_rows_give_the_same_bytes(self):
        a, b = (os.path.join(self.folder.name, name) for name in ("same_a", "same_b"))
        for folder in (a, b):
            melflow.export(self.files["whole"], folder, "tar")
        for name in os.listdir(a):
            with open(os.path.join(a, name), "rb") as one, open(os.path.join(b, name), "rb") as other:
                self.assertEqual(one.read(), other.read(), name)

    def test_rows_of_npy_are_those_of_hdf5(self):
        case = dict(CASES["half"])
        corpus.write_rows(self.folder.name, "npy", corpus.pipeline(
            self.root, f"stage: npy_write, path: {self.folder.name}/npy.npy, {case.pop('sink')}", **case))
        folders = [os.path.join(self.folder.name, name) for name in ("of_npy", "of_hdf5")]
        for source, folder in zip((os.path.join(self.folder.name, "npy.npy"), self.files["half"]), folders):
            melflow.export(source, folder, "tar")
        for name in os.listdir(folders[0]):
            if name.endswith((".tar", ".csv")):
                with open(os.path.join(folders[0], name), "rb") as one, open(os.path.join(folders[1], name), "rb") as other:
                    self.assertEqual(one.read(), other.read(), name)

    def test_an_output_of_one_recording(self):
        silent = os.path.join(self.folder.name, "silent")
        os.mkdir(silent)
        with open(os.path.join(self.root, "cat", "002.wav"), "rb") as file:
            data = file.read()
        for name, audio in (("a.wav", data), ("b.wav", data[:46])):
            with open(os.path.join(silent, name), "wb") as out:
                out.write(audio)
        text = corpus.pipeline(silent, f"stage: hdf5_write, path: {self.folder.name}/one.h5")
        path = corpus.write_rows(self.folder.name, "one", text)
        for format, library in (("parquet", "pyarrow"), ("arrow", "pyarrow"), ("zarr", "zarr"), ("kaldi", "struct"), ("tar", "tarfile"), ("shar", "tarfile"),
                                ("safetensors", "safetensors"), ("hf", "datasets")):
            if importlib.util.find_spec(library):
                with self.subTest(format):
                    done = melflow.export(path, os.path.join(self.folder.name, "one." + format), format)
                    self.assertEqual((done["recordings"], done["without_rows"]), (1, 1))

    def test_damaged_rows_are_refused(self):
        path = os.path.join(self.folder.name, "damaged.h5")
        with open(self.files["half"], "rb") as file, open(path, "wb") as out:
            data = bytearray(file.read())
            with h5py.File(self.files["half"]) as there:
                data[there[there.attrs["rows"]].id.get_offset() + 100] ^= 1
            out.write(data)
        folder = os.path.join(self.folder.name, "of_damaged")
        with self.assertRaisesRegex(melflow.RunError, r"damaged.h5: the rows of ant/000.wav are not what was written"):
            melflow.export(path, folder, "tar")
        self.assertEqual([n for n in os.listdir(self.folder.name) if n.startswith("of_damaged")], [])

    def test_what_is_read_back_is_compared(self):
        from melflow import export_formats

        class Wrong(export_formats.Tar):
            change = staticmethod(lambda rows: rows)

            def read(self, source, folder):
                for i, rows in super().read(source, folder):
                    for given in self.change(rows):
                        yield i, given

        folder = os.path.join(self.folder.name, "wrong")
        before = dict(export_formats.FORMATS)
        self.addCleanup(export_formats.FORMATS.update, before)
        export_formats.FORMATS["tar"] = Wrong
        for change, why in ((lambda rows: [rows + 1], "what is read back of .* is not what was written"),
                            (lambda rows: [rows[1:]], "is not what was written"),
                            (lambda rows: [rows, rows], "is not what was written"),
                            (lambda rows: [], "cannot be read back")):
            Wrong.change = staticmethod(change)
            for case in ("whole", "half", "brain", "int16"):
                with self.subTest(case, why=why), self.assertRaisesRegex(melflow.RunError, why):
                    melflow.export(self.files[case], folder, "tar")
                self.assertFalse(os.path.exists(folder) or os.path.exists(folder + ".part"))

    def test_folders_of_others_stay(self):
        def export(name, **options):
            return melflow.export(self.files["half"], os.path.join(self.folder.name, name), "tar", **options)
        path = os.path.join(self.folder.name, "mine")
        os.mkdir(path)
        export("mine")  # an empty folder is a place
        with self.assertRaisesRegex(melflow.RunError, "is an export already; replace it by overwrite=True"):
            export("mine")
        open(os.path.join(path, "stale"), "wb").close()
        export("mine", overwrite=True)
        self.assertFalse(os.path.exists(os.path.join(path, "stale")))
        other = os.path.join(self.folder.name, "other")
        os.mkdir(other)
        open(os.path.join(other, "thesis"), "wb").close()
        with self.assertRaisesRegex(melflow.RunError, "other: exists, and is no export of melflow"):
            export("other", overwrite=True)
        os.rename(other, path + "2.part")
        with self.assertRaisesRegex(melflow.RunError, r"mine2.part: is in the way, and no export of melflow began it"):
            export("mine2")
        with self.assertRaisesRegex(melflow.RunError, "the file of rows lies in this folder"):
            melflow.export(self.files["half"], self.folder.name, "tar", overwrite=True)
        with self.assertRaisesRegex(melflow.RunError, "cannot be made: No such file or directory"):
            export("nowhere/out")

    def test_an_interrupted_export_is_no_obstacle(self):
        path = os.path.join(self.folder.name, "again")
        os.mkdir(path + ".part")
        for name in (".melflow-export", "rows-00000-of-00002.tar"):
            open(os.path.join(path + ".part", name), "wb").close()
        melflow.export(self.files["half"], path, "tar")
        self.assertNotIn("rows-00000-of-00002.tar", os.listdir(path))
        os.rename(path, path + ".replaced")
        with self.assertRaisesRegex(melflow.RunError, "is an export already"):
            melflow.export(self.files["half"], path, "tar")
        self.assertTrue(os.path.exists(path))

    def test_an_export_that_is_killed_anywhere_is_no_obstacle(self):
        class Killed(BaseException):
            pass

        def export(calls):
            """The export, ended at a call that changes names; from there on, none works."""
            left = [calls]

            def at(call):
                def run(*args, **options):
                    left[0] -= 1
                    if left[0] < 0:
                        raise Killed
                    return call(*args, **options)
                return run
            with contextlib.ExitStack() as stack:
                for name in ("mkdir", "rename", "unlink", "rmdir"):
                    stack.enter_context(unittest.mock.patch("os." + name, at(getattr(os, name))))
                melflow.export(self.files["half"], path, "tar", overwrite=True)

        path = os.path.join(self.folder.name, "killed")
        melflow.export(self.files["half"], path, "tar")
        whole = sorted(os.listdir(path))
        for calls in itertools.count():
            try:
                export(calls)
                break
            except Killed:
                pass
            for again in range(4):  # the next ones are killed, too, while they clear up
                with contextlib.suppress(Killed):
                    export(again)
            melflow.export(self.files["half"], path, "tar", overwrite=True)
            self.assertEqual(sorted(os.listdir(path)), whole, calls)
            self.assertEqual(sorted(name for name in os.listdir(self.folder.name) if name.startswith("killed")), ["killed"])
        self.assertGreater(calls, 6)

    def test_arguments(self):
        out = os.path.join(self.folder.name, "arguments")
        for options, error, why in ((dict(format="parkett"), ValueError, "Did you mean 'parquet'"),
                                    (dict(format="tar", shard="1 GB"), ValueError, "shard: '1 GB' is no number of bytes"),
                                    (dict(format="tar", shard="0MiB"), ValueError, "shard: '0MiB' is no number of bytes"),
                                    (dict(format="tar", overwrite="yes"), TypeError, "overwrite")):
            with self.subTest(options), self.assertRaisesRegex(error, why):
                melflow.export(self.files["half"], out, **options)

    def test_verb(self):
        program = os.environ["MELFLOW_PROGRAM"]
        environment = {**os.environ, "MELFLOW_PYTHON": sys.executable}
        out = os.path.join(self.folder.name, os.fsdecode(b"verb\xff"))

        def run(*words, **more):
            return subprocess.run([program, "export", self.files["whole"], out, *words], capture_output=True, text=True,
                                  errors="surrogateescape", env={**environment, **more})
        ended = run("--format", "tar")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertRegex(ended.stdout, r"verb.*: tar, \d+ recordings, \d+ rows, \d+ bytes; \d+ recordings have no rows: recordings.csv")
        ended = run("--format", "tar")
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, "^melflow: .*is an export already; replace it by overwrite=True")
        self.assertEqual(run("--format", "tar", "--overwrite").returncode, 0)
        self.assertEqual(run("--format", "parkett").returncode, 2)
        with tempfile.TemporaryDirectory() as hidden:  # a library that cannot be imported
            with open(os.path.join(hidden, "zarr.py"), "w", encoding="utf-8") as file:
                file.write("raise ImportError('not here')\n")
            ended = run("--format", "zarr", PYTHONPATH=hidden)
        self.assertRegex(ended.stderr, r"format zarr needs the library zarr, .*\(not here\); install it: pip install zarr")
        ended = run("--format", "tar", MELFLOW_PYTHON="/bin/false")
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, "^melflow: melflow export: this needs Python with the package melflow")


if __name__ == "__main__":
    unittest.main()
