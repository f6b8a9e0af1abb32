"""Figures for Prometheus, of loaders and of runs, read by a parser of the tests' own and by prometheus_client, where that is installed."""

import importlib.util
import os
import sys
import unittest
import warnings

import melflow

import corpus

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../apps"))
import check_metrics  # noqa: E402

PAGE = os.path.join(HERE, "../../docs/profiling.md")


class MetricsTest(corpus.CorpusTest):
    def read(self, text):
        """What the parser finds: {name: (help, type, {labels: value})}; prometheus_client finds the same."""
        found = check_metrics.parse(text)
        if importlib.util.find_spec("prometheus_client") is not None:
            from prometheus_client.parser import text_string_to_metric_families
            theirs = {one.name: [one.documentation, one.type, {frozenset(sample.labels.items()): sample.value for sample in one.samples}]
                      for one in text_string_to_metric_families(text)}
            self.assertEqual(found, theirs)
        return found

    def test_of_a_loader(self):
        loader = melflow.Loader(corpus.pipeline(self.root, "stage: batches, size: 4"))
        before = self.read(loader.metrics())
        self.assertEqual(set(before), {name for name in check_metrics.documented(PAGE) if name.startswith("melflow_loader_")})
        self.assertEqual({value for _, kind, samples in before.values() for value in samples.values()}, {0})
        samples = sum(len(batch["file"]) for batch in loader)
        name = 'a "b" \\ c\nd'
        for run, labels in ((None, []), ("train", [("run", "train")]), (name, [("run", name)])):
            found = self.read(loader.metrics(run))
            self.assertEqual(found["melflow_loader_samples"][1:], ["gauge", {frozenset(labels): samples}])
            self.assertEqual(found["melflow_loader_waiting_for_batches_seconds"][2].keys(), {frozenset(labels)})
        with self.assertRaisesRegex(TypeError, "run is a text, not 3"):
            loader.metrics(3)

    def test_of_runs(self):
        folder = self.folder.name
        text = corpus.pipeline(self.root, f"stage: hdf5_write, path: {folder}/metrics.h5")
        for verb, name in (("run", "one"), ("update", "the other")):
            self.run_program(text, verb, "--quiet", "--metrics", f"{folder}/{name}.prom", code=3)
            with open(f"{folder}/{name}.prom", encoding="utf-8") as file:
                found = self.read(file.read())
            self.assertEqual(set(found), {name for name in check_metrics.documented(PAGE) if name.startswith("melflow_run_")})
            self.assertEqual({dict(labels)["run"] for _, _, samples in found.values() for labels in samples}, {name})

    def test_of_runs_of_python(self):
        folder = self.folder.name
        text = corpus.pipeline(self.root, f"stage: hdf5_write, path: {folder}/python.h5")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for verb, name in ((melflow.run, "run"), (melflow.update, "update")):
                report = verb(text, metrics=f"{folder}/{name}.prom")
                with open(f"{folder}/{name}.prom", encoding="utf-8") as file:
                    found = self.read(file.read())
                self.assertEqual(found["melflow_run_rows"][2], {frozenset({("run", name)}): report["rows"]})
        with self.assertRaisesRegex(ValueError, "--metrics: .*run.txt does not end in .prom"):
            melflow.run(text, metrics=f"{folder}/run.txt")
        with self.assertRaisesRegex(melflow.RunError, "--metrics: .*none/run.prom: cannot be written: there is no folder"):
            melflow.run(text, metrics=f"{folder}/none/run.prom")

    def test_what_is_no_such_text(self):
        """The parser of the tests refuses what Prometheus would."""
        good = "# HELP a_b What it is\n# TYPE a_b gauge\na_b{run=\"x\"} 1\n"
        self.assertEqual(check_metrics.parse(good), {"a_b": ["What it is", "gauge", {frozenset({("run", "x")}): 1.0}]})
        for bad in (good[:-1], good + "a_b{run=\"x\"} 2\n", good + good, good.replace("gauge", "number"), good.replace('"x"', "x"), good.replace("} 1", "} one"),
                    good.replace("a_b{", "a-b{"), good.replace('"x"', '"x\n"'), good + "\n"):
            with self.subTest(bad), self.assertRaises(ValueError):
                check_metrics.parse(bad)


if __name__ == "__main__":
    unittest.main()
