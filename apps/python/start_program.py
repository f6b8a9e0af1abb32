#!python
"""Starts the program melflow, which is in the Python package of that name; the package is not imported."""
import importlib.util
import os
import sys

package = importlib.util.find_spec("melflow").submodule_search_locations[0]
os.environ["MELFLOW_OWN_PYTHON"] = sys.executable  # for pipelines with functions, also where PATH names another one
os.execv(os.path.join(package, "bin", "melflow"), sys.argv)
