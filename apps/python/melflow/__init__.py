"""Batches for training, straight from audio or from rows that melflow wrote, and the program as functions.

    import melflow
    for batch in melflow.Loader("speech.yaml", batch_size=32, shuffle=4096, seed=1):
        batch["mel"], batch["label"], batch["path"]

Loader: batches of a pipeline that ends in a node of the stage `batches`; its graph works in threads of this process.
features, Features: rows of samples in memory, by the same kernels.
open: the rows of a file, and batches of them.
run, update, inspect: the program, as a child process.
"""

from ._melflow import ConfigError, RunError
from ._melflow import version as __version__
from .features import Features, features
from .loader import Loader
from .program import inspect, run, update
from .rows import Rows, open

__all__ = ["ConfigError", "Features", "Loader", "Rows", "RunError", "__version__", "features", "inspect", "open", "run", "update"]
