"""Lists of corpora, against what others read of the same lists: Python's csv, Lhotse and kaldiio."""

import csv
import importlib.util
import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest
import wave
import zipfile

from melflow import program

RATE = 8000


def has(name):
    return unittest.skipUnless(importlib.util.find_spec(name), f"{name} is not installed")


def text(draw):
    return " ".join(draw.choice(['"yes"', "a|b", "née", "it's", "one, two", "“so”", "x;y", '"']) for _ in range(draw.randrange(1, 5)))


class CorporaTest(unittest.TestCase):
    def setUp(self):
        self.draw = random.Random(5)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def path(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def write(self, name, lines):
        with open(self.path(name), "w", encoding="utf-8", newline="") as file:
            file.writelines(line + "\n" for line in lines)
        return self.path(name)

    def recording(self, name, samples):
        with wave.open(self.path(name), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(bytes(2 * samples))
        return self.path(name)

    def entries(self, options, columns=("text",)):
        """The entries that file_list makes, as dicts."""
        node = json.dumps({"stage": "file_list", "columns": {name: name for name in columns}, **options})
        nodes = [f"files: {node}", "read: {stage: disk_read, from: files}", "decode: {stage: decode, from: read}",
                 "mel: {stage: mel, from: decode, preset: kaldi, sample_rate: 8000}", "out: {stage: hdf5_write, from: mel, path: out.h5}"]
        pipeline = self.write("p.yaml", ["version: 1", "graph:", *("  " + n for n in nodes)])
        job = os.path.join(self.folder, f"job{self.draw.random()}")
        ended = subprocess.run([program.path(), "plan", pipeline, "--output", job], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        with open(os.path.join(job, "manifest.jsonl"), encoding="utf-8") as lines:
            head, *entries = map(json.loads, lines)
        names = head["texts"]
        for entry in entries:
            entry.update(zip(names, entry.pop("texts", [])))
            entry["split"] = head["splits"][entry["split"]] if "split" in entry else None
            entry["label"] = head["labels"][entry["label"]] if "label" in entry else None
        return entries

    def test_tables_are_read_as_csv_reads_them(self):
        for name in ("a", "b", "c"):
            self.recording(f"wavs/{name}.wav", 800)
        rows = [(self.draw.choice("abc"), text(self.draw), self.draw.choice(["train", "test"])) for _ in range(200)]
        written = dict(
            lj=dict(delimiter="|", quoting=csv.QUOTE_NONE, quotechar=None),
            semicolons=dict(delimiter=";"),
            commas=dict(delimiter=","),
            tabs=dict(delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None),
        )
        for name, dialect in written.items():
            with self.subTest(name):
                path = self.path(f"{name}.list")
                with open(path, "w", encoding="utf-8", newline="") as file:
                    out = csv.writer(file, **dialect)
                    out.writerows(r for r in rows if name != "lj" or "|" not in r[1])
                with open(path, encoding="utf-8", newline="") as file:
                    wanted = sorted(csv.reader(file, **dialect))
                self.assertGreater(len(wanted), 50)
                got = self.entries(dict(root=self.folder, manifest=path, delimiter=dialect["delimiter"], header=["id", "text", "fold"],
                                        columns_are={"path": "wavs/{id}.wav", "split": "fold"}))
                self.assertEqual(sorted([e["path"][5:-4], e["text"], e["split"]] for e in got), wanted)

    @has("lhotse")
    def test_manifests_of_lhotse(self):
        from lhotse import CutSet, Recording, RecordingSet, SupervisionSegment, SupervisionSet

        recordings = RecordingSet.from_recordings(
            Recording.from_file(self.recording(f"audio/r{i}.wav", RATE * (i + 2)), recording_id=f"r{i}") for i in range(5))
        said = SupervisionSet.from_segments(
            SupervisionSegment(f"s{i}-{k}", f"r{i}", start=0.5 + k, duration=0.75, text=text(self.draw), speaker=f"p{i % 2}", language="de")
            for i in range(5) for k in range(2))
        whole = CutSet.from_manifests(recordings=recordings, supervisions=said)
        cuts = CutSet.from_cuts([*whole, *whole.trim_to_supervisions(keep_overlapping=False, keep_all_channels=True),
                                 *whole.cut_into_windows(1.3, keep_excessive_supervisions=False)])
        listed = {"cuts.jsonl.gz": cuts, "x_recordings.jsonl.gz": recordings, "x_supervisions.jsonl.gz": said, "cuts.jsonl": cuts}
        columns = ("utterance", "recording", "text", "speaker", "language")
        for name, items in listed.items():
            items.to_file(self.path(name))
            with self.subTest(name):
                got = {e["utterance"]: e for e in self.entries(dict(manifest=self.path(name), utterances={}), columns)}
                self.assertEqual(len(got), len({item.id for item in items}))
                for item in items:
                    entry = got[item.id]
                    recording = getattr(item, "recording", None) or recordings[getattr(item, "recording_id", item.id)]
                    parts = getattr(item, "supervisions", [item] if hasattr(item, "speaker") else [])
                    self.assertEqual(entry["path"], recording.sources[0].source)
                    self.assertEqual(entry["recording"], recording.id)
                    self.assertAlmostEqual(entry["start"], getattr(item, "start", 0))
                    end = recording.duration if entry["end"] == "inf" else entry["end"]
                    self.assertAlmostEqual(end, getattr(item, "end", recording.duration))
                    self.assertEqual(entry["text"], " ".join(p.text for p in parts))
                    for column in ("speaker", "language"):
                        self.assertEqual(entry[column], ", ".join(dict.fromkeys(getattr(p, column) for p in parts)))

    @has("lhotse")
    def test_mixed_cuts_of_lhotse_fail_alone(self):
        from lhotse import MonoCut, Recording, CutSet

        one, two = (MonoCut(f"c{i}", 0, 1, 0, recording=Recording.from_file(self.recording(f"{i}.wav", RATE))) for i in (1, 2))
        CutSet.from_cuts([one, one.mix(two).with_id("mixed"), one.pad(3).with_id("padded"), two, two.perturb_speed(1.1).with_id("fast")]
                         ).to_file(self.path("cuts.jsonl"))
        got = self.entries(dict(manifest=self.path("cuts.jsonl"), utterances={}), ("utterance",))
        self.assertEqual([(e["utterance"], "problem" in e) for e in got],
                         [("c1", False), ("mixed", True), ("padded", True), ("c2", False), ("fast", True)])

    def kaldi_folder(self):
        lines = {name: [] for name in ("wav.scp", "segments", "text", "utt2spk", "reco2dur")}
        for i in range(4):
            wav = self.recording(f"audio/r{i}.wav", RATE * 5)
            lines["wav.scp"].append(f"r{i} cat {wav} |" if i % 2 else f"r{i} {wav}")
            lines["reco2dur"].append(f"r{i} 5.0")
            for k in range(3):
                lines["segments"].append(f"u{i}-{k} r{i} {k * 1.25 + 0.1:.2f} {k * 1.25 + 1.13:.2f}")
                lines["text"].append(f"u{i}-{k} {text(self.draw)}")
                lines["utt2spk"].append(f"u{i}-{k} p{i}")
        for name, rows in lines.items():
            self.write("data/" + name, rows)
        return self.path("data")

    @has("lhotse")
    def test_kaldi_folders_as_lhotse_reads_them(self):
        from lhotse.kaldi import load_kaldi_data_dir

        folder = self.kaldi_folder()
        _, said, _ = load_kaldi_data_dir(folder, RATE)
        got = {e["utterance"]: e for e in self.entries(dict(manifest=folder, utterances={}), ("utterance", "recording", "text", "speaker"))}
        self.assertEqual(len(got), len(said))
        for s in said:
            entry = got[s.id]
            self.assertEqual((entry["recording"], entry["text"], entry["speaker"]), (s.recording_id, s.text, s.speaker))
            self.assertAlmostEqual(entry["start"], s.start)
            self.assertAlmostEqual(entry["end"], s.end)

    @has("kaldiio")
    def test_kaldi_folders_as_kaldiio_reads_them(self):
        import kaldiio

        folder = self.kaldi_folder()
        with kaldiio.ReadHelper(f"scp:{folder}/wav.scp", segments=f"{folder}/segments") as reader:
            wanted = {name: len(samples) for name, (_, samples) in reader}
        got = self.entries(dict(manifest=folder, utterances={}), ("utterance",))
        self.assertEqual({e["utterance"]: round((e["end"] - e["start"]) * RATE) for e in got}, wanted)
        os.remove(os.path.join(folder, "segments"))
        self.assertEqual([e["path"] for e in self.entries(dict(manifest=folder), ("utterance",))],
                         [self.path(f"audio/r{i}.wav") for i in range(4)])

    def test_channels_of_files(self):
        """The same rows as from files that have one channel each."""
        import numpy as np

        import melflow

        both = np.random.default_rng(3).integers(-9000, 9000, (RATE, 3)).astype("<i2")
        both[:, 2] = both[:, 0] // 3
        with wave.open(self.path("calls/a.wav"), "wb") as file:
            file.setparams((3, 2, RATE, 0, "NONE", ""))
            file.writeframes(both.tobytes())
        for c in range(3):
            with wave.open(self.path(f"alone/{c}.wav"), "wb") as file:
                file.setparams((1, 2, RATE, 0, "NONE", ""))
                file.writeframes(both[:, c].tobytes())
        with zipfile.ZipFile(self.path("calls.zip"), "w") as archive:
            archive.write(self.path("calls/a.wav"), "a.wav")
        shutil.copy(self.path("alone/1.wav"), self.path("named/a#channel=2.wav"))
        with zipfile.ZipFile(self.path("named.zip"), "w") as archive:
            archive.write(self.path("alone/1.wav"), "a#channel=2.wav")
        table = self.write("t.csv", ["file,side,begin,end", "a.wav,3,0,", "a.wav,1,0.25,0.75", "a.wav,2,,", "a.wav,4,,"])
        alone = self.write("alone.csv", ["path,start,end", "2.wav,,", "0.wav,0.25,0.75", "1.wav,,"])

        def rows(name, downmix="mean", **options):
            g = melflow.Graph()
            g.file_list(utterances={}, **options).disk_read().decode(downmix=downmix).mel(preset="kaldi", sample_rate=RATE).hdf5_write(
                path=self.path(name), overwrite=True)
            report = g.run()
            file = melflow.open(self.path(name))
            return [file[i] for i in range(len(file))], report

        expected, _ = rows("alone.h5", root=self.path("alone/"), manifest=alone)
        self.assertFalse(np.array_equal(expected[0], expected[2]))
        named_so = self.write("named.csv", ["path,start,end", "a#channel=2.wav,,"])
        for root in ("named/", "named.zip"):  # files that are really called so
            named, _ = rows("named.h5", root=self.path(root), manifest=named_so)
            np.testing.assert_array_equal(named, expected[len(expected) - len(named):])
        for i, (root, downmix) in enumerate([("calls/", "mean"), ("calls.zip", "mean"), ("calls/", 2)]):
            found, report = rows(f"{i}.h5", downmix, root=self.path(root), manifest=table,
                                 columns_are={"path": "file", "channel": "side", "start": "begin"})
            self.assertEqual((report["files"]["ok"], report["files"]["failed"]), (3, 1))
            self.assertIn("has 3 channels, and the list asks for channel 4", str(report["remarks"]))
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)

    def test_commands_of_a_kaldi_folder(self):
        """Run where they are allowed: the same rows as of the files."""
        import h5py
        import numpy as np

        import melflow

        samples = np.random.default_rng(4).integers(-9000, 9000, RATE).astype("<i2")
        sound = self.path("a.wav")
        with wave.open(sound, "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(samples.tobytes())
        ran = self.path("ran")
        self.write("data/wav.scp", [f"r0 {sound}", f"r1 cat {sound} |", f"r2 echo >> {ran}; tail -c +1 {sound} |",
                                    "r3 echo >&2 no such tape; false |", "r4 echo no sound |", "r5 raw.ark:17",
                                    f"r7 sph2pipe -f wav -c 2 {self.path('two.wav')} |"])
        with wave.open(self.path("two.wav"), "wb") as file:
            file.setparams((2, 2, RATE, 0, "NONE", ""))
            file.writeframes(np.stack([samples // 2, samples], 1).tobytes())
        self.write("data/segments", ["u0 r0 0.25 0.75", "u7 r7 0.25 0.75", "u2 r2 0.25 0.75", "u1 r1 0 -1", "u3 r3 0 1", "u4 r4 0 1", "u5 r5 0 1", "u6 r6 0 1"])
        self.write("data/text", ["u2 two of it"])
        self.write("data/spk2utt", ["ann u0 u2"])

        def graph(name, **options):
            g = melflow.Graph()
            columns = ["utterance", "recording", "text", "speaker"]
            return g.file_list(manifest=self.path("data"), utterances={}, columns={c: c for c in columns}, **options).disk_read().decode().mel(
                sample_rate=RATE, n_fft=256, win_length="25ms", hop="10ms").hdf5_write(path=self.path(name)).graph

        report = graph("refused.h5").run()
        self.assertFalse(os.path.exists(ran))
        self.assertIn("others are run only where commands: allow is written", str(report["remarks"]))
        report = graph("o.h5", commands="allow").run()
        self.assertTrue(os.path.exists(ran))
        self.assertEqual((report["files"]["ok"], report["files"]["failed"]), (4, 4))
        rows = melflow.open(self.path("o.h5"))
        of = {u: rows.recording(int(*rows.select({"utterance": u, "recording": r, **more}))) for u, r, more in (
            ("u0", "r0", {"speaker": "ann"}), ("u7", "r7", {}), ("u1", "r1", {}), ("u2", "r2", {"speaker": "ann", "text": "two of it"}))}
        np.testing.assert_array_equal(of["u0"], of["u2"])
        np.testing.assert_array_equal(of["u0"], of["u7"])
        self.assertGreater(len(of["u1"]), 80)
        self.assertGreater(len(of["u0"]), 40)
        with h5py.File(self.path("o.h5")) as file:
            said = "\n".join(file["remarks/reason"].asstr()[:])
        for why in ("its command ended with exit status 1: no such tape (echo >&2 no such tape; false)", "r6' is not in the wav.scp beside it",
                    "is in an archive (raw.ark:17)"):
            self.assertIn(why, said)
        with h5py.File(self.path("o.h5")) as file:  # a job and an update find the recordings by their names
            self.assertEqual(sorted({path.partition("#t=")[0] for path in file["files/path"].asstr()[:]}), ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"])
        first = rows[0]
        self.assertEqual(melflow.update(graph("o.h5", commands="allow"))["files"]["kept"], 4)
        os.remove(ran)
        melflow.plan(graph("job.h5", commands="allow"), self.path("job"))
        with self.assertRaisesRegex(melflow.ConfigError, "would run the commands of its lists"):
            melflow.work(self.path("job"))
        self.assertFalse(os.path.exists(ran))
        melflow.work(self.path("job"), trust=True)
        melflow.merge(self.path("job"), trust=True)
        np.testing.assert_array_equal(melflow.open(self.path("job.h5"))[0], first)
        with self.assertRaisesRegex(melflow.ConfigError, "cannot be together with rest"):
            melflow.Graph().file_list(root=self.folder, manifest={"a": self.path("data"), "b": "rest"},
                                      commands="allow").discard().graph.validate()


if __name__ == "__main__":
    unittest.main()
