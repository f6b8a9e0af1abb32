"""Recordings that Python gives, and members of archives: the same rows as those of files."""

import datetime
import decimal
import enum
import functools
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import textwrap
import unittest
import uuid
import wave
import zipfile

import h5py
import melflow
import numpy as np

import corpus


def samples_of(path):
    with wave.open(path) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.int16)


class Corpus(corpus.CorpusTest):
    def setUp(self):
        self.names = sorted(os.path.relpath(os.path.join(folder, name), self.root)
                            for folder, _, names in os.walk(self.root) for name in names)
        self.whole = [n for n in self.names if self.is_whole(n)]

    def is_whole(self, name):
        path = os.path.join(self.root, name)
        with open(path, "rb") as file:
            head = file.read(44)
        return int.from_bytes(head[40:44], "little") == os.path.getsize(path) - 44 > 0

    def bytes_of(self, name):
        with open(os.path.join(self.root, name), "rb") as file:
            return file.read()

    def written(self, name, node, **options):
        path = os.path.join(self.folder.name, name + ".h5")
        decoded = node.disk_read(**options).decode(truncated="fail")
        node = decoded.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20)
        report = node.hdf5_write(path=path, overwrite=True).graph.run()
        return melflow.open(path), report

    def reasons(self, rows):
        """Why recordings are not there, by their paths."""
        with h5py.File(rows.file) as file:
            said = dict(zip(file["remarks/path"].asstr()[:], file["remarks/reason"].asstr()[:]))
            return {path: said.get(path, "") for path in file["files/path"].asstr()[:]}

    @functools.cached_property
    def expected(self):
        return self.written("files", melflow.Graph().file_list(root=self.root, labels="top_dir"))[0]


