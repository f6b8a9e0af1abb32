"""Names of files and texts of lists that are no UTF-8: they come as os.fsdecode() has them, whole and both ways."""

import os
import tempfile
import unittest
import warnings

import melflow
import numpy as np

import corpus

ODD = b"b\xe9e"  # a folder and label in Latin-1


class TextsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = os.path.join(folder.name, os.fsdecode(b"odd \xff"))
        cls.root = os.path.join(cls.folder, "audio")
        corpus.make_corpus(cls.root, 14)  # one of them empty, one broken
        cls.odd = os.fsdecode(ODD)
        os.rename(os.path.join(cls.root, "ant"), os.path.join(cls.root, cls.odd))
        cls.yaml, cls.file = os.path.join(cls.folder, "a.yaml"), os.path.join(cls.folder, "a.h5")
        files = ", columns: {folder: parent_dir, '\u00e4': parent_dir}, splits: ratio, split_ratios: {train: 70, val: 30}"

        def text(sink):
            return corpus.pipeline('"${ROOT}"', sink, files=files)

        with open(cls.yaml, "w", encoding="utf-8") as out:
            out.write(text("stage: batches"))
        cls.vars = {"ROOT": cls.root}
        cls.report = melflow.run(text('stage: hdf5_write, path: "${OUT}"'), vars=cls.vars | {"OUT": cls.file})
        cls.listed = sorted(os.path.join(os.path.basename(at), name) for at, _, names in os.walk(cls.root) for name in names)

    def kinds(self):
        yield "stream", melflow.Loader(self.yaml, vars=self.vars, batch_size=4, shuffle=8, seed=1)
        yield "of a pipeline", melflow.open(self.yaml, scan=True, vars=self.vars).batches(4, seed=1)
        yield "of a file", melflow.open(self.file).batches(4, seed=1)
        yield "of files", melflow.open({"mel": self.file}).batches(4, seed=1)

    @corpus.of_each
    def test_batches_have_them(self, name, loader):
        seen = []
        for batch in loader:
            names = (loader if name == "stream" else loader.rows).label_names
            for i, path in enumerate(batch["path"]):
                folder = path.split("/")[0]
                self.assertTrue(os.path.exists(os.path.join(self.root, path)))
                self.assertEqual((names[batch["label"][i]], batch["folder"][i], batch["\u00e4"][i]), (folder,) * 3)
            seen += batch["path"]
            loader.state_dict()
        self.assertEqual(len(seen), 12)
        self.assertIn(self.odd, {path.split("/")[0] for path in seen})

    def test_rows_and_reports_have_them(self):
        for rows in (melflow.open(self.yaml, scan=True, vars=self.vars), melflow.open(self.yaml, scan=True, vars=self.vars), melflow.open(self.file)):
            self.assertEqual(sorted(rows.path), sorted(self.listed))  # the second time from the index
            self.assertIn(self.odd, rows.label_names)
            for where in ({"label": self.odd}, {"folder": [self.odd]}):
                self.assertTrue(all(rows.path[i].startswith(self.odd) for i in rows.select(where)))
            self.assertTrue(len(rows.select({"path": rows.path[int(rows.select({"label": self.odd})[0])]})))
        loader = melflow.Loader(self.yaml, vars=self.vars)
        list(loader)
        remarks = melflow.open(self.yaml, scan=True, vars=self.vars).remarks
        self.assertEqual(corpus.remarks_of(loader.report), remarks)
        self.assertEqual({path for path, *_ in remarks}, {f["path"] for f in self.report["remarks"]})
        self.assertEqual(self.report["config"]["graph"]["files"]["root"], self.root)
        self.assertTrue(any(path.startswith(self.odd) for path, *_ in remarks))

    def test_losses_and_messages_have_them(self):
        rows = melflow.open(self.yaml, scan=True, vars=self.vars, store=0)
        changed = next(p for p, n in zip(rows.path, rows.count) if n and p.startswith(self.odd))
        stamp = os.stat(os.path.join(self.root, changed))
        os.utime(os.path.join(self.root, changed), (1, 1))
        self.addCleanup(os.utime, os.path.join(self.root, changed), ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        list(rows.batches(4))
        self.assertEqual(list(rows.losses), [changed])
        for act in (melflow.Loader, melflow.open, melflow.Features):
            with self.assertRaisesRegex(melflow.ConfigError, r"odd \\xff/no.yaml: cannot be read"):
                act(os.path.join(self.folder, "no.yaml"))

    def test_a_dict_and_other_surrogates(self):
        graph = {"files": {"stage": "file_list", "root": "${ROOT}"}, "read": {"stage": "disk_read", "from": "files"},
                 "decode": {"stage": "decode", "from": "read", "truncated": "keep"}, "segment": {"stage": "segment", "from": "decode"},
                 "rows": {"stage": "samples", "from": "segment", "sample_rate": 8000}, "out": {"stage": "batches", "from": "rows"}}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "1 of 14 recordings have a warning")
            paths = [p for b in melflow.Loader({"version": 1, "graph": graph}, vars=self.vars) for p in b["path"]]
        self.assertEqual(len(paths), 13)
        with self.assertRaisesRegex(melflow.ConfigError, "cannot be read"):
            melflow.Loader("\ud800")  # stands for no byte


if __name__ == "__main__":
    unittest.main()
