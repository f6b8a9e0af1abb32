"""The program melflow, within Python: it also runs pipelines with functions of Python."""

import signal
import sys

from . import _melflow

if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
sys.exit(_melflow.main(["melflow", *sys.argv[1:]]))
