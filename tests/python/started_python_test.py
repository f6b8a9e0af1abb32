"""The Pythons that the program starts: which one it is, where it looks for modules, and that its children end with it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

from melflow import program

STARTED = os.path.join(os.path.dirname(sys.executable), "melflow")
# Modules of Python and of packages, installed or not, that the program's Python may import.
NAMES = sorted({*getattr(sys, "stdlib_module_names", ()), "random", "wave", "tempfile", "signal", "pickle", "queue", "json", "runpy", "sitecustomize",
                "usercustomize", "melflow", "numpy", "h5py", "xxhash", "fsspec", "aiohttp", "brotli", "pyarrow", "pandas", "zarr", "safetensors",
                "onnxruntime", "silero_vad", "tqdm", "own_helper"} - {"__main__"})
PIPELINE = """
    version: 1
    memory: {{host: 256MiB}}
    graph:
      files: {{stage: synthetic, count: 4, duration: 0.1s, rate: 8kHz}}
      own: {{stage: python, from: files, call: "{call}", processes: {processes}{more}}}
      out: {{stage: discard, from: own}}
"""


class StartedPythonTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.current = folder.name, os.path.join(folder.name, "current")
        self.mods, self.ran = os.path.join(folder.name, "mods"), os.path.join(folder.name, "ran")
        os.mkdir(self.current)
        os.mkdir(self.mods)

    def file(self, folder, name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(textwrap.dedent(text))
        return path

    def pipeline(self, call, processes=0, more=""):
        return self.file(self.folder, "p.yaml", PIPELINE.format(call=call, processes=processes, more=more))

    def fill(self, folder, *but):
        """With a file for each module, which says that it ran."""
        for name in NAMES:
            if name not in but:
                self.file(folder, name + ".py", f"with open({self.ran!r}, 'a') as out: out.write('{name} ')\nraise ImportError({name!r})\n")

    def started(self, *words, code=0, **variables):
        environment = {**os.environ, **variables}
        by_path = "PYTHONPATH" not in variables  # which a script of Python would start with, too
        ended = subprocess.run([STARTED if by_path else program.path(), *words], capture_output=True, text=True, cwd=self.current, env=environment)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        if os.path.exists(self.ran):
            with open(self.ran, encoding="utf-8") as file:
                self.fail(f"{words}: files of the current folder ran: {file.read()}")
        return ended.stdout + ended.stderr

    def test_files_of_the_current_folder_do_not_run(self):
        self.fill(self.current)
        own = self.file(self.mods, "own.py", "def same(samples):\n    import random, wave\n    return samples\n") + ":same"
        rows = os.path.join(self.folder, "rows.h5")
        mel = PIPELINE.replace("out: {{stage: discard, from: own}}", f"mel: {{{{stage: mel, from: own, sample_rate: 8000, n_mels: 20}}}}\n"
                               f"      out: {{{{stage: hdf5_write, from: mel, path: {rows}, overwrite: true}}}}")
        text = self.file(self.folder, "p.yaml", mel.format(call=own, processes=1, more=""))
        self.started("run", "-q", text)
        self.started("run", "-q", text, PYTHONPATH=f":{self.mods}:", MELFLOW_PYTHON=sys.executable)
        self.assertIn("memory://none/: " if has("fsspec") else "pip install 'melflow[s3]'", self.started("run", "-q", self.file(self.folder, "s.yaml", """
            version: 1
            graph:
              files: {stage: file_list, root: "memory://none/"}
              read: {stage: disk_read, from: files}
              out: {stage: discard, from: read}
            """), code=1))
        if has("zarr"):
            self.started("export", rows, os.path.join(self.folder, "x"), "--format", "zarr")
        else:
            self.assertIn("pip install zarr", self.started("export", rows, os.path.join(self.folder, "x"), "--format", "zarr", code=1))

    def test_files_of_the_current_folder_do_not_run_where_a_variable_names_it(self):
        rows = os.path.join(self.folder, "rows.h5")
        self.started("run", "-q", self.file(self.folder, "p.yaml", f"""
            version: 1
            graph:
              files: {{stage: synthetic, count: 4, duration: 0.1s, rate: 8kHz}}
              mel: {{stage: mel, from: files, sample_rate: 8000, n_mels: 20}}
              out: {{stage: hdf5_write, from: mel, path: {rows}}}
            """))
        self.fill(self.current)
        for number, path in enumerate((".", "./", f"{self.mods}:.")):
            with self.subTest(path):
                self.started("export", rows, os.path.join(self.folder, f"tar{number}"), "--format", "tar", PYTHONPATH=path,
                             MELFLOW_PYTHON=sys.executable)

    def test_a_module_of_the_current_folder_is_found_last(self):
        self.fill(self.current, "own_helper")
        self.file(self.current, "own.py", """
            import random, wave
            import own_helper
            def same(samples):
                import own_later, tempfile
                return own_later.same(own_helper.same(samples))
            """)
        for name in ("own_helper.py", "own_later.py"):
            self.file(self.current, name, "def same(samples):\n    return samples\n")
        self.started("run", "-q", self.pipeline("own:same", 1))

    def test_what_functions_print_is_apart_from_the_document(self):
        own = self.file(self.mods, "own.py", """
            import os, subprocess, sys
            print("the module")
            def same(samples):
                print("a call", flush=True)
                os.write(1, b"a library\\n")
                subprocess.run([sys.executable, "-c", "print('a child')"], check=True)
                return samples
            """) + ":same"
        for processes in (0, 1):
            words = [STARTED, "run", "--json", "-q", self.pipeline(own, processes)]
            ended = subprocess.run(words, capture_output=True, text=True, cwd=self.current)
            self.assertEqual(json.loads(ended.stdout)["files"]["ok"], 4)
            for text in ("the module", "a call", "a library", "a child"):
                self.assertIn(text, ended.stderr)
            with open(os.path.join(self.folder, "said"), "w+", encoding="utf-8") as file:  # both in one file
                subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, cwd=self.current)
                file.seek(0)
                self.assertIn('"ok": 4', file.read())

    def test_modules_beside_a_file_are_found(self):
        self.fill(self.current, "own_helper")
        for folder, name in ((self.mods, "../mods/mine.py"), (self.current, "mine.py")):
            self.file(folder, "mine.py", """
                import wave
                import own_helper
                def same(samples):
                    import own_later, tempfile
                    return own_later.same(own_helper.same(samples))
                """)
            for helper in ("own_helper.py", "own_later.py"):
                self.file(folder, helper, "def same(samples):\n    return samples\n")
            with self.subTest(name):
                self.started("run", "-q", self.pipeline(name + ":same", 1))

    def test_a_module_that_has_the_name_of_another_one(self):
        self.file(self.current, "wave.py", "def same(samples):\n    return samples\n")
        self.assertIn("wave has no function 'same'; to call one of the file here, write wave.py:same",
                      self.started("validate", self.pipeline("wave:same"), code=78))
        self.started("validate", self.pipeline("wave.py:same"))

    def test_a_module_beside_a_file_is_found_before_installed_ones(self):
        self.file(self.mods, "xxhash.py", "here = True\n")
        self.file(self.mods, "mine.py", "import xxhash\nassert xxhash.here\ndef same(samples):\n    return samples\n")
        self.started("run", "-q", self.pipeline(os.path.join(self.mods, "mine.py:same"), 1))

    def test_the_python_of_the_package_is_used(self):
        """Where PATH names another one, which has no such package."""
        other = self.file(self.folder, "python3", "#!/bin/sh\nexit 1\n")
        os.chmod(other, 0o700)
        own = self.file(self.mods, "own.py", "def same(samples):\n    return samples\n") + ":same"
        path = self.folder + os.pathsep + os.environ["PATH"]
        self.started("run", "-q", self.pipeline(own), PATH=path, MELFLOW_PYTHON="")
        said = self.started("run", "-q", self.pipeline(own), code=1, MELFLOW_PYTHON=other)  # unless another one is named
        self.assertIn("this needs Python with the package melflow", said)

    def test_children_end_with_a_killed_program(self):
        """Busy ones, too. As many programs as MELFLOW_KILLED says; children hold the pipe open as long as they are there."""
        own = self.file(self.mods, "own.py", """
            import os, re, signal, subprocess, sys
            def busy(samples):
                how = open(os.environ["HOW"], "a+b", 0)
                for number in range(1, 32):
                    signal.signal(number, signal.SIG_IGN) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
                starts = subprocess.Popen(["sleep", "1000"]) if how.tell() % 3 == 0 else None
                os.closerange(3, how.fileno()) if how.tell() % 3 == 1 else None
                how.write(b"x")
                os.write(1, b"busy;")
                while True:
                    re.match("(a+)+$", "a" * 40 + "b")  # with Python's lock, for hours
            """) + ":busy"
        text = self.pipeline(own, 2)
        for number in range(int(os.environ.get("MELFLOW_KILLED", "2"))):
            with subprocess.Popen([STARTED, "run", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.current, start_new_session=True,
                                  env={**os.environ, "HOW": os.path.join(self.folder, f"how{number}")}) as killed:
                seen = b""
                late = []
                limit = threading.Timer(60, end_all, [killed.stdout, late])
                limit.start()
                while seen.count(b"busy;") < 2:
                    more = os.read(killed.stdout.fileno(), 4096)
                    self.assertTrue(more, seen)
                    seen += more
                killed.send_signal(signal.SIGKILL)
                while os.read(killed.stdout.fileno(), 4096):
                    pass
                limit.cancel()
                self.assertFalse(late, "children outlive the program")

    def test_commands_end_with_a_killed_program(self):
        """With all parts of a pipe, which hold a named one open."""
        ready = os.path.join(self.folder, "ready")
        os.mkfifo(ready)
        os.mkdir(os.path.join(self.folder, "data"))
        self.file(self.folder, "data/wav.scp", f"a exec 5>{ready}; echo ready >&5; sleep 1000 | cat |\n")
        text = self.file(self.folder, "p.yaml", f"""
            version: 1
            graph:
              files: {{stage: file_list, manifest: {self.folder}/data, commands: allow}}
              read: {{stage: disk_read, from: files}}
              out: {{stage: discard, from: read}}
            """)
        with subprocess.Popen([STARTED, "run", "-q", text], stderr=subprocess.DEVNULL, cwd=self.current) as killed, open(ready, "rb", 0) as pipe:
            late = []
            limit = threading.Timer(60, end_all, [pipe, late])
            limit.start()
            self.assertEqual(pipe.read(6), b"ready\n")
            killed.kill()
            while pipe.read(1):
                pass
            limit.cancel()
            self.assertFalse(late, "commands outlive the program")

    def said_when_all_have_ended(self, text, seconds):
        """What a run and all that it has started say; fails where some of them go on."""
        with subprocess.Popen([STARTED, "run", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.current) as started:
            late = []
            limit = threading.Timer(seconds, end_all, [started.stdout, late])
            limit.start()
            said = started.stdout.read()
            limit.cancel()
        self.assertFalse(late, "sleep goes on")
        return said

    def test_what_a_function_has_started_ends_with_a_call_that_takes_too_long(self):
        mark = os.path.join(self.folder, "sleeps")
        own = self.file(self.mods, "own.py", f"""
            import subprocess
            def waits(samples):
                with subprocess.Popen(["sleep", "10000"]):
                    open({mark!r}, "w").close()
            """) + ":waits"
        for timeout in (1, 4, 16, 64):  # also limits how long the process takes to start
            said = self.said_when_all_have_ended(self.pipeline(own, 2, f", timeout: {timeout}"), 60 + 8 * timeout)
            self.assertIn(f"the function takes longer than {timeout} s (timeout)".encode(), said)
            if os.path.exists(mark):
                return
        self.fail("the function has not started sleep in time")

    def test_what_a_function_has_started_ends_with_its_process(self):
        own = self.file(self.mods, "own.py", """
            import os, subprocess
            def ends(samples):
                subprocess.Popen(["sleep", "10000"])
                os._exit(7)
            """) + ":ends"
        self.assertIn(b"the process of the function ended with exit status 7", self.said_when_all_have_ended(self.pipeline(own, 2), 60))


def has(package):
    import importlib.util
    return importlib.util.find_spec(package) is not None


def end_all(pipe, late):
    """Kills the processes that hold a pipe open, but for this one."""
    late.append(True)
    there = os.stat(pipe.fileno()).st_ino
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            held = [os.stat(f"/proc/{process}/fd/{fd}").st_ino for fd in os.listdir(f"/proc/{process}/fd")]
        except OSError:
            continue
        if there in held and int(process) != os.getpid():
            os.kill(int(process), signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
