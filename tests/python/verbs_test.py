"""The verbs of the program in this process."""

import filecmp
import logging
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import types
import unittest
import unittest.mock

import h5py
import melflow
import numpy as np

import corpus

ENDLESS = """version: 1
graph:
  files: {stage: synthetic, count: 500000, duration: 1s, rate: 8kHz}
  mel: {stage: mel, from: files, sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 20}
  out: {stage: hdf5_write, from: mel, path: "${OUT}"}
"""

# Interrupts a run some times, at once or after some progress, and ends it.
INTERRUPTED = """
import logging, os, signal, sys, threading
import melflow

pipeline, out, moments = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
from melflow import program

def stopped_at(rows):
    seen = []
    def show(done, found, rows_so_far, rate):
        if rows_so_far >= rows and not seen:
            seen.append(rows_so_far)
            os.kill(os.getpid(), signal.SIGINT)
    threads = threading.active_count()
    try:
        program.call(["run", pipeline, "--json"], show=show, accepts=(0, 3))
        return "ended"
    except KeyboardInterrupt:
        assert threading.active_count() == threads
        return "stopped"

for moment in moments:
    print(stopped_at(int(moment)))
report = melflow.run(pipeline)
print(report["ending"])
"""


class VerbsTest(corpus.CorpusTest):
    def text(self, name, **case):
        """A pipeline that writes rows, and where."""
        out = os.path.join(self.folder.name, name + ".h5")
        return corpus.pipeline(self.root, f"stage: hdf5_write, path: {out}, overwrite: true", **case), out

    def test_program_functions_and_graphs_write_the_same_bytes(self):
        text, out = self.text("same", **corpus.WINDOWS)
        path = os.path.join(self.folder.name, "same.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        made = {}
        for how, make in {"program": lambda: subprocess.run([os.environ["MELFLOW_PROGRAM"], "run", path, "--quiet"]),
                          "run": lambda: melflow.run(path), "graph": lambda: melflow.Graph.of(text).run(),
                          "yaml": lambda: melflow.run(melflow.Graph.of(text).to_yaml())}.items():
            make()
            made[how] = os.path.join(self.folder.name, how + ".h5")
            os.replace(out, made[how])
        for how, other in made.items():
            self.assertTrue(filecmp.cmp(made["program"], other, shallow=False), how)

    def test_check_says_what_is_wrong_with_recordings(self):
        text, out = self.text("checked")
        kept = os.path.join(self.folder.name, "kept.h5")
        said = melflow.check(self.root, output=kept, sets={"files.labels": "parent_dir"}, where={"quality.hum": None}, measures=["peak", "dc"])
        self.assertEqual(said["files"]["found"], 60)
        self.assertNotIn("quality.hum", [one["name"] for one in said["checks"]])
        rows = melflow.open(kept)
        self.assertEqual(set(rows.measures) - {"peak", "dc"}, set())
        with h5py.File(kept) as file:
            np.testing.assert_array_equal(rows.measures["peak"], file["files/quality.peak"][:])
        loud = float(np.nanmedian(rows.measures["peak"]))
        few = melflow.check(kept, where={"quality.peak": f"< {loud:.9f}"}, faulty="< 1%")
        self.assertEqual(few["checks"][-1]["found"], int((rows.measures["peak"] >= np.float32(f"{loud:.9f}")).sum()))
        self.assertFalse(few["expected"][0]["met"])
        by_pipeline = melflow.check(pipeline=melflow.Graph.of(text))
        self.assertEqual(by_pipeline["files"], said["files"])
        with self.assertRaisesRegex(melflow.ConfigError, "Did you mean 'peak'"):
            melflow.check(kept, where={"quality.paek": "< 1"})
        with self.assertRaisesRegex(ValueError, "what is to be checked"):
            melflow.check()

    def test_what_sounds_alike_is_said_alone_and_by_check(self):
        longest = sorted(pathlib.Path(self.root).rglob("*.wav"), key=lambda path: path.stat().st_size)[-3:]
        clips = os.path.join(self.folder.name, "alike")
        for name, source in {"train/0.wav": 0, "train/1.wav": 1, "test/copy.wav": 0, "test/2.wav": 2}.items():
            os.makedirs(os.path.dirname(os.path.join(clips, name)), exist_ok=True)
            shutil.copy(longest[source], os.path.join(clips, name))
        kept, table = os.path.join(self.folder.name, "alike.h5"), os.path.join(self.folder.name, "alike.csv")
        said = melflow.check(clips, sets={"files.splits": "top_dir"}, output=kept, across_splits="<= 0")
        self.assertEqual([one["met"] for one in said["expected"]], [False])
        alike = melflow.duplicates(kept, across_splits="<= 2", csv=table)
        self.assertEqual([one["paths"] for one in alike["groups"]], [["test/copy.wav", "train/0.wav"]])
        self.assertEqual((alike["across"], alike["expected"][0]["met"]), (2, True))
        self.assertEqual(said["duplicates"], {key: alike[key] for key in alike if key not in ("melflow_version", "expected")})
        with open(table, encoding="utf-8") as file:
            self.assertIn("train/0.wav,test/copy.wav,2,train,train,", file.read())
        other = os.path.join(self.folder.name, "other.h5")
        shutil.copy(kept, other)
        again = melflow.duplicates(kept, against=[other], least=1, share=0.1, common=10, memory=16)
        self.assertEqual((again["against"], again["across"]), (4, 4))
        self.assertEqual(melflow.check(clips, duplicates=True)["duplicates"]["grouped"], 2)
        text, out = self.text("no_prints")
        with self.assertWarnsRegex(UserWarning, "gave no rows"):
            melflow.run(text)
        for wrong, error, words in [(dict(outputs=[out]), melflow.RunError, "has no fingerprints"),
                                    (dict(outputs=[kept], with_column="speaker"), melflow.ConfigError, "have no columns"),
                                    (dict(outputs=[kept], against=[kept]), ValueError, "is compared with itself"),
                                    (dict(outputs=[kept], share=2), ValueError, "--share"),
                                    (dict(outputs=[kept], across_splits="few"), ValueError, "--across-splits"),
                                    (dict(outputs=[kept], memory=1), ValueError, "memory is 16 or more"),
                                    (dict(outputs=[]), ValueError, "OUTPUT")]:
            with self.assertRaisesRegex(error, words):
                melflow.duplicates(*wrong.pop("outputs"), **wrong)

    def test_a_job_in_three_calls(self):
        text, out = self.text("job")
        melflow.run(text)
        os.replace(out, out + ".run")
        job, before = os.path.join(self.folder.name, "job"), os.getcwd()
        planned = melflow.plan(text, job, part="1MiB")
        self.assertEqual((planned["done"], planned["parts"] > 1), (0, True))
        worked = melflow.work(job, workers=2)
        self.assertEqual(worked["done"], planned["parts"])
        report = melflow.merge(job, output=out)
        self.assertEqual((report["files"]["failed"], os.getcwd()), (melflow.inspect(out)["counts"]["failed"], before))
        self.assertTrue(filecmp.cmp(out, out + ".run", shallow=False))
        with self.assertRaisesRegex(melflow.RunError, "there is a job already"):
            melflow.plan(text, job)

    def test_what_is_wrong_is_raised(self):
        text, out = self.text("wrong")
        with self.assertRaisesRegex(melflow.ConfigError, r"^pipeline:\d+:\d+: rows.nmels: unknown option"):
            melflow.validate(text.replace("n_mels", "nmels"))
        with self.assertRaisesRegex(ValueError, "--part"):
            melflow.plan(text, os.path.join(self.folder.name, "never"), part="much")
        with self.assertRaisesRegex(melflow.RunError, "nowhere"):
            melflow.inspect(os.path.join(self.folder.name, "nowhere.h5"))
        with self.assertRaisesRegex(TypeError, "^stop_after is a number"):
            melflow.run(text, stop_after="1s")
        with self.assertRaisesRegex(melflow.RunError, "^[^\n]*$"):  # one line, not the whole summary
            melflow.run(text, sets={"max_failures": 0})
        self.assertFalse(os.path.exists(out))
        self.assertEqual(melflow.validate(text)["config"]["graph"]["rows"]["n_mels"], 20)

    def test_rows_that_are_not_what_was_written(self):
        text, out = self.text("damaged")
        melflow.run(text)
        self.assertEqual(melflow.verify(out)["wrong"], [])
        rows = melflow.open(out)
        path, offset = rows.path[3], int(rows.offset[3])
        with h5py.File(out, "r+") as file:
            file["mel"][offset] += 1
        self.assertEqual(melflow.verify(out)["wrong"], [path])

    def test_trials(self):
        text, _ = self.text("trial")
        self.assertIn("limit", melflow.explain(text, seconds=1))
        swept = melflow.sweep(text, {"workers": [1, 2]}, repeat=1, seconds=1)
        self.assertEqual(len(swept["runs"]), 2)
        self.assertIn("is_faster", melflow.tune(text, budget=0.2))

    def test_update_says_what_it_would_do(self):
        text, _ = self.text("update")
        files = melflow.run(text)["files"]
        would = melflow.update(text, dry_run=True)
        self.assertEqual(would["kept_files"], files["ok"])

    def test_what_it_says_is_logged(self):
        text, _ = self.text("logged")
        with self.assertLogs("melflow", logging.INFO) as logs:
            melflow.run(text)
        self.assertRegex("\n".join(logs.output), "(?s)INFO:melflow:.*60 files")

    def test_a_bar_of_tqdm(self):
        class Bar:
            def __init__(self, **_):
                self.n, self.total, self.seen, self.said = 0, None, [], []
                bars.append(self)

            def update(self, by):
                self.n += by
                self.seen.append((self.n, self.total))

            def set_postfix_str(self, text, refresh):
                self.said.append(text)

            def close(self):
                self.closed = True

        bars = []
        out = os.path.join(self.folder.name, "bar.h5")
        text = ENDLESS
        tqdm = {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": types.SimpleNamespace(tqdm=Bar)}
        with unittest.mock.patch.dict(sys.modules, tqdm):
            report = melflow.run(text, vars={"OUT": out}, stop_after=3, progress=True)
            melflow.run(text, vars={"OUT": out + "2"}, stop_after=0.1, progress=False)
            with self.assertRaises(melflow.ConfigError):
                melflow.run("version: 1\ngraph: {}\n", progress=True)
        self.assertEqual(report["ending"], "stopped")
        self.assertGreater(len(bars[0].seen), 2)
        self.assertEqual(bars[0].seen[-1], (report["files"]["found"] - report["files"]["not_run"], 500000))
        self.assertRegex("\n".join(bars[0].said), r"(?m)^[\d,]+ rows, [\d,]+ rows/s$")
        self.assertEqual([bar.closed for bar in bars], [True, True])
        with unittest.mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}):
            melflow.run(text, vars={"OUT": out + "3"}, stop_after=0.1, progress=True)

    def test_ctrl_c_leaves_a_run_that_goes_on_and_an_interpreter_that_lives(self):
        text, out = self.text("interrupted", files=", files_per_task: 1")
        path = os.path.join(self.folder.name, "interrupted.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("${OUT}", out))
        melflow.run(path)
        os.replace(out, out + ".whole")
        for part in (out + ".part", out + ".journal"):
            self.assertFalse(os.path.exists(part))
        ended = subprocess.run([sys.executable, "-W", "ignore::UserWarning", "-c", INTERRUPTED, path, out, "0,0,100,1000"], capture_output=True, text=True, timeout=120)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertRegex(ended.stdout, r"^((stopped|ended)\n)*complete\n$")
        self.assertTrue(filecmp.cmp(out, out + ".whole", shallow=False))

    def test_ctrl_c_ends_what_would_not_end(self):
        code = ("import melflow, os, signal, sys, threading\n"
                "def show(*seen):\n"
                "    if seen[2]: os.kill(os.getpid(), signal.SIGINT)\n"
                "from melflow import program\n"
                "try: program.call(['run', '-', '--var', 'OUT=' + sys.argv[1]], sys.argv[2], show=show)\n"
                "except KeyboardInterrupt: print('interrupted', threading.active_count())\n")
        out = os.path.join(self.folder.name, "endless.h5")
        ended = subprocess.run([sys.executable, "-c", code, out, ENDLESS], capture_output=True, text=True, timeout=120)
        self.assertEqual((ended.stdout, ended.returncode), ("interrupted 1\n", 0), ended.stderr)
        self.assertTrue(os.path.exists(out + ".part"))

    def test_python_ends_while_a_thread_runs(self):
        code = ("import melflow, sys, threading\n"
                "from melflow import program\n"
                "seen = threading.Event()\n"
                "def run(): program.call(['run', '-', '--var', 'OUT=' + sys.argv[1]], sys.argv[2], show=lambda *_: seen.set())\n"
                "threading.Thread(target=run, daemon=True).start()\n"
                "assert seen.wait(60)\n")
        out = os.path.join(self.folder.name, "daemon.h5")
        ended = subprocess.run([sys.executable, "-c", code, out, ENDLESS], capture_output=True, text=True, timeout=120)
        self.assertEqual((ended.stdout, ended.stderr, ended.returncode), ("", "", 0))

    def test_h5py_in_the_same_process(self):
        """Each has an HDF5 of its own, whichever came first."""
        text, out = self.text("beside")
        code = ("import sys\n"
                "first, second, pipeline, out = sys.argv[1:]\n"
                "__import__(first), __import__(second)\n"
                "import h5py, melflow, numpy, threading\n"
                "other, stop, turns = out + '.other', threading.Event(), []\n"
                "def h5py_works():\n"
                "    while not stop.is_set() or not turns:\n"
                "        with h5py.File(other, 'w') as file: file['x'] = numpy.arange(1000)\n"
                "        with h5py.File(other) as file: assert file['x'][-1] == 999\n"
                "        turns.append(1)\n"
                "thread = threading.Thread(target=h5py_works); thread.start()\n"
                "for _ in range(5):\n"
                "    report = melflow.run(pipeline)\n"
                "    with h5py.File(out) as file: assert (file['mel'][:] == melflow.open(out)[:]).all()\n"
                "    assert melflow.verify(out)['wrong'] == []\n"
                "stop.set(); thread.join()\n"
                "print(len(turns) > 0, report['ending'])\n")
        for order in (["h5py", "melflow"], ["melflow", "h5py"]):
            ended = subprocess.run([sys.executable, "-c", code, *order, text, out], capture_output=True, text=True, timeout=120)
            self.assertEqual((ended.stdout, ended.returncode), ("True complete\n", 0), ended.stderr)

    def test_calls_of_two_threads_take_turns(self):
        texts = [self.text(f"turn{i}") for i in range(4)]
        threads = [threading.Thread(target=melflow.run, args=(text,)) for text, _ in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        rows = [melflow.open(out)[:] for _, out in texts]
        for other in rows[1:]:
            np.testing.assert_array_equal(rows[0], other)

    def test_many_runs_keep_nothing(self):
        text, _ = self.text("many")

        def held():
            return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

        melflow.run(text)
        files, threads = held()
        for _ in range(10):
            melflow.run(text)
        more_files, more_threads = held()
        self.assertLess(more_files, files + 5)
        self.assertLess(more_threads, threads + 5)

    def test_a_report_is_a_page(self):
        text, _ = self.text("page")
        report = melflow.run(text)
        path = os.path.join(self.folder.name, "report.html")
        self.assertIn("<h1>60 files, ", report.html(path))
        self.assertEqual(os.path.getsize(path), len(report.html().encode()))
        self.assertRegex(repr(report), "^<Report: complete; files: 60 found, ")
        self.assertTrue(report._repr_html_().startswith("<iframe srcdoc="))
        report["remarks"] = [{"path": "\udcff.wav"}]  # as a name that is not UTF-8 is read from JSON
        self.assertIn("<td>\ufffd.wav", report.html())


if __name__ == "__main__":
    unittest.main()
