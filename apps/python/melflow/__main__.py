"""The program melflow, within Python: it also runs pipelines with functions of Python."""

import os
import signal
import sys

from . import _melflow

if __name__ == "__main__" and sys.path[:1] == [os.getcwd()]:  # `python3 -m` looks there first
    del sys.path[0]
if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
sys.exit(_melflow.main(["melflow", *sys.argv[1:]]))
