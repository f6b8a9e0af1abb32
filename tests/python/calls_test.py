"""Functions of Python as nodes."""

import filecmp
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest
import warnings
import wave
import zlib

import h5py
import melflow
import numpy as np

import corpus


class CallsCase(corpus.CorpusTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = os.path.join(cls.folder.name, "own.py")
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "called_functions.py"), cls.file)
        sys.path.insert(0, cls.folder.name)
        cls.addClassCleanup(sys.path.remove, cls.folder.name)

    def decoded(self, **options):
        g = melflow.Graph(**{"memory": {"host": "1GiB"}, **options})
        return g, g.file_list(root=self.root, labels="top_dir").disk_read().decode(truncated="fail")

    def written(self, name, node, **options):
        path = os.path.join(self.folder.name, name + ".h5")
        report = node.hdf5_write(path=path, overwrite=True).graph.run(**options)
        return melflow.open(path), report

    def mel(self, node):
        return node.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20)



class CallsTest(CallsCase):
    def test_a_function_of_samples(self):
        import own

        _, plain = self.decoded()
        expected, _ = self.written("plain", self.mel(plain))
        for name, function in {"imported": own.louder, "module": "own:louder", "file": self.file + ":louder"}.items():
            with self.subTest(name):
                _, node = self.decoded()
                rows, _ = self.written(name, self.mel(node.map(function, gain=3)))
                np.testing.assert_allclose(rows[:], 9 * expected[:], rtol=1e-4)
                self.assertEqual(list(rows.path), list(expected.path))

    def test_a_function_of_this_process(self):
        _, node = self.decoded()
        rows, _ = self.written("lambda", self.mel(node.map(lambda samples: samples * np.float32(2))))
        _, plain = self.decoded()
        expected, _ = self.written("without", self.mel(plain))
        np.testing.assert_allclose(rows[:], 4 * expected[:], rtol=1e-4)

    def test_each_function_is_itself(self):
        import own

        def gain_of(factor):
            return lambda samples: samples * np.float32(factor)

        class Gain:
            def __init__(self, factor):
                self.factor = factor

            def __call__(self, samples):
                return samples * np.float32(self.factor)

            def apply(self, samples, rate):
                return samples * np.float32(self.factor)

        _, plain = self.decoded()
        expected, _ = self.written("once", self.mel(plain))
        for name, functions in {"lambdas": [lambda samples: samples * np.float32(2), lambda samples: samples * np.float32(3)],
                                "closures": [gain_of(2), gain_of(3)], "objects": [Gain(2), Gain(3)],
                                "methods": [Gain(2).apply, Gain(3).apply],
                                "partials": [functools.partial(own.louder, gain=2), functools.partial(own.louder, gain=3)]}.items():
            with self.subTest(name):
                _, node = self.decoded()
                for function in functions:
                    node = node.map(function)
                rows, _ = self.written(name, self.mel(node))
                np.testing.assert_allclose(rows[:], 36 * expected[:], rtol=1e-4)

    def test_a_file_that_changes_is_read_again(self):
        path, seen = os.path.join(self.folder.name, "edited.py"), []
        for factor in (1, 2):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"def f(samples):\n    return samples * {factor}.0\n")
            os.utime(path, (1e9, 1e9))
            _, node = self.decoded()
            rows, _ = self.written(f"edited{factor}", self.mel(node.map(path + ":f")))
            seen.append((rows[:], rows.attributes["feature_fingerprint"]))
        np.testing.assert_allclose(seen[1][0], 4 * seen[0][0], rtol=1e-4)
        self.assertNotEqual(seen[0][1], seen[1][1])

    def test_a_module_that_changes_is_refused(self):
        path = os.path.join(self.folder.name, "imported_once.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("def f(samples):\n    return samples\n")
        for is_changed in (False, True):
            g, node = self.decoded()
            self.mel(node.map("imported_once:f")).discard()
            if not is_changed:
                g.validate()
                with open(path, "a", encoding="utf-8") as file:
                    file.write("# edited\n")
                continue
            with self.assertRaisesRegex(melflow.ConfigError, "imported_once.py: has changed since imported_once:f was imported"):
                g.validate()

    def test_a_verb_that_waits_for_another_can_be_stopped(self):
        code = textwrap.dedent("""
            import os, signal, sys, threading
            import melflow, own
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
            threading.Thread(target=melflow.run, args=(sys.argv[1],)).start()
            assert own.is_called.wait(60)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try: melflow.inspect("any.h5")
            except KeyboardInterrupt: print("interrupted")
            own.may_end.set()
            """)
        text = "version: 1\ngraph:\n  files: {stage: synthetic, count: 1}\n" \
               "  waits: {stage: python, from: files, call: own:waits}\n  out: {stage: discard, from: waits}\n"
        with open(os.path.join(self.folder.name, "waits.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        ended = subprocess.run([sys.executable, "-c", code, "waits.yaml"], capture_output=True, text=True, timeout=120,
                               cwd=self.folder.name)
        self.assertEqual((ended.stdout, ended.returncode), ("interrupted\n", 0), ended.stderr)

    def test_a_program_with_threads_of_others_can_be_stopped(self):
        """python3 -m melflow, where a thread that was there before it, such as one of a library, does not block Ctrl-C."""
        code = textwrap.dedent("""
            import os, runpy, signal, sys, threading
            import own
            signal.signal(signal.SIGINT, signal.default_int_handler)
            def interrupt():
                assert own.is_called.wait(60)
                os.kill(os.getpid(), signal.SIGINT)
                sys.stdin.readline()
                own.may_end.set()
            threading.Thread(target=interrupt).start()
            sys.argv = ["melflow", "run", "waits.yaml"]
            runpy.run_module("melflow", run_name="__main__")
            """)
        text = "version: 1\ngraph:\n  files: {stage: synthetic, count: 500}\n" \
               "  waits: {stage: python, from: files, call: own:waits}\n  out: {stage: discard, from: waits}\n"
        with open(os.path.join(self.folder.name, "waits.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, cwd=self.folder.name) as child:
            said = []
            limit = threading.Timer(120, child.kill)
            limit.start()
            for line in child.stderr:
                said.append(line)
                if line.startswith("stopping: "):
                    break
            child.communicate("\n" if child.poll() is None else None)
            limit.cancel()
        self.assertEqual(child.returncode, 75, "".join(said))

    def test_verify_can_be_stopped(self):
        code = textwrap.dedent("""
            import os, signal, sys, threading
            import melflow, own
            class StoppedCall(melflow.program.VerbCall):
                def stop(self):  # what the function waits for comes after the call that waits for it
                    threading.Timer(0.3, own.may_end.set).start()
                    super().stop()
            def interrupt():
                own.is_called.wait(60)
                os.kill(os.getpid(), signal.SIGINT)
            g = melflow.Graph(workers=1)
            node = g.file_list(root=sys.argv[1]).disk_read().decode().map(own.waits)
            node.samples(sample_rate=8000).hdf5_write(path="verified.h5")
            own.may_end.set()
            g.run()
            own.is_called.clear(), own.may_end.clear()
            melflow.program.VerbCall = StoppedCall
            threading.Thread(target=interrupt).start()
            before = own.waited
            try: melflow.verify("verified.h5", recompute="100%", trust=True)
            except KeyboardInterrupt: print("interrupted", own.waited - before < 10)
            """)
        ended = subprocess.run([sys.executable, "-c", code, self.root], capture_output=True, text=True, timeout=120,
                               cwd=self.folder.name)
        self.assertEqual((ended.stdout, ended.returncode), ("interrupted True\n", 0), ended.stderr)

    def test_marks_that_are_not_used_and_times_that_are_none(self):
        import own

        _, node = self.decoded()
        rows, _ = self.written("marked", self.mel(node.map(own.loud_parts, gives="utterances")))
        self.assertRegex(str(rows._warnings), "marked before are not used; put segments_by between")
        _, node = self.decoded()
        of_samples = node.map(lambda samples: [(0, len(samples) // 2)], gives="utterances").segments_by()
        with self.assertRaisesRegex(melflow.RunError, "an utterance from 0 s to .* within the recording of"):
            self.written("samples", self.mel(of_samples))

    def test_one_to_many_utterances_and_rows(self):
        import own

        _, node = self.decoded()
        three, report = self.written("three", self.mel(node.map(own.three, gives="waveforms", grows=3)))
        ok = report["files"]["ok"]
        with h5py.File(three.file) as file:
            results = [json.loads(text) for text in file["files/results"].asstr()[:] if text]
        self.assertEqual([len(of_one) for of_one in results], [3] * ok)
        first = three.recording(0)
        self.assertEqual([len(rows) for _, rows in three.results(0)], 3 * [len(first) // 3])
        np.testing.assert_array_equal(np.concatenate([rows for _, rows in three.results(0)]), first)
        with self.assertWarnsRegex(UserWarning, "several results"):
            three.batches(4)
        third = len(first) // 3
        np.testing.assert_allclose(first[third:2 * third], 4 * first[:third], rtol=1e-4)

        _, node = self.decoded()
        embedded, _ = self.written("embedded", node.map(own.embedding, gives="rows", columns=4))
        self.assertEqual(embedded.shape, (ok, 4))
        for i in np.flatnonzero(embedded.count)[:5]:
            self.assertEqual(embedded.recording(i)[0, 3], 8000)

        _, node = self.decoded()
        pooled, _ = self.written("pooled", self.mel(node).map(own.mean_of_rows, takes="rows", gives="rows"))
        _, node = self.decoded()
        plain, _ = self.written("unpooled", self.mel(node))
        for i in np.flatnonzero(plain.count)[:5]:
            np.testing.assert_allclose(pooled.recording(i)[0], plain.recording(i).mean(0), rtol=1e-5)

        _, node = self.decoded()
        parts, _ = self.written("parts", node.map(own.loud_parts, gives="utterances").segments_by().samples(sample_rate=8000))
        self.assertGreater(len(parts), 0)

    def test_a_result_that_fails_after_all_others_takes_nothing_with_it(self):
        plain, _ = self.written("halves", self.mel(self.decoded()[1].map("own:halves", gives="utterances").segments_by()))
        whole = np.flatnonzero(plain.count)
        _, node = self.decoded(workers=2)
        rows = self.mel(node.map("own:halves", gives="utterances").segments_by().batch(files=1))
        rows = rows.map("own:first_fails_last", takes="rows", gives="rows", of=2 * len(whole))
        found, report = self.written("first_fails_last", rows)
        reasons = [r["path"] for r in report["remarks"] if "fails when all others are done" in r["reason"]]
        self.assertEqual(len(reasons), 1)
        for i in whole:
            np.testing.assert_array_equal(found.recording(i), plain.recording(i)[:0 if plain.path[i] in reasons else None])
        import own

        own.calls.clear(), own.others_done.clear()
        g = rows.graph
        del g.nodes["hdf5_write"]
        rows.batches()
        batches = list(melflow.Loader(g, workers=2, batch_size=8, shuffle=False))
        missing = len(plain) - sum(int(batch["length"].sum()) for batch in batches)
        # Those of one recording, whichever was the first, or of its second half, where that was the first.
        second = [len(plain.results(i)[1][1]) for i in whole]
        self.assertIn(missing, [int(plain.count[i]) for i in whole] + second)

    def test_objects_of_a_class_are_used_again(self):
        import own

        own.Counter.made = 0
        _, node = self.decoded(workers=2)
        _, report = self.written("counted", self.mel(node.map(own.Counter, by=2)))
        self.assertIn(own.Counter.made, (1, 2))
        own.Busy.made = 0
        _, node = self.decoded(workers=3)
        _, report = self.written("busy", self.mel(node.map(own.Busy, gives="waveforms", grows=2)))
        self.assertEqual([r for r in report["remarks"] if "used twice" in r["reason"]], [])
        self.assertGreater(report["files"]["skipped"], 3)
        self.assertIn(own.Busy.made, (1, 2, 3))  # those that skip are used again, too

    def test_skips_notes_and_whole_accounts(self):
        _, node = self.decoded()
        _, report = self.written("choosy", self.mel(node.map("own:choosy")))
        files = report["files"]
        self.assertEqual(files["found"], files["ok"] + files["skipped"] + files["failed"])
        said = [(r["status"], r["reason"]) for r in report["remarks"] if r["stage"] == "python"]
        self.assertTrue(any(status == "skipped" and reason.startswith("has ") for status, reason in said))
        self.assertTrue(any(reason == "is long" for _, reason in said))

    def test_what_a_function_does_wrong_fails_its_recording(self):
        for how, said in {"none": "the function gives None", "text": "the function gives str 'abc'",
                          "shape": r"the function gives an array \(1, \d+\) of float32; samples are an array \[samples\]",
                          "integers": "of int64; samples", "nan": "no numbers", "longer": "gives 2.00 times .* raise it",
                          "raises": r"IndexError: .* \(.*own.py:\d+ in <lambda>\)", "exits": "SystemExit: 3",
                          "generator": "samples are an array"}.items():
            with self.subTest(how):
                g, node = self.decoded()
                self.mel(node.map("own:wrong", how=how)).discard()
                with self.assertRaisesRegex(melflow.RunError, f"^no file is ok: .*55 by python: .*{said}"):
                    g.run()

    def test_what_cannot_be_called_is_a_problem_of_the_pipeline(self):
        runs_itself = os.path.join(self.folder.name, "runs_itself.py")
        with open(runs_itself, "w", encoding="utf-8") as file:
            file.write("import melflow\nmelflow.run('any.yaml')\n")
        for call, options, said in [
            ("own:nothing", {}, "own has no function 'nothing'"),
            ("no_such_module:f", {}, "no_such_module cannot be imported: ModuleNotFoundError"),
            ("nowhere.py:f", {}, "nowhere.py: there is no such file"),
            (runs_itself + ":f", {}, "RuntimeError: a pipeline cannot be run by a function .*__main__"),
            ("own", {}, "'own' names no function; write MODULE:NAME or FILE.py:NAME"),
            ("own:louder", {"loudness": 3}, "own:louder: got an unexpected keyword argument 'loudness'"),
            ("own:Counter", {"of": 3}, "own:Counter: got an unexpected keyword argument 'of'"),
            ("@f-1:here", {}, "is a function of another Python process"),
        ]:
            with self.subTest(call, **options), self.assertRaisesRegex(melflow.ConfigError, said):
                g, node = self.decoded()
                self.mel(node.map(call, **options)).discard()
                g.validate()

    def test_rows_need_columns(self):
        for node, said in [(lambda node: node.map("own:embedding", gives="rows"), "python.columns: is needed where samples become rows"),
                           (lambda node: self.mel(node).map("own:minus_mean", takes="rows"), "with takes: rows it gives rows")]:
            with self.subTest(said), self.assertRaisesRegex(melflow.ConfigError, said):
                g, decoded = self.decoded()
                node(decoded).discard()
                g.validate()

    def test_rows_beside_those_of_mel(self):
        def levels(samples):  # a row for each 10 ms
            return np.abs(samples[:len(samples) // 80 * 80]).reshape(-1, 80).mean(1, keepdims=True)

        def both(**options):
            g = melflow.Graph(memory={"host": "1GiB"})
            wave = g.file_list(root=self.root, include=["ant/*.wav"]).disk_read().decode(truncated="fail").resample(rate=8000)
            mel = wave.mel(n_fft=80, hop=80, n_mels=4, center=False)
            return g.concat([mel, wave.map(levels, gives="rows", columns=1, **options)])

        with self.assertRaisesRegex(melflow.ConfigError, "concat.from: frames of mel start every 10 ms, those of python every 0 ms; give them the same hop"):
            both().discard().graph.validate()
        for hop in (80, "10ms"):
            rows, report = self.written("both", both(hop=hop))
            self.assertEqual(rows.shape[1], 5)
            self.assertGreater(report["files"]["ok"], 10)
        with wave.open(os.path.join(self.root, rows.path[0])) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16) / np.float32(32768)
        np.testing.assert_allclose(rows.recording(0)[:, 4:], levels(samples), rtol=1e-4)
        g, node = self.decoded()
        node.map(levels, gives="rows", columns=1, hop="10ms").discard()
        with self.assertRaisesRegex(melflow.ConfigError, "python.hop: needs the rate of the samples; put a resample node before"):
            g.validate()

    def test_a_timeout_without_processes_is_said_to_have_no_effect(self):
        for options, says in (({"timeout": 5}, True), ({"timeout": 5, "processes": 2}, False), ({}, False)):
            g, node = self.decoded()
            self.mel(node.map("own:louder", **options)).discard()
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                g.validate()
            self.assertEqual(any("python.timeout: has no effect without processes" in str(w.message) or
                                 "has no effect without processes" in str(w.message) for w in said), says)

    def test_processes(self):
        import own

        _, node = self.decoded()
        here, _ = self.written("here", self.mel(node.map(own.louder)))
        _, node = self.decoded()
        there, _ = self.written("there", self.mel(node.map(own.louder, processes=2)))
        np.testing.assert_array_equal(here[:], there[:])
        self.assertEqual(here.attributes["feature_fingerprint"], there.attributes["feature_fingerprint"])
        with self.assertRaisesRegex(melflow.ConfigError, "other processes cannot import it"):
            g, node = self.decoded()
            self.mel(node.map(lambda samples: samples, processes=2)).discard()
            g.validate()

    def test_a_process_that_ends_or_hangs_fails_its_recording(self):
        _, node = self.decoded()
        _, report = self.written("dies", self.mel(node.map("own:dies", processes=2, timeout=5)))
        reasons = [r["reason"] for r in report["remarks"] if r["stage"] == "python"]
        self.assertIn("the process of the function ended by signal 9", reasons)
        self.assertIn("the function takes longer than 5 s (timeout)", reasons)
        self.assertGreater(report["files"]["ok"], 20)

    def test_the_start_of_a_process_is_no_part_of_a_call(self):
        g = melflow.Graph(workers=1)
        report = g.synthetic(count=3, duration="0.1s", rate="8kHz").map("own:SlowToStart", processes=1, timeout=3).discard().graph.run()
        self.assertEqual(report["files"]["ok"], 3)

    def test_the_kind_of_result_is_checked_first(self):
        for function, options, said in [
            ("own:three", {}, "the function gives 3 arrays of samples; give one, or write gives: waveforms"),
            ("own:with_rate", {}, "a pair of samples and a rate; give the samples alone.* a resample node changes it"),
            ("own:with_rate", {"gives": "waveforms"}, "a pair of samples and a rate; give the samples alone"),
            ("own:ragged", {}, "the function gives 2 arrays of samples; give one, or write gives: waveforms"),
            ("own:ragged", {"gives": "rows", "columns": 1}, "the function gives list .*, which is no array"),
            ("own:embedding", {"gives": "rows", "columns": 1, "grows": 0.001}, "gives rows of 4 values, and columns is 1; set columns: 4"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(melflow.RunError, said):
                _, node = self.decoded()
                node = node.map(function, **options)
                (node if "gives" in options else self.mel(node)).discard().graph.run()

    def test_messages_name_what_was_written(self):
        for node, said in [
            (lambda node: self.mel(node).map("own:mean_of_rows", gives="rows", columns=20),
             r"python.from: python takes waveforms, but 'mel' \(mel\) gives rows; write takes: rows$"),
            (lambda node: self.mel(node).onnx(model="x.onnx", columns=20),
             r"onnx.from: onnx takes waveforms, but 'mel' \(mel\) gives rows; write input: rows$"),
            (lambda node: self.mel(node).onnx(model="x.onnx", input="rows"), "onnx.columns: is needed"),
            (lambda node: node.onnx(model="x.onnx"), "onnx.columns: is needed"),
        ]:
            with self.subTest(said), self.assertRaises(melflow.ConfigError) as caught:
                node(self.decoded()[1]).discard().graph.validate()
            self.assertTrue(any(re.search(said, line) for line in str(caught.exception).splitlines()), caught.exception)
            self.assertNotIn("python_", str(caught.exception))

    def test_other_columns_have_no_unit(self):
        _, node = self.decoded()
        rows, _ = self.written("no_unit", self.mel(node).map("own:mean_of_rows", takes="rows", gives="rows", columns=20))
        self.assertFalse(melflow.inspect(rows.file).get("unit"))

    def test_other_processes_compute_for_their_node(self):
        g = melflow.Graph(workers=1)
        g.synthetic(count=40, duration="0.1s", rate="8kHz").map("own:computes", name="f", processes=2).discard()
        report = g.run()
        f = next(stage for stage in report["stages"] if stage["name"] == "f")
        self.assertGreaterEqual(f["cpu_seconds"], 40 * 0.02)
        self.assertGreaterEqual(report["machine"]["cores_used"] * report["seconds"], 40 * 0.02 * 0.99)
        for hint in report["limit"]["hints"]:
            self.assertNotIn("f.concurrency", hint["set"])

    def test_python_is_the_limit_where_functions_hold_its_lock(self):
        import own

        def limit(function, **options):
            g = melflow.Graph(workers=2)
            g.synthetic(count=60, duration="0.1s", rate="8kHz").map(function, name="f", **options).discard()
            return g.run()["limit"]

        said = "Python's lock (GIL): functions hold it"
        held = limit("own:holds_the_lock_for_long")
        self.assertEqual((held["cause"], held["node"]), ("lock", "f"), held)
        self.assertIn(said, held["text"])
        if os.cpu_count() > 1:
            self.assertEqual(list(held["hints"][0]["set"]), ["f.processes"])
        of_this_process = limit(lambda samples, rate: own.holds_the_lock_for_long(samples, rate))
        self.assertIn("would help: f.processes, of a function that can be imported", of_this_process["text"])
        for other in (limit("own:releases_the_lock"), limit("own:holds_the_lock_for_long", processes=2)):
            self.assertNotEqual(other["cause"], "lock", other)
            self.assertNotIn(said, other["text"])

    def test_the_fingerprint_has_the_code(self):
        def fingerprint():
            g, node = self.decoded()
            self.mel(node.map(changed + ":f")).batches()
            return subprocess.run([sys.executable, "-c", "import melflow, sys; print(melflow.Features(sys.argv[1]).fingerprint)",
                                   g.to_yaml()], capture_output=True, text=True, check=True).stdout

        changed = os.path.join(self.folder.name, "changed.py")
        seen = []
        for code in ("return samples", "return samples * 2", "return samples"):
            with open(changed, "w", encoding="utf-8") as file:
                file.write(f"def f(samples):\n    {code}\n")
            seen.append(fingerprint())
        self.assertEqual(seen[0], seen[2])
        self.assertNotEqual(seen[0], seen[1])

    def test_the_program_starts_python(self):
        g, node = self.decoded()
        out = os.path.join(self.folder.name, "program.h5")
        self.mel(node.map(self.file + ":louder")).hdf5_write(path=out)
        path = os.path.join(self.folder.name, "program.yaml")
        g.to_yaml(path)
        g.run()
        os.rename(out, out + ".here")
        program = os.environ["MELFLOW_PROGRAM"]
        environment = {**os.environ, "MELFLOW_PYTHON": sys.executable}
        ended = subprocess.run([program, "run", path, "--quiet"], env=environment, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 3, ended.stderr)
        self.assertTrue(filecmp.cmp(out, out + ".here", shallow=False))
        os.unlink(out)
        with open(path, encoding="utf-8") as text:
            ended = subprocess.run([program, "run", "-", "--quiet"], env=environment, stdin=text, capture_output=True, text=True)
        self.assertEqual((ended.returncode, os.path.exists(out)), (3, True), ended.stderr)
        ended = subprocess.run([program, "validate", path], env={**os.environ, "MELFLOW_PYTHON": "/nowhere/python"}, capture_output=True,
                               text=True)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, "louder: this needs Python with the package melflow .*MELFLOW_PYTHON")

    def test_stored_calls_are_not_run_without_trust(self):
        job = os.path.join(self.folder.name, "job")
        g, node = self.decoded()
        out = os.path.join(self.folder.name, "stored.h5")
        self.mel(node.map(self.file + ":louder")).hdf5_write(path=out)
        g.run()
        with self.assertRaisesRegex(melflow.ConfigError, "would run the function, which is code chosen by the author"):
            melflow.verify(out, recompute=1)
        g.nodes["hdf5_write"]["path"] = out + "2"
        melflow.plan(g, job)
        with self.assertRaisesRegex(melflow.ConfigError, "code chosen by the author"):
            melflow.work(job)
        melflow.work(job, trust=True)
        with self.assertRaisesRegex(melflow.ConfigError, "code chosen by the author"):
            melflow.merge(job)
        melflow.merge(job, trust=True)
        np.testing.assert_array_equal(melflow.open(out + "2")[:] if out.endswith(".npy") else melflow.open(out)[:], melflow.open(out)[:])

    def test_loaders_and_features(self):
        g, node = self.decoded()
        self.mel(node.map("own:louder")).batches()
        made = melflow.Features(g)(np.ones(800, np.float32) / 4, 8000)
        g2, node = self.decoded()
        self.mel(node).batches()
        np.testing.assert_allclose(made, 4 * melflow.Features(g2)(np.ones(800, np.float32) / 4, 8000), rtol=1e-4)
        self.assertGreater(sum(len(batch["path"]) for batch in melflow.Loader(g, batch_size=4)), 20)

    def test_a_loader_says_that_a_function_gives_something_else_each_time(self):
        def noise(samples, *, seed=None):
            return samples + np.random.default_rng(seed).standard_normal(samples.shape, np.float32) / 1000

        def seeded(samples):
            return noise(samples, seed=zlib.crc32(samples))

        class Noise:
            def __init__(self, seeded=False):
                self.random = np.random.default_rng(3 if seeded else None)

            def __call__(self, block):
                return block + self.random.standard_normal(len(block), np.float32) / 1000

        def embedding(samples):
            return noise(samples)[:4]

        for name, function, options, others in (
                ("random", noise, {}, True), ("seeded", seeded, {}, False), ("declared", noise, {"deterministic": False}, False),
                ("blocks", Noise, {"blocks": 1000}, True), ("seeded blocks", Noise, {"blocks": 1000, "seeded": True}, False),
                ("rows", embedding, {"gives": "rows", "columns": 4}, True), ("batch", noise, {"batch": 2}, True)):
            with self.subTest(name), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                graph = melflow.Graph()
                node = graph.file_list(root=self.root).disk_read().decode(fit="1s").map(function, **options)
                (node if "columns" in options else node.mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20)).batches(size=16)
                loader = melflow.Loader(graph)
                for _ in range(2):
                    list(loader)
                told = [str(w.message) for w in said if "gave another result when it was called again" in str(w.message)]
                self.assertEqual(len(told), 2 if others else 0)
                self.assertEqual(sum("gave something else" in w for w in loader.report["warnings"]), int(others))

    def test_samples_in_the_scale_of_integers_are_reported(self):
        def scaled(samples):
            return samples * 32768

        class Scaled:
            def __call__(self, block):
                return scaled(block)

        for function, options in ((scaled, {}), (Scaled, {"blocks": 1000})):
            graph = melflow.Graph()
            graph.file_list(root=self.root, include="*/000.wav").disk_read().decode().map(function, **options) \
                .mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20).discard()
            remarks = graph.run()["remarks"]
            self.assertEqual(len(remarks), 1)
            self.assertRegex(remarks[0]["reason"], r"^the function gives samples up to \d+; full scale is 1")

    def test_python_ends_while_functions_run(self):
        code = textwrap.dedent("""
            import melflow, sys, threading
            seen = threading.Event()
            def slow(samples):
                seen.set()
                return samples
            g = melflow.Graph()
            g.synthetic(count=500000, rate="8kHz").map(slow).mel(sample_rate=8000, n_fft=256, hop=80, n_mels=20).discard()
            threading.Thread(target=g.run, daemon=True).start()
            assert seen.wait(60)
            """)
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        self.assertEqual((ended.stdout, ended.stderr, ended.returncode), ("", "", 0))

    def test_an_interrupted_run_goes_on(self):
        path = os.path.join(self.folder.name, "killed.h5")
        g, node = self.decoded()
        self.mel(node.map(self.file + ":holds_the_lock")).hdf5_write(path=path)
        text = g.to_yaml()
        code = "import melflow, sys; melflow.run(sys.argv[1])"
        whole = None
        for i in range(6):
            child = subprocess.Popen([sys.executable, "-c", code, text], stderr=subprocess.DEVNULL)
            if i:
                deadline = time.monotonic() + 60
                while not os.path.exists(path + ".part") and child.poll() is None and time.monotonic() < deadline:
                    pass
                child.send_signal(signal.SIGKILL)
                child.wait()
                if os.path.exists(path):
                    os.unlink(path)
                melflow.run(text)
            else:
                child.wait()
            if whole is None:
                whole = path + ".whole"
                os.rename(path, whole)
            else:
                self.assertTrue(filecmp.cmp(path, whole, shallow=False))
                os.unlink(path)


if __name__ == "__main__":
    unittest.main()
