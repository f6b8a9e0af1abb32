"""Paths of the user and of data that lead to no file: neither waited for nor read without an end."""

import importlib.util
import os
import resource
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

import melflow
from melflow import inputs

KINDS = {"fifo": "this is a FIFO, not a file", "zero": "this is a device, not a file", "folder": "this is a folder, not a file",
         "socket": "this is a socket, not a file"}

# What is opened, by a script that gets the path.
SCRIPTS = {
    "an item's function": """
        g = melflow.Graph()
        node = g.items([{"path": "a", "audio": lambda: path}]).disk_read().decode()
        report = node.discard().graph.run()
        print(report["remarks"])
        """,
    "an item's URL": """
        g = melflow.Graph()
        node = g.items([{"path": "a", "audio": "file://" + path}]).disk_read().decode()
        report = node.discard().graph.run()
        print(report["remarks"])
        """,
    "a file of functions": """
        os.symlink(path, "own.py")
        g = melflow.Graph()
        g.file_list(root=".").disk_read().decode().map("own.py:f").discard().graph.run()
        """,
    "a model": """
        from melflow import models
        print(models.Onnx.fingerprint(path))
        """,
    "a model's data": """
        from melflow import models
        open("m.onnx", "wb").close()
        os.symlink(path, "m.onnx_data")
        print(models.Onnx.fingerprint("m.onnx"))
        """,
    "vectors": """
        from melflow import parity_vectors
        parity_vectors.read(path)
        """,
    "a loader's pipeline": """
        loader = melflow.Loader(path, batch_size=2)
        next(iter(loader))
        """,
}


def limited():
    # Without a limit, a defect would take all memory.
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))


class InputsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkfifo(os.path.join(self.folder, "fifo"))
        os.symlink("/dev/zero", os.path.join(self.folder, "zero"))
        os.mkdir(os.path.join(self.folder, "folder"))
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(os.path.join(self.folder, "socket"))

    def test_what_is_no_file_is_refused_at_once(self):
        for what, script in SCRIPTS.items():
            for kind in ("fifo", "zero"):
                if "URL" in what and importlib.util.find_spec("fsspec") is None:
                    continue
                with self.subTest(what=what, kind=kind), tempfile.TemporaryDirectory() as work:
                    code = "import os, sys, melflow\npath = sys.argv[1]\n" + textwrap.dedent(script)
                    done = subprocess.run([sys.executable, "-c", code, os.path.join(self.folder, kind)], cwd=work, timeout=60,
                                          preexec_fn=limited, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                    self.assertIn(KINDS[kind], done.stdout)

    def test_a_file_has_a_size_for_its_kind(self):
        for kind, why in KINDS.items():
            with self.assertRaisesRegex(OSError, why):
                inputs.read(os.path.join(self.folder, kind), 10)
        path = os.path.join(self.folder, "file")
        with open(path, "wb") as file:
            file.write(b"0123456789")
        self.assertEqual(inputs.read(path, 10), b"0123456789")
        self.assertEqual(inputs.read(os.fsencode(path), 10), b"0123456789")
        with self.assertRaisesRegex(OSError, "has 10 bytes, and such a file may have at most 9"):
            inputs.read(path, 9)
        with self.assertRaises(FileNotFoundError):
            inputs.read(path + "2", 10)
        with self.assertRaisesRegex(OSError, "has more than 9 bytes"):  # its size is not known before
            inputs.read("/proc/self/status", 9)

    def test_the_user_may_name_a_pipe_up_to_a_size(self):
        for text, most, expected in ((b"abc", 3, b"abc"), (b"abcd", 3, None)):
            reader, writer = os.pipe()
            os.write(writer, text)
            os.close(writer)
            try:
                if expected is not None:
                    self.assertEqual(inputs.read(f"/dev/fd/{reader}", most, may_be_pipe=True), expected)
                else:
                    with self.assertRaisesRegex(OSError, "has more than 3 bytes"):
                        inputs.read(f"/dev/fd/{reader}", most, may_be_pipe=True)
                with self.assertRaisesRegex(OSError, "this is a FIFO, not a file"):
                    inputs.read(f"/dev/fd/{reader}", most)
            finally:
                os.close(reader)

    def test_a_mark_of_an_export_that_is_a_link_is_not_written_through(self):
        part = os.path.join(self.folder, "out.part")
        os.mkdir(part)
        precious = os.path.join(self.folder, "precious")
        with open(precious, "wb") as file:
            file.write(b"precious")
        os.symlink(precious, os.path.join(part, ".melflow-export"))
        with self.assertRaisesRegex(melflow.RunError, "is in the way, and no export of melflow began it"):
            with melflow.exports._folder(os.path.join(self.folder, "out"), False):
                pass
        with open(precious, "rb") as file:
            self.assertEqual(file.read(), b"precious")


if __name__ == "__main__":
    unittest.main()
