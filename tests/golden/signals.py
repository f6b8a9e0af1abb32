"""The test signals of `melflow verify-parity`, which the Python package has."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parents[2] / "apps/python/melflow"))

from parity_signals import SIGNALS, checksum, draws  # noqa: E402, F401
