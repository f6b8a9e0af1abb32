"""What the package asks of Python: which one, and the packages of its optional parts."""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest


def python(code, **environment):
    """Output and errors of a Python that runs some code, without the packages that it calls `without` for."""
    head = "import sys\ndef without(*names):\n    sys.modules.update(dict.fromkeys(names))\n"
    ended = subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, check=False, env={**os.environ, **environment})
    return ended.stdout + ended.stderr


class ExtrasTest(unittest.TestCase):
    def test_the_metadata_names_what_optional_parts_take(self):
        about = importlib.metadata.metadata("melflow")
        self.assertEqual(about["Requires-Python"], ">=3.11")
        extras = {extra: set() for extra in about.get_all("Provides-Extra")}
        for line in importlib.metadata.requires("melflow"):
            if found := re.fullmatch(r"""([\w-]+).*; *extra == ['"](\w+)['"]""", line):
                extras[found[2]].add(found[1])
        self.assertEqual(extras, {"notebook": {"ipywidgets", "pandas", "tqdm"}, "onnx": {"onnxruntime"}, "s3": {"s3fs", "aiohttp"},
                                  "dask": {"distributed"}})

    def test_a_message_about_a_missing_package_names_the_extra(self):
        with tempfile.NamedTemporaryFile(suffix=".onnx") as model:
            self.assertIn("onnxruntime is not installed (pip install 'melflow[onnx]')", python(
                f"without('onnxruntime')\nimport melflow.models\nmelflow.models._session({model.name!r}, 1)"))
        self.assertIn("s3:// takes the package fsspec: pip install 'melflow[s3]'", python(
            "without('fsspec')\nimport melflow.stores\nmelflow.stores.fetched('s3://bucket/a')"))

    @unittest.skipUnless(importlib.util.find_spec("fsspec"), "fsspec is not installed")
    def test_a_store_that_fsspec_lacks_the_package_of_names_the_extra(self):
        for url in ("s3://bucket/a", "https://127.0.0.1:9/a"):
            self.assertRegex(python(f"without('s3fs', 'aiohttp')\nimport melflow.stores\nmelflow.stores.fetched({url!r})"),
                             r"RunError: \S+: .*: pip install 'melflow\[s3\]'")

    def test_free_threaded_builds_are_refused_by_name(self):
        said = python("sys.abiflags = 't'\nimport melflow")
        self.assertIn("ImportError: melflow does not support free-threaded builds of Python, such as this Python "
                      f"3.{sys.version_info[1]}t; use the ordinary build", said)


if __name__ == "__main__":
    unittest.main()