class ItemsTest(Corpus):
    def rows_of(self, items, name="items", **options):
        return self.written(name, melflow.Graph().items(items, **options))

    def assertSame(self, rows, names):
        self.assertEqual(list(rows.path), names)
        of = {path: i for i, path in enumerate(self.expected.path)}
        for i, name in enumerate(names):
            np.testing.assert_array_equal(rows.recording(i), self.expected.recording(of[name]))

    def test_every_kind_of_audio(self):
        def audio_of(name, kind):
            path = os.path.join(self.root, name)
            return {"bytes": self.bytes_of(name), "path": path, "later": lambda: self.bytes_of(name),
                    "path later": lambda: path, "int16": samples_of(path), "float": samples_of(path) / np.float32(32768),
                    "datasets": {"bytes": None, "path": path}, "array": {"array": samples_of(path), "sampling_rate": 8000},
                    "view": memoryview(self.bytes_of(name))}[kind]

        for kind in ("bytes", "path", "later", "path later", "int16", "float", "datasets", "array", "view"):
            with self.subTest(kind):
                items = [{"path": n, "audio": audio_of(n, kind), "sample_rate": 8000} for n in self.whole]
                rows, report = self.rows_of(items)
                self.assertSame(rows, self.whole)
                self.assertEqual(report["files"]["ok"], len(self.whole))

    def test_every_kind_of_corpus(self):
        items = [{"path": n, "audio": self.bytes_of(n)} for n in self.whole]

        class Indexed:
            def __len__(self):
                return len(items)

            def __getitem__(self, i):
                return items[i]

        for kind, given in {"list": items, "tuple": tuple(items), "iterator": iter(items), "generator": (i for i in items),
                            "function": lambda: iter(items), "indexed": Indexed(),
                            "dict": {i["path"]: {"audio": i["audio"]} for i in items}}.items():
            for engine in ("auto", "threads", "io_uring"):
                with self.subTest(kind, engine=engine):
                    if kind in ("iterator", "generator"):
                        given = iter(items)
                    rows, _ = self.written("kinds", melflow.Graph().items(given), engine=engine)
                    self.assertSame(rows, self.whole)

    def test_several_channels(self):
        one = samples_of(os.path.join(self.root, self.whole[0]))
        for stereo in (np.stack([one, -one], 1), np.stack([one, -one])):
            node = melflow.Graph().items([{"audio": stereo, "sample_rate": 8000}]).disk_read().decode(downmix="left")
            path = os.path.join(self.folder.name, "stereo.h5")
            node.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20).hdf5_write(path=path, overwrite=True).graph.run()
            np.testing.assert_array_equal(melflow.open(path)[:], self.expected.recording(list(self.expected.path).index(self.whole[0])))

    def test_columns_labels_splits_and_numbers(self):
        items = [{"path": n, "audio": os.path.join(self.root, n), "label": n[:3], "split": "val" if i % 3 == 0 else "train",
                  "speaker": None if i == 1 else f"s{i % 4}", "words": ["a", f"{i}"], "age": np.int64(i), "loud": i % 2 == 0}
                 for i, n in enumerate(self.whole)]
        rows, _ = self.rows_of(items, labels="manifest", columns=["speaker", "words", "loud"], targets=["age"])
        order = [i for i in range(len(items)) if i % 3] + [i for i in range(len(items)) if i % 3 == 0]
        self.assertSame(rows, [self.whole[i] for i in order])
        with h5py.File(rows.file) as file:
            texts = {name: list(file["columns"][name].asstr()[:]) for name in ("speaker", "words", "loud")}
            self.assertEqual(list(np.asarray(file["files/targets"]).ravel()), order)
        self.assertEqual(texts["speaker"], ["" if i == 1 else f"s{i % 4}" for i in order])
        self.assertEqual(texts["words"], [f"a, {i}" for i in order])
        self.assertEqual(texts["loud"], ["true" if i % 2 == 0 else "false" for i in order])
        self.assertEqual([rows.label_names[k] for k in rows.label], [self.whole[i][:3] for i in order])

    def test_columns_are_those_of_all_items(self):
        samples = np.random.default_rng(1).standard_normal(8000).astype(np.float32) / 10
        good = [{"path": f"{split}.wav", "audio": samples, "sample_rate": 8000, "split": split, "text": "of " + split}
                for split in ("train", "test")]
        for first in ({"audio": np.zeros(9, np.int32)}, {"audio": samples}):  # wrong, or without a split and a text
            items = [{"path": "first.wav", "sample_rate": 8000, **first}, *good]
            rows, report = self.written("columns", melflow.Graph().items(items, columns=["text"]))
            self.assertEqual(report["files"]["failed"], int(len(first["audio"]) == 9))
            self.assertEqual(list(rows.split_names), ["train", "test"])
            self.assertEqual(sorted(rows.columns["text"]), ["", "of test", "of train"])

    def test_texts_are_what_a_table_would_have(self):
        class Enumerated(enum.Enum):
            WORD = "word"

        NAType, NaTType = type("NAType", (), {})(), type("NaTType", (), {})()  # of pandas
        texts = {None: "", float("nan"): "", np.float32("nan"): "", decimal.Decimal("nan"): "", NAType: "", NaTType: "",
                 np.datetime64("NaT"): "", datetime.date(2024, 1, 2): "2024-01-02", datetime.time(3, 4): "03:04:00",
                 datetime.datetime(2024, 1, 2, 3, 4): "2024-01-02T03:04:00", np.datetime64("2024-01-02"): "2024-01-02",
                 np.datetime64("2024-01-02T03:04:00", "ns"): "2024-01-02T03:04:00", "nan": "nan", b"caf\xc3\xa9": "café",
                 Enumerated.WORD: "word", decimal.Decimal("1.50"): "1.50", uuid.UUID(int=7): f"{uuid.UUID(int=7)}",
                 ("a", float("nan"), 3): "a, , 3", frozenset("dcab"): "a, b, c, d"}
        good = self.bytes_of(self.whole[0])
        rows, report = self.rows_of([{"path": f"{i:02}", "audio": good, "text": text, "label": None if isinstance(text, (tuple, frozenset)) else text} for i, text in enumerate(texts)],
                                    columns=["text"], labels="manifest")
        self.assertEqual(report["files"]["ok"], len(texts))
        with h5py.File(rows.file) as file:
            self.assertEqual(list(file["columns/text"].asstr()[:]), list(texts.values()))
        self.assertEqual(["" if k < 0 else rows.label_names[k] for k in rows.label], [*list(texts.values())[:-2], "", ""])

    def test_a_text_that_is_not_utf_8_fails_alone(self):
        good = self.bytes_of(self.whole[0])
        items = [{"path": "a", "audio": good, "text": "x"}, {"path": "b", "audio": good, "text": "caf\udce9"},
                 {"path": "c", "audio": good, "text": b"caf\xe9"}, {"path": "d\udce9", "audio": good, "text": "y"},
                 {"path": "e", "audio": good, "te\udce9": "z"}]
        rows, report = self.rows_of(items, columns=["text"])
        self.assertEqual((report["files"]["ok"], report["files"]["failed"]), (3, 2))
        said = {r["path"]: r["reason"] for r in report["remarks"]}
        for path in "bc":
            self.assertRegex(said[path], r"item \d: 'text' is not UTF-8: 'caf\\udce9'")

    def test_an_object_without_a_text_fails_its_item(self):
        items = [{"path": str(i), "audio": self.bytes_of(self.whole[0]), "speaker": speaker, "flag": True}
                 for i, speaker in enumerate((object(), "ann", {"id": object()}))]
        rows, report = self.rows_of(items, columns=["speaker", "flag"])
        said = {r["path"]: r["reason"] for r in report["remarks"]}
        self.assertEqual(list(said), ["0", "2"])
        for reason in said.values():
            self.assertRegex(reason, "'speaker': TypeError: is of the type object, which has no text; give the text or number that it stands for")
        self.assertEqual((rows.columns["speaker"][1], rows.columns["flag"][1]), ("ann", "true"))

    def test_only_columns_that_are_asked_for_can_fail_an_item(self):
        class NoText:
            def __str__(self):
                raise OSError("the table is closed")

        odd = {"raw": b"\xff\xfe", "none": NoText(), "keys": {(1, 2): 3}, "lone": "\udce9", "te\udce9": 1, 7: b"\xff"}
        good = self.bytes_of(self.whole[0])
        items = [{"path": "a", "audio": good, "text": "x", "split": "train", **odd},
                 {"path": "b", "audio": good, "text": "y", "split": "test", **dict.fromkeys(odd, "z")}]
        for given in (items, lambda: iter(items)):
            rows, report = self.rows_of(given, columns=["text"])
            self.assertEqual((report["files"]["ok"], rows.columns["text"]), (2, ["x", "y"]))
            for column, why in {"raw": r"'raw' is not UTF-8: '\\udcff\\udcfe'", "none": "'none': OSError: the table is closed",
                                "keys": "'keys': TypeError: keys must be str", "lone": "'lone' is not UTF-8"}.items():
                for options in (dict(columns=["text", column]), dict(labels="manifest", columns_are={"label": column}),
                                dict(columns_are={"split": column}), dict(columns={"text": "made"}, columns_are={"made": "{text}-{" + column + "}"}),
                                dict(splits="ratio", split_ratios={"train": 100}, split_group=column)):
                    with self.subTest(column, options=options):
                        rows, report = self.rows_of(given, **options)
                        self.assertEqual({r["path"]: r["status"] for r in report["remarks"]}, {"a": "failed"})
                        self.assertRegex(report["remarks"][0]["reason"], "item 0: " + why)
                        self.assertEqual(list(rows.path[i] for i in np.flatnonzero(rows.count)), ["b"])

    def test_a_data_frame_is_a_corpus_of_its_rows(self):
        class OfPandas:
            def __init__(self, rows):
                self.rows = rows

            def __len__(self):
                return len(self.rows)

            def __getitem__(self, column):
                raise KeyError(column)

            def iterrows(self):
                return enumerate(self.rows)

            def to_dict(self, kind):
                return {"records": self.rows}[kind]

        class OfPolars(OfPandas):
            iterrows = property()

            def to_dicts(self):
                return self.rows

        records = [{"path": n, "audio": self.bytes_of(n), "speaker": n[:3]} for n in self.whole]
        for kind in (OfPandas, OfPolars):
            rows, _ = self.rows_of(kind(records), columns=["speaker"])
            self.assertSame(rows, self.whole)

    def test_samples_in_another_scale_are_reported(self):
        loud = samples_of(os.path.join(self.root, self.whole[0]))
        masked = np.ma.masked_greater(loud / np.float32(32768), 0.1)
        items = {"loud": {"audio": loud.astype(np.float32), "sample_rate": 8000}, "beyond": {"audio": loud / np.float32(4096), "sample_rate": 8000},
                 "masked": {"audio": masked, "sample_rate": 8000}, "unmasked": {"audio": np.ma.array(loud), "sample_rate": 8000}}
        with self.assertWarnsRegex(UserWarning, "^1 of 4 recordings have a warning:\n  loud: samples up to "):
            rows, report = self.rows_of(items)
        said = {r["path"]: r["reason"] for r in report["remarks"]}
        peak = int(np.abs(loud.astype(np.int32)).max())
        self.assertEqual(said.pop("loud"), f"samples up to {peak}; full scale is 1 (divide those in the scale of 16-bit integers by 32768)")
        self.assertRegex(said.pop("masked"), f"{np.ma.count_masked(masked)} of {len(loud)} values are masked; fill them")
        self.assertEqual(said, {})

    def test_an_item_that_is_wrong_fails_alone(self):
        def breaks():
            raise OSError("the link is down")

        def leaves_out():
            melflow.skip("is not wanted")

        good = self.bytes_of(self.whole[0])
        wrong = {"a tuple": ("x", good), "nothing": {}, "no audio": {"text": "x"}, "no rate": {"audio": np.zeros(9)},
                 "three axes": {"audio": np.zeros((2, 2, 2)), "sample_rate": 8000}, "a number": {"audio": 3},
                 "breaks": {"audio": breaks}, "empty": {"audio": b""}, "no sound": {"audio": b"abc" * 99},
                 "gives nothing": {"audio": lambda: None}, "out": {"audio": leaves_out}, "no such file": {"audio": "/none/x.wav"},
                 "without a rate": {"audio": {"array": np.zeros(9), "other": 1}}, "half a Hz": {"audio": np.zeros(900, np.int16), "sample_rate": 7999.5},
                 "a square": {"audio": np.zeros((9, 9)), "sample_rate": 8000}, "../up": {"audio": good}}
        items = {"first": {"audio": good}, **wrong, "last": {"audio": good}}
        rows, report = self.rows_of(items)
        why = self.reasons(rows)
        self.assertEqual((report["files"]["ok"], report["files"]["skipped"]), (2, 1))
        for name, pattern in {"a tuple": "is tuple .*; an item is a dict", "nothing": "does not exist",
                              "no rate": "needs `sample_rate`", "three axes": r"an array \(2, 2, 2\) of float64; it is bytes of",
                              "a number": "audio is int 3; it is bytes of a sound file", "breaks": "OSError: the link is down",
                              "gives nothing": "audio is None", "out": "is not wanted", "no such file": "does not exist",
                              "without a rate": "a dict with `array`, and lacks `sampling_rate`", "half a Hz": "a whole number of Hz",
                              "a square": r"an array \(9, 9\) of float64, of which either axis may be the channels"}.items():
            with self.subTest(name):
                self.assertRegex(why[name], pattern)

    def test_a_corpus_that_is_wrong(self):
        for given, message in {(lambda: 3): "gives int 3; a corpus is an iterable of dicts", (lambda: []): "gives no recording",
                               (lambda: 1 / 0): "ZeroDivisionError", "nowhere:clips": "cannot be imported",
                               "nowhere": "names no function"}.items():
            with self.subTest(message), self.assertRaisesRegex(Exception, message):
                self.rows_of(given)

        with self.assertRaisesRegex(melflow.ConfigError, "the function gives the recordings; remove root"):
            self.rows_of([], root=self.root)

        once = iter([{"audio": self.bytes_of(self.whole[0])}])
        self.rows_of(once)
        with self.assertRaisesRegex(melflow.RunError, "items: RunError: this iterator has been read to its end; give a list, or a function"):
            self.rows_of(once)

        def ends_early():
            yield {"audio": self.bytes_of(self.whole[0])}
            raise OSError("the table ends here")

        with self.assertRaisesRegex(melflow.RunError, "OSError: the table ends here"):
            self.rows_of(ends_early)

    def test_two_items_of_one_path(self):
        one, other = self.bytes_of(self.whole[0]), self.bytes_of(self.whole[1])
        items = [{"path": "a", "audio": one}, {"path": "b", "audio": other}, {"path": "b", "audio": one}]
        for given in (items, iter(items)):
            rows, report = self.rows_of(given)
            self.assertEqual((report["files"]["ok"], report["files"]["failed"]), (2, 1))
            self.assertEqual(list(rows.path), ["a", "b", "b"])

    def test_a_path_twice_is_one_warning_and_costs_the_later_item_only(self):
        files = [os.path.join(self.root, name) for name in self.whole[:2]]
        for other, one, said in (
                ("file", {"path": "a", "audio": files[1]}, "^items: 1 of 3 items cannot be used and fails alone; the first: items: item 1: ValueError: has the path 'a' of another item"),
                ("same", {"path": "a", "audio": files[0]}, "^items: 1 of 3 items name a path that was listed before, such as a. Every item gives rows of its own$")):
            with self.subTest(other):
                rows, report = self.rows_of([{"path": "a", "audio": files[0]}, one, {"path": "b", "audio": files[1]}])
                self.assertEqual(len(report["warnings"]), 1, report["warnings"])
                self.assertRegex(report["warnings"][0], said)
                self.assertEqual(report["files"]["failed"], int(other == "file"))
                np.testing.assert_array_equal(rows.recording(0), self.expected.recording(list(self.expected.path).index(self.whole[0])))

    def test_a_version_of_a_file(self):
        path = os.path.join(self.root, self.whole[0])
        out = os.path.join(self.folder.name, "version.h5")

        def graph(version):
            decoded = melflow.Graph().items(lambda: [{"path": "a", "audio": path, "version": version}], name="files").disk_read().decode()
            return decoded.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20).hdf5_write(path=out).graph

        graph(1).run()
        self.assertEqual([len(graph(v).update(dry_run=True)["compute"]) for v in (1, 2)], [0, 1])

    def test_an_update_reads_what_has_changed(self):
        asked = []

        def item(name, version=None):
            return {"path": name, "audio": lambda: (asked.append(name), self.bytes_of(name))[1], "version": version}

        def update(items):
            asked.clear()
            g = melflow.Graph()
            decoded = g.items(lambda: items, name="files").disk_read().decode(truncated="fail")
            out = os.path.join(self.folder.name, "updated.h5")
            decoded.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20).hdf5_write(path=out, overwrite=not os.path.exists(out))
            g.update() if os.path.exists(out) else g.run()
            return melflow.open(out)

        names = self.whole[:9]
        update([item(n, 1) for n in names[:6]])
        self.assertEqual(sorted(asked), names[:6])
        rows = update([item(n, 2 if n == names[3] else 1) for n in names])
        self.assertEqual(sorted(asked), [names[3], *names[6:]])
        self.assertSame(rows, names)
        update([item(n, 2 if n == names[3] else 1) for n in names])
        self.assertEqual(asked, [])
        with self.assertRaisesRegex(melflow.RunError, "have no `path`"):
            update([{"audio": self.bytes_of(names[0])}])

    def test_the_program_runs_a_corpus_of_a_file(self):
        module = os.path.join(self.folder.name, "clips.py")
        with open(module, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(f"""
                import os
                def clips(folder, words):
                    for name in {self.whole!r}:
                        if name[:3] in words:
                            yield {{"path": name, "audio": os.path.join(folder, name), "word": name[:3]}}
                """))
        out = os.path.join(self.folder.name, "of_file.h5")
        text = f"""
            version: 1
            graph:
              files: {{stage: file_list, call: {module}:clips, arguments: {{folder: {self.root}, words: [ant, bee]}}, columns: [word]}}
              read: {{stage: disk_read, from: files}}
              decode: {{stage: decode, from: read}}
              mel: {{stage: mel, from: decode, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}}
              out: {{stage: hdf5_write, from: mel, path: {out}}}
            """
        melflow.run(textwrap.dedent(text))
        self.assertSame(melflow.open(out), [n for n in self.whole if not n.startswith("cat")])
        with h5py.File(out) as file:
            stored = file.attrs["config"]
        self.assertIn("clips.py:clips", stored)
        with self.assertRaisesRegex(melflow.ConfigError, "would run the function"):
            melflow.verify(out, recompute=1.0)
        count = len(melflow.open(out).path)
        self.assertEqual(melflow.verify(out, recompute=1.0, trust=True)["recomputed"], {"same": count, "other": [], "exchanged": [], "lost": [], "changed": []})
        with open(out, "rb") as file:
            whole = file.read()
        with h5py.File(out, "r+") as file:
            file[file.attrs["rows"]][5] += 1
        self.assertEqual(len(melflow.verify(out)["wrong"]), 1)
        subprocess.run([sys.executable, "-m", "melflow", "repair", out, "--trust"], check=True, capture_output=True)
        with open(out, "rb") as file:
            self.assertEqual(file.read(), whole)

    def test_a_stored_call_is_not_run_without_trust(self):
        source, ran, job = (os.path.join(self.folder.name, name) for name in ("theirs.py", "ran", "theirs"))
        with open(source, "w", encoding="utf-8") as out:
            out.write(f"def clips():\n    open({ran!r}, 'w').close()\n    return [{{'audio': {os.path.join(self.root, self.whole[0])!r}}}]\n")
        node = melflow.Graph().file_list(call=source + ":clips").disk_read().decode().mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20)
        melflow.plan(node.hdf5_write(path=os.path.join(self.folder.name, "theirs.h5")).graph, job)
        os.remove(ran)
        with self.assertRaisesRegex(melflow.ConfigError, "would run the function, which is code chosen by the author"):
            melflow.work(job)
        self.assertFalse(os.path.exists(ran))
        melflow.work(job, trust=True)
        self.assertTrue(os.path.exists(ran))

    def test_large_items_are_read_piece_by_piece(self):
        long = np.tile(samples_of(os.path.join(self.root, self.whole[0])), 1000)[:4_000_000]
        self.assertGreater(2 * len(long), 5 << 20)  # what an item of unknown size is taken for is less
        items = {"long": {"audio": lambda: (long, 8000)}, "known": {"audio": lambda: (long, 8000), "bytes": 2 * len(long) + 44}}
        node = melflow.Graph(memory={"host": "256MiB"}).items(items)
        rows, report = self.written("long", node, whole="1MiB")
        self.assertEqual(report["files"]["ok"], 2)
        self.assertNotIn("more memory", str(report["warnings"]))
        np.testing.assert_array_equal(rows.recording(0), rows.recording(1))
        with wave.open(os.path.join(self.folder.name, "long.wav"), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(8000)
            out.writeframes(long.tobytes())
        expected, _ = self.written("of_long", melflow.Graph().file_list(root=self.folder.name, include=["long.wav"]))
        np.testing.assert_array_equal(rows.recording(0), expected[:])


class ArchivesTest(Corpus):
    def tar(self, name, mode="w", **options):
        path = os.path.join(self.folder.name, name)
        with tarfile.open(path, mode, **options) as out:
            for n in self.names:
                out.add(os.path.join(self.root, n), n)
        return path

    def zip(self, name, method):
        path = os.path.join(self.folder.name, name)
        with zipfile.ZipFile(path, "w", method) as out:
            for n in self.names:
                out.write(os.path.join(self.root, n), n)
        return path

    def test_the_rows_are_those_of_the_files(self):
        for path in (self.tar("ustar.tar", format=tarfile.USTAR_FORMAT), self.tar("gnu.tar", format=tarfile.GNU_FORMAT),
                     self.tar("pax.tar", format=tarfile.PAX_FORMAT), self.zip("stored.zip", zipfile.ZIP_STORED),
                     self.zip("deflated.zip", zipfile.ZIP_DEFLATED), self.tar("packed.tar.gz", "w:gz"), self.tar("packed.TGZ", "w:gz")):
            for options in ({}, {"engine": "threads"}, {"engine": "io_uring"}, {"whole": "4KiB", "buffer": "4KiB"}):
                with self.subTest(os.path.basename(path), **options):
                    rows, report = self.written("archive", melflow.Graph().file_list(root=path, labels="top_dir"), **options)
                    self.assertEqual(list(rows.path), list(self.expected.path))
                    np.testing.assert_array_equal(rows[:], self.expected[:])
                    self.assertEqual(list(rows.label), list(self.expected.label))
                    self.assertEqual(self.reasons(rows), self.reasons(self.expected))

    def test_shards(self):
        paths = []
        for k in range(3):
            paths.append(os.path.join(self.folder.name, f"shard-{k:03}.tar"))
            with tarfile.open(paths[-1], "w") as out:
                for n in self.whole[k::3]:
                    out.add(os.path.join(self.root, n), n)
        wanted = [f"shard-{k:03}.tar/{n}" for k in range(3) for n in self.whole[k::3]]
        of = {path: i for i, path in enumerate(self.expected.path)}
        for root in ("shard-{000..002}.tar", "shard-*.tar", "shard-{000,001,002}.tar", "shard-00?.tar"):
            with self.subTest(root):
                rows, _ = self.written("shards", melflow.Graph().file_list(root=os.path.join(self.folder.name, root)))
                self.assertEqual(list(rows.path), wanted)
                for i, name in enumerate(wanted):
                    np.testing.assert_array_equal(rows.recording(i), self.expected.recording(of[name.partition("/")[2]]))
        for root, message in {"shard-{000..003}.tar": "shard-003.tar", "shard-{0-2}.tar": "write {000..128}", "none-*.tar": "no such archive"}.items():
            with self.subTest(root), self.assertRaisesRegex(Exception, message):
                self.written("shards", melflow.Graph().file_list(root=os.path.join(self.folder.name, root)))

    def test_names_links_and_what_is_no_file(self):
        path = os.path.join(self.folder.name, "odd.tar")
        data = self.bytes_of(self.whole[0])
        long = "/".join(["folder" * 8] * 6) + "/ä.wav"

        def add(out, name, kind=tarfile.REGTYPE, link="", data=b""):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(data)
            out.addfile(info, io.BytesIO(data))

        for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            with self.subTest(form), tarfile.open(path, "w", format=form) as out:
                add(out, "./a.wav", data=data)
                add(out, long, data=data)
                add(out, "folder", tarfile.DIRTYPE)
                add(out, "fifo.wav", tarfile.FIFOTYPE)
                add(out, "folder/hard.wav", tarfile.LNKTYPE, "a.wav")
                add(out, "folder/soft.wav", tarfile.SYMTYPE, "../a.wav")
                add(out, "folder/nowhere.wav", tarfile.SYMTYPE, "gone.wav")
                add(out, "twice.wav", data=b"first")
                add(out, "twice.wav", data=data)
                add(out, "notes.txt", data=b"text")
            rows, report = self.written("odd", melflow.Graph().file_list(root=path))
            self.assertEqual(list(rows.path), sorted(["a.wav", long, "folder/hard.wav", "folder/nowhere.wav", "folder/soft.wav", "twice.wav"]))
            self.assertEqual(report["files"]["ok"], 5)
            why = self.reasons(rows)
            self.assertRegex(why["folder/nowhere.wav"], "a link to what is not in the archive")

    def test_damaged_archives(self):
        tar, packed = self.tar("damaged.tar", format=tarfile.USTAR_FORMAT), self.zip("damaged.zip", zipfile.ZIP_DEFLATED)
        with tarfile.open(tar) as archive:
            places = {m.name: m for m in archive.getmembers()}
        with open(tar, "r+b") as file:  # a header in the middle, and the end
            file.seek(places[self.names[20]].offset)
            file.write(b"\xff" * 512)
            file.truncate(places[self.names[50]].offset_data + 600)
        rows, report = self.written("damaged", melflow.Graph().file_list(root=tar))
        why = self.reasons(rows)
        self.assertNotIn(self.names[20], why)
        cure = "; copy the archive {} again, or pack it again$"
        self.assertRegex(why[f"@{places[self.names[20]].offset}"], "the archive is damaged from byte.*" + cure.format(re.escape(tar)))
        self.assertRegex(why[self.names[50]], "is cut off: the archive ends in it" + cure.format(re.escape(tar)))
        self.assertEqual([n for n in self.names[:50] if n != self.names[20]], [n for n in why if n in self.names[:50]])

        with zipfile.ZipFile(packed) as archive:
            info = max((archive.getinfo(n) for n in self.whole), key=lambda i: i.file_size)
            begin = archive.start_dir
        with open(packed, "r+b") as file:
            file.seek(info.header_offset + 30 + len(info.filename) + 100)
            file.write(b"\x55" * 20)
        for options in ({}, {"whole": "4KiB", "buffer": "4KiB"}):  # in memory, and by a temporary file
            rows, _ = self.written("damaged", melflow.Graph().file_list(root=packed), **options)
            why = self.reasons(rows)
            self.assertRegex(why[info.filename], "is damaged in its archive: its checksum is another one" + cure.format(re.escape(packed)))
            self.assertEqual(list(why), self.names)
        with open(packed, "r+b") as file:  # without its directory
            file.truncate(begin)
        rows, report = self.written("damaged", melflow.Graph().file_list(root=packed))
        self.assertEqual(list(rows.path), self.names)
        self.assertRegex(str(report["warnings"] if "warnings" in report else report), "its directory is damaged")

    def test_archives_packed_as_a_whole(self):
        path = self.tar("cut.tar.gz", "w:gz")
        with gzip.open(path) as file:
            size = len(file.read())
        rows, report = self.written("packed", melflow.Graph().file_list(root=path))
        self.assertIn(f"unpacked into a temporary file of {size} bytes", str(report["warnings"]))
        os.truncate(path, os.path.getsize(path) // 2)
        with gzip.open(path) as file, self.assertRaises(EOFError):
            left = 0
            while True:
                left += len(file.read(1))
        rows, report = self.written("packed", melflow.Graph().file_list(root=path))
        why = self.reasons(rows)
        with tarfile.open(self.tar("whole.tar")) as archive:
            for m in archive.getmembers():
                if m.offset_data + m.size <= left:
                    self.assertEqual(why.pop(m.name), self.reasons(self.expected)[m.name])
        self.assertEqual(len(why), 2, why)  # the member that is cut off, and what may be behind it
        self.assertRegex(why[f"@{left}"], "where the archive breaks off: \\d+ bytes of it could be unpacked")
        with open(path, "wb") as file:
            file.write(b"no gzip")
        with self.assertRaisesRegex(Exception, "is not a file packed by gzip|is empty"):
            self.written("packed", melflow.Graph().file_list(root=path))
        path = self.tar("full.tar.gz", "w:gz")
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = "/proc"  # has no room for files
        try:
            with self.assertRaisesRegex(Exception, "cannot be unpacked into a temporary file.*set TMPDIR to a folder with room"):
                self.written("packed", melflow.Graph().file_list(root=path))
        finally:
            del os.environ["TMPDIR"]
            os.environ.update({} if before is None else {"TMPDIR": before})

    def test_files_beside_recordings(self):
        folder = os.path.join(self.folder.name, "beside")
        os.mkdir(folder)
        meta = [{"speaker": "ann", "age": 41}, {"speaker": "bee"}, {"speaker": None, "age": 7.5}]
        path = os.path.join(self.folder.name, "shard.tar")
        with tarfile.open(path, "w") as out:
            for k, about in enumerate(meta):
                data = {"wav": self.bytes_of(self.whole[k]), "txt": f"text of {k}, ä\n".encode(), "cls": str(k % 2).encode(),
                        "json": json.dumps(about).encode()}
                for ending, content in data.items():
                    name = f"{k:03}.seg.{ending}" if ending == "wav" else f"{k:03}.{ending}"
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    out.addfile(info, io.BytesIO(content))
                    with open(os.path.join(folder, name), "wb") as file:
                        file.write(content)
        for root in (path, folder):
            with self.subTest(root):
                columns = {"text": ".txt", "speaker": ".json:speaker", "age": ".json:age"}
                rows, report = self.written("beside", melflow.Graph().file_list(root=root, labels=".cls", columns=columns))
                self.assertEqual([rows.label_names[k] for k in rows.label], ["0", "1", "0"])
                self.assertEqual(list(rows.columns["text"]), ["text of 0, ä", "text of 1, ä", "text of 2, ä"])
                self.assertEqual(list(rows.columns["speaker"]), ["ann", "bee", ""])
                self.assertEqual(list(rows.columns["age"]), ["41", "", "7.5"])
                self.assertIn("no .json:age is beside 1 of 3 recordings, such as 001.seg.wav", str(report["warnings"]))
        os.makedirs(os.path.join(folder, "../texts/beside"), exist_ok=True)
        for k in range(3):
            with open(os.path.join(folder, f"../texts/beside/{k:03}.seg.txt"), "w", encoding="utf-8") as file:
                file.write(f"far {k}")
        above = os.path.dirname(folder)
        rows, _ = self.written("beside", melflow.Graph().file_list(root=above, include=["beside/*.wav"], columns={"x": "texts/{parent_dir}/{name}.txt",
                                                                                                             "y": "texts/{folder}{name}.txt"}))
        self.assertEqual([list(rows.columns[c]) for c in "xy"], [["far 0", "far 1", "far 2"]] * 2)
        with self.assertRaisesRegex(Exception, "'a/{stem}.txt': a path of a file has {name}, {folder}, {parent_dir}, {top_dir}"):
            self.written("beside", melflow.Graph().file_list(root=above, columns={"x": "a/{stem}.txt"}))
        for name, content, why in (("001.json", b"[1]", "its file 001.json is no JSON object"), ("001.json", b'{"age": {}}', "neither text, a number"),
                                   ("001.txt", b"\xff", "its file 001.txt is not UTF-8"), ("001.txt", bytes(2 << 20), "has 2097152 bytes"),
                                   ("001.txt", b"a\0b", "has a zero byte")):
            with self.subTest(why), open(os.path.join(folder, name), "r+b") as file:
                before = file.read()
                file.truncate(0)
                file.seek(0)
                file.write(content)
                file.flush()
                rows, report = self.written("beside", melflow.Graph().file_list(root=folder, columns=columns))
                self.assertEqual(report["files"], {**report["files"], "ok": 2, "failed": 1})
                self.assertIn(why, self.reasons(rows)["001.seg.wav"])
                file.truncate(0)
                file.seek(0)
                file.write(before)
        for options, message in (({"labels": ".lab"}, "no .lab is beside any of the 3 recordings"), ({"columns": {"x": ".txt:y"}}, "'.txt:y': only a .json has values"),
                                 ({"labels": ".c*"}, "'.c\\*' is no file beside a recording")):
            with self.subTest(message), self.assertRaisesRegex(Exception, message):
                self.written("beside", melflow.Graph().file_list(root=folder, **options))
        rows, report = self.written("beside", melflow.Graph().file_list(root=folder, columns=columns, splits="ratio", split_group="speaker",
                                                                        split_unmatched="own_group", split_ratios={"a": 0.5, "b": 0.5}))
        self.assertEqual(set(rows.split), {0, 1})

    def test_archives_that_cannot_be_read(self):
        empty = os.path.join(self.folder.name, "empty.tar")
        open(empty, "wb").close()
        text = os.path.join(self.folder.name, "text.zip")
        with open(text, "w", encoding="utf-8") as file:
            file.write("no archive" * 100)
        none = self.tar("other.tar", format=tarfile.USTAR_FORMAT)
        for root, options, message in ((empty, {}, "is empty"), (text, {}, "is not a zip archive"), (empty + "x.tar", {}, "cannot be read|no such"),
                                       (none, {"include": ["**/*.mp3"]}, r"no member that matches \*\*/\*.mp3 in it \(there are")):
            with self.subTest(root), self.assertRaisesRegex(Exception, message):
                self.written("unreadable", melflow.Graph().file_list(root=root, **options))

    def test_an_archive_that_cannot_be_read_for_a_moment(self):
        path, table = self.tar("moment.tar"), os.path.join(self.folder.name, "moment.csv")
        with open(table, "w", encoding="utf-8") as file:
            file.write("path\n" + "".join(f"moment.tar/{n}\n" for n in self.whole))
        out = os.path.join(self.folder.name, "moment.h5")
        g = melflow.Graph()
        decoded = g.file_list(root=self.folder.name, manifest=table).disk_read().decode()
        decoded.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20).hdf5_write(path=out)
        g.run()
        with open(path, "rb") as file:
            whole = file.read()
        os.truncate(path, 0)
        plan = g.update(dry_run=True)
        self.assertEqual((plan["compute"], plan["dropped"] or 0), ([], 0))
        with open(path, "wb") as file:
            file.write(whole[:2000])  # half of a member
        with self.assertRaisesRegex(melflow.RunError, "all files failed .* is not in the archive"):
            self.written("cut", melflow.Graph().file_list(root=self.folder.name, manifest=table))

    def test_an_update_and_other_readers(self):
        path = self.tar("grows.tar")
        g = melflow.Graph()
        out = os.path.join(self.folder.name, "grows.h5")
        decoded = g.file_list(root=path).disk_read().decode(truncated="fail")
        decoded.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20).hdf5_write(path=out, overwrite=True)
        g.run()
        self.assertEqual(g.update(dry_run=True)["kept_files"], len(self.whole))
        np.testing.assert_array_equal(melflow.open(out)[:], self.expected[:])
        melflow.verify(out, recompute=1.0)
        g = melflow.Graph()
        decoded = g.file_list(root=path).disk_read().decode(truncated="fail")
        rows = melflow.open(decoded.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20).batches().graph)
        np.testing.assert_array_equal(rows[:50], self.expected[:50])  # computed when they are asked for


if __name__ == "__main__":
    unittest.main()
