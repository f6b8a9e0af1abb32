"""Pipelines as objects."""

import glob
import html
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import warnings
from importlib.util import find_spec

import melflow
import numpy as np

import corpus

REPOSITORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def pipelines():
    """The name and text of every pipeline that is shipped, and of those in the gallery."""
    for path in sorted(glob.glob(os.path.join(REPOSITORY, "config/pipelines/*.yaml"))):
        with open(path, encoding="utf-8") as file:
            yield os.path.basename(path), file.read()
    with open(os.path.join(REPOSITORY, "docs/gallery.md"), encoding="utf-8") as file:
        gallery = file.read()
    for title, text in re.findall(r"\n### ([^\n]*)\n(?:(?!\n### ).)*?```yaml\n(version.*?)```", gallery, re.DOTALL):
        yield title, text


class GraphTest(corpus.CorpusTest):
    def test_every_pipeline_comes_back_as_it_was(self):
        whole = {}
        for name, text in pipelines():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of folders that are not there
                found = []
                for given in (text, melflow.Graph.of(text), melflow.Graph.of(melflow.Graph.of(text).to_yaml())):
                    values = {v: self.root if v == "DATA" else os.path.join(folder, v)
                              for v in re.findall(r"\$\{(\w+)\}", text)}
                    try:
                        found.append(melflow.validate(given, vars=values)["config"])
                        whole[name] = 1
                    except melflow.ConfigError as error:  # of lists that are not there
                        found.append(re.sub(r"pipeline:\d+:\d+: ", "", str(error)))
                self.assertEqual(found[1:], found[:1] * 2)
        self.assertGreater(len(whole), 20)

    def test_stages_are_methods(self):
        g = melflow.Graph(workers=np.int64(2), memory={"host": "64MiB"})
        decoded = g.file_list(root=pathlib.Path(self.root), labels="top_dir").disk_read().decode(truncated="fail", block="64KiB")
        cut = g.segment(decoded, length=np.int32(2000), hop=1500)
        rows = cut | g.mel(name="rows", sample_rate=8000, n_fft=256, hop=80, n_mels=20, log=None)
        self.assertIsNone(rows.options.pop("log"))
        path = os.path.join(self.folder.name, "methods.h5")
        rows.hdf5_write(path=path)
        g.samples(cut, sample_rate=8000).hdf5_write(path=path + "2")
        self.assertEqual([str(node) for node in g],
                         ["file_list", "disk_read", "decode", "segment", "rows", "hdf5_write", "samples", "hdf5_write_2"])
        self.assertEqual(g.to_yaml(), f"""version: 1
workers: 2
memory: {{host: "64MiB"}}
graph:
  file_list: {{stage: file_list, root: {self.root}, labels: top_dir}}
  disk_read: {{stage: disk_read, from: file_list}}
  decode: {{stage: decode, from: disk_read, truncated: fail, block: "64KiB"}}
  segment: {{stage: segment, from: decode, length: 2000, hop: 1500}}
  rows: {{stage: mel, from: segment, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}}
  hdf5_write: {{stage: hdf5_write, from: rows, path: {path}}}
  samples: {{stage: samples, from: segment, sample_rate: 8000}}
  hdf5_write_2: {{stage: hdf5_write, from: samples, path: {path}2}}
""")
        self.assertEqual(g.run()["files"]["found"], 60)
        text = corpus.pipeline(self.root, f"stage: hdf5_write, path: {path}3", **corpus.WINDOWS)
        melflow.run(text)
        np.testing.assert_array_equal(melflow.open(path)[:], melflow.open(path + "3")[:])

    def test_a_pipeline_can_be_changed(self):
        g = melflow.Graph.of("whisper")
        g["mel"].options["preset"] = "librosa"
        g.settings["workers"] = 1
        again = melflow.Graph.of(g)
        g["mel"].options["preset"] = "nemo"
        self.assertEqual((again["mel"].options["preset"], again.settings["workers"]), ("librosa", 1))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "p.yaml")
            again.to_yaml(path)
            self.assertEqual(melflow.Graph.of(path).to_dict(), again.to_dict())

    def test_several_inputs_and_outputs(self):
        g = melflow.Graph()
        sources = [g.file_list(root="a"), g.file_list(root="b", name="more")]
        read = g.disk_read(sources)
        self.assertEqual(read.options["from"], ["file_list", "more"])
        way = read.decode().route(outputs={"long": {"min_length": "1s"}}, else_="short")
        self.assertEqual(way["long"].mel().options["from"], "route.long")
        self.assertEqual(way.options["else"], "short")
        both = [way["long"], way["short"]] | g.merge()
        self.assertEqual(both.options["from"], ["route.long", "route.short"])
        self.assertIs(g["merge"].graph, g)

    def test_completion_and_documentation(self):
        g = melflow.Graph()
        node = g.file_list(root="a")
        self.assertIn("mel", dir(g))
        self.assertIn("mel", dir(node))
        self.assertNotIn("file_list", dir(node))
        self.assertIn("n_mels", inspect.signature(node.mel).parameters)
        self.assertNotIn("source", inspect.signature(node.mel).parameters)
        self.assertEqual(list(inspect.signature(g.mel).parameters)[:2], ["source", "name"])
        self.assertRegex(g.mel.__doc__, r"(?m)^n_mels: .*\(default \d+\)")

    @staticmethod
    def without_inputs():
        g = melflow.Graph()
        g.file_list(root="a")
        g.decode()
        g.mel(sample_rate=8000).discard()
        g.validate()

    def test_what_is_wrong(self):
        g, other = melflow.Graph(), melflow.Graph()
        files = g.file_list(root="a")
        for error, what, make in [
            (TypeError, "mel has no option 'n_melz'. Did you mean 'n_mels'", lambda: files.mel(n_melz=3)),
            (TypeError, r"mel has no option 'hop_length'; use 'hop' instead: 160, in samples; .*\(hop_length is the name in librosa, torchaudio",
             lambda: files.mel(hop_length=160)),
            (TypeError, r"mel has no option 'sr'; use 'sample_rate' instead \(sr is the name in librosa\)$", lambda: g.mel(files, sr=16000)),
            (TypeError, r"mel has no option 'window_stride'; use 'hop' instead: 0.01s \(window_stride is the name in NeMo", lambda: files.mel(window_stride=0.01)),
            (TypeError, "decode has no option 'mono'; use 'downmix' instead", lambda: files.decode(mono=True)),
            (TypeError, "mel has no option 'zzzzzz'; there are preset, sample_rate", lambda: files.mel(zzzzzz=object())),
            (TypeError, r"a pipeline has no key 'n_jobs'; use 'workers' instead \(n_jobs is the name in scikit-learn\)", lambda: melflow.Graph(n_jobs=4)),
            (AttributeError, "a node has no 'melspectrogram', and no stage has this name; use 'mel' instead", lambda: files.melspectrogram()),
            (melflow.ConfigError, "there is no stage 'hdf5'; use 'hdf5_write' instead", lambda: g.add("hdf5")),
            (melflow.ConfigError, "there is no stage 'quux'; there are audio_write, batch", lambda: g.add("quux")),
            (AttributeError, "a graph has no 'mell', and no stage has this name. Did you mean 'mel'", lambda: g.mell()),
            (TypeError, "a pipeline has no key 'memroy'. Did you mean 'memory'", lambda: melflow.Graph(memroy={})),
            (TypeError, "file_list is a source and comes after no node", lambda: g.file_list("clips")),
            (AttributeError, "a node has no 'file_list'", lambda: files.file_list()),
            (melflow.ConfigError, "there is no stage 'mell'. Did you mean 'mel'", lambda: g.add("mell")),
            (ValueError, "there is a node 'file_list' already", lambda: g.file_list(root="b", name="file_list")),
            (ValueError, "file_list is a node of another graph", lambda: other.disk_read(files)),
            (TypeError, "a source is a node, its name, or a list of them, not 3", lambda: g.disk_read(3)),
            (ValueError, "disk_read has a node before it already", lambda: files | g.disk_read(files)),
            (KeyError, "there is no node 'mel'; the nodes are file_list", lambda: g["mel"]),
            (TypeError, "is no value of an option", lambda: files.mel(n_mels=object())),
            (melflow.ConfigError, "a pipeline is a map with the keys", lambda: melflow.Graph.of("a:\n- 1\n")),
            (melflow.ConfigError, "nowhere.yaml", lambda: melflow.Graph.of("nowhere.yaml")),
            (melflow.ConfigError, r"python.timeout: '2min' is not a number of seconds; write 120$",
             lambda: melflow.Graph.of({"version": 1, "graph": {"f": {"stage": "file_list", "root": "/"}}}).map("f", "os:getcwd", timeout="2min").graph.validate()),
            (melflow.ConfigError, r"^decode: comes after no node; write node.decode\(...\) or g.decode\(node, ...\), or connect it: node \| g\['decode'\]\n"
             r"mel: comes after no node", self.without_inputs),
            (melflow.ConfigError, r"mel: 'sample_rate' is missing; write the rate of the recordings",
             lambda: melflow.Graph.of({"version": 1, "graph": {"file_list": {"stage": "file_list", "root": "/"}}})["file_list"].mel().discard().graph.validate()),
        ]:
            with self.subTest(what), self.assertRaisesRegex(error, what):
                make()

    def test_a_notebook_shows_it(self):
        page = melflow.Graph.of("dataset_builder")._repr_html_()
        self.assertTrue(page.startswith("<iframe srcdoc="))
        for name in melflow.Graph.of("dataset_builder").nodes:
            self.assertIn(f">{name}<", page)

    def test_a_notebook_shows_options_as_they_are_written(self):
        """tests/apps/html_in_browser_test.cpp has where the texts are drawn."""
        def half(samples):
            return samples / 2

        graph = melflow.Graph()
        source = graph.items([{"audio": b""}], labels="<b>manifest")
        source.disk_read().decode().map(half, processes=0).mel(preset="whisper").discard()
        page = html.unescape(graph._repr_html_())
        self.assertIn("call: half\n", page)
        self.assertIn("call: items\n", page)
        self.assertIn("&lt;b&gt;manifest", page)
        self.assertNotIn("<b>manifest", page)
        self.assertNotIn("call: @", page)

    @unittest.skipUnless(find_spec("mypy"), "mypy is not installed")
    def test_types(self):
        """The examples are checked with the types that the package brings, and a wrong option is found."""
        examples = glob.glob(os.path.join(REPOSITORY, "docs/examples/*.py"))
        self.assertEqual(self.mypy(*examples), (0, f"Success: no issues found in {len(examples)} source files\n"))
        with tempfile.TemporaryDirectory() as folder:
            wrong = os.path.join(folder, "wrong.py")
            with open(wrong, "w", encoding="utf-8") as file:
                file.write("import melflow\nmelflow.Graph().file_list(root='a').mel(n_melz=3, preset='wisper')\n")
            status, said = self.mypy(wrong)
            self.assertEqual(self.mypy(wrong)[0], 1)
            with open(wrong, "w", encoding="utf-8") as file:
                file.write("import melflow\nfor batch in melflow.Loader('a'):\n    reveal_type(batch['path'])\n    reveal_type(batch['mine'])\n"
                           "melflow.features('a', n_melz=3)\nmelflow.features('a', n_mels=80, hop='10ms')\n"
                           "reveal_type(melflow.folder('a', n_mels=80))\nmelflow.folder('a', hop=[])\n")
            _, calls = self.mypy(wrong)
        for line, what in ((3, "list["), (4, '"Any"'), (5, 'Unexpected keyword argument "n_melz"'), (7, "dict["),
                           (8, 'No overload variant of "folder"')):
            self.assertRegex(calls, rf"wrong.py:{line}: [^\n]*{re.escape(what)}")
        self.assertNotIn("wrong.py:6:", calls)
        self.assertEqual(status, 1)
        self.assertIn('Unexpected keyword argument "n_melz"', said)
        self.assertIn('Argument "preset"', said)

    def mypy(self, *paths):
        without_torch = ["--ignore-missing-imports", "--allow-subclassing-any", "--allow-untyped-decorators", "--config-file=mypy.ini"]
        with open(os.path.join(self.folder.name, "mypy.ini"), "w", encoding="utf-8") as file:  # also where torch is there
            file.write("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\nfollow_imports_for_stubs = true\n")
        ended = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-incremental", *without_torch, *paths],
                               capture_output=True, text=True, cwd=self.folder.name)
        return ended.returncode, ended.stdout


if __name__ == "__main__":
    unittest.main()
