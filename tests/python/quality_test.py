"""Columns of `quality` are the same bit for bit from files, an archive and a Python source, in parts that are merged, and by melflow.run."""

import os
import pathlib
import sys
import tarfile
import unittest

import h5py
import melflow
import numpy as np

import corpus

SOURCE = '''import pathlib
import melflow

def clips(folder):
    for path in sorted(pathlib.Path(folder).rglob("*.wav")):
        yield {"path": path.relative_to(folder).as_posix(), "version": "1", "audio": path.read_bytes()}
'''


class QualityTest(corpus.CorpusTest):
    def path(self, name):
        return os.path.join(self.folder.name, name)

    def text(self, out, files=None):
        text = corpus.pipeline(self.root, f"stage: hdf5_write, path: {self.path(out)}")
        text = text.replace(", labels: top_dir", "").replace(
            "  segment: {stage: segment, from: decode", "  measure: {stage: quality, from: decode, measures: all}\n  segment: {stage: segment, from: measure")
        return text if files is None else text.replace(f"root: {self.root}", files)

    def columns(self, out, names=lambda path: path):
        """By the path of each recording: the bytes of all measures."""
        with h5py.File(self.path(out)) as file:
            paths = file["files/path"].asstr()[:]
            measures = sorted(name for name in file["files"] if name.startswith("quality."))
            self.assertIn("quality.true_peak", measures)
            values = [file["files"][name][:] for name in measures]
        return {names(path): [v[i].tobytes() for v in values] for i, path in enumerate(paths)}, measures

    def test_values_do_not_depend_on_where_recordings_come_from(self):
        self.run_program(self.text("files.h5"))
        expected, measures = self.columns("files.h5")
        peaks = [np.frombuffer(of[measures.index("quality.peak")], np.float32)[0] for of in expected.values()]
        self.assertGreater(np.sum(np.asarray(peaks) > 0.2), 40)

        with tarfile.open(self.path("all.tar"), "w") as out:
            for path in sorted(pathlib.Path(self.root).rglob("*.wav")):
                out.add(path, path.relative_to(self.root))
        self.run_program(self.text("tar.h5", f"root: {self.path('all.tar')}"))
        self.assertEqual(self.columns("tar.h5", lambda path: path.removeprefix("all.tar/"))[0], expected)

        source = pathlib.Path(self.path("source.py"))
        source.write_text(SOURCE, encoding="utf-8")
        self.run_program(self.text("python.h5", f"call: \"{source}:clips\", arguments: {{folder: {self.root}}}"),
                         env={**os.environ, "MELFLOW_PYTHON": sys.executable})
        self.assertEqual(self.columns("python.h5")[0], expected)

    def test_parts_that_are_merged_have_them(self):
        self.run_program(self.text("one.h5"))
        job = self.path("job")
        self.run_program(self.text("merged.h5"), "plan", "-o", job, "--part", "200KiB", code=0)
        self.program("work", job)
        self.program("merge", job, code=3, cwd=self.folder.name)
        self.assertEqual(self.columns("merged.h5"), self.columns("one.h5"))

    def test_melflow_run_has_them(self):
        self.run_program(self.text("program.h5"))
        with self.assertWarnsRegex(UserWarning, "gave no rows"):
            melflow.run(self.yaml(self.text("run.h5")))
        self.assertEqual(self.columns("run.h5"), self.columns("program.h5"))


if __name__ == "__main__":
    unittest.main()
