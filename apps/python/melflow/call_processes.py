"""Functions of a pipeline in other processes."""

from __future__ import annotations

import contextlib
import itertools
import math
import mmap
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Connection
from socket import socketpair
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from . import _melflow, module_search
from .call_loading import load
from .call_results import Answer
from .callers import Here


class _SharedArrays:
    """Arrays that two processes pass to each other in shared memory, one list of one type at a time; their shapes are sent separately."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._bytes = np.zeros(0, np.uint8)

    def __del__(self) -> None:
        os.close(self.descriptor)

    def _room(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Room for `count` values."""
        size = count * dtype.itemsize
        if len(self._bytes) < size:
            os.ftruncate(self.descriptor, max(size, os.fstat(self.descriptor).st_size))
            self._bytes = np.frombuffer(mmap.mmap(self.descriptor, 0), np.uint8)
        return self._bytes[:size].view(dtype)

    def put(self, arrays: List[np.ndarray]) -> List[Tuple[int, ...]]:
        """Writes the arrays; returns their shapes."""
        if not arrays:
            return []
        room, at = self._room(sum(array.size for array in arrays), arrays[0].dtype), 0
        for array in arrays:
            room[at:at + array.size] = array.reshape(-1)
            at += array.size
        return [array.shape for array in arrays]

    def take(self, shapes: List[Tuple[int, ...]], dtype: str) -> List[np.ndarray]:
        """Returns copies of the arrays."""
        ends = np.cumsum([math.prod(shape) for shape in shapes], dtype=int)
        room = self._room(ends[-1] if shapes else 0, np.dtype(dtype))
        return [room[end - math.prod(shape):end].reshape(shape).copy() for end, shape in zip(ends, shapes)]


class _Child:
    """A process that calls the function."""

    def __init__(self) -> None:
        ours, theirs = socketpair()
        self.arrays = _SharedArrays(os.memfd_create("melflow arrays"))
        handed = [theirs.fileno(), self.arrays.descriptor]
        start, path = module_search.for_child()
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path[:] = {start!a}; from melflow import call_processes; "
             f"call_processes.serve({os.getpid()}, {path!a}, *{handed})"], pass_fds=handed, stdin=subprocess.DEVNULL,
            start_new_session=True)  # Ctrl-C is for this process, which lets calls end
        theirs.close()
        self.connection = Connection(ours.detach())
        self.used = (0.0, 0.0)  # so far, as _used()

    def prepare(self, spec: bytes) -> None:
        """Imports the function, and makes an object of a class. Raises TimeoutError."""
        self.connection.send_bytes(spec)
        if not self.connection.poll(_LONGEST_START):
            raise TimeoutError
        self.connection.recv_bytes()

    def kill(self) -> None:
        """Ends the process, and those that the function has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> str:
        """Ends the process and those that the function has started; tells how it ended, if it did so by itself."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        self.kill()
        status = self.process.wait()
        return f"by signal {-status}" if status < 0 else f"with exit status {status}"


_LONGEST_START = 300.0  # [s]: modules and models are loaded; not a part of a call


class _Gone(Exception):
    """A process that has ended, or whose call took too long."""


class Children:
    """Calls a function in other processes, one call at a time in each. A process that ends by itself, or whose call takes too
    long, fails its recording and is replaced."""

    def __init__(self, call: str, arguments: Dict[str, Any], gives: str, dtype: str, batch: int, processes: int, timeout: float) -> None:
        self._spec = pickle.dumps((call, arguments, gives, dtype, batch))
        self._dtype, self._batch, self._processes, self._timeout = dtype, batch, processes, timeout or None
        self._lock = threading.Lock()
        self._seconds = self._cpu_seconds = self._core_wait_seconds = 0.0
        self._idle: "queue.LifoQueue[Optional[_Child]]" = queue.LifoQueue()
        for _ in range(processes):
            self._idle.put(None)  # started at the first call

    def __call__(self, arrays: List[np.ndarray], rate: int) -> List[Answer]:
        if self._batch and len(arrays) > 1:
            try:
                return self._called(arrays, rate)
            except _Gone:  # the one that did it does it again
                pass
        answers: List[Answer] = []
        for array in arrays:
            try:
                answers += self._called([array], rate)
            except _Gone as error:
                answers.append(("failed", str(error), [], []))
        return answers

    def _called(self, arrays: List[np.ndarray], rate: int) -> List[Answer]:
        """Makes the call in one process. Raises _Gone."""
        child = self._idle.get()
        began, before = time.monotonic(), child.used if child is not None else (0.0, 0.0)
        what, most = "start of the function's process", _LONGEST_START
        try:
            if child is None:
                child = _Child()
                child.prepare(self._spec)
            what, most = "function", self._timeout or math.inf
            child.connection.send_bytes(pickle.dumps((child.arrays.put(arrays), rate)))
            if not child.connection.poll(self._timeout):
                raise TimeoutError
            answers, shapes, child.used = pickle.loads(child.connection.recv_bytes())
            results = iter(child.arrays.take(shapes, self._dtype))
            with self._lock:
                self._cpu_seconds += child.used[0] - before[0]
                self._core_wait_seconds += child.used[1] - before[1]
            return [(outcome, reason, list(itertools.islice(results, count)), notes) for outcome, reason, count, notes in answers]
        except TimeoutError:
            if child is not None:
                child.kill()
                child.end()
            child = None
            raise _Gone(f"the {what} takes longer than {most:g} s (timeout)") from None
        except (EOFError, ConnectionError):
            how = child.end() if child is not None else ""
            child = None
            raise _Gone(f"the process of the function ended {how}") from None
        finally:
            with self._lock:
                self._seconds += time.monotonic() - began
            self._idle.put(child)

    def taken(self) -> Tuple[int, float, float, float]:
        return self._processes, self._seconds, self._cpu_seconds, self._core_wait_seconds

    def __del__(self) -> None:
        while not self._idle.empty():
            child = self._idle.get()
            if child is not None:
                child.end()


_BETWEEN = 0.05  # [s] Looking takes as long as a short call.


def _used() -> Tuple[float, float]:
    """The processor time of this process, and how long its threads were ready but had no core [s]."""
    wait = 0
    with contextlib.suppress(OSError):  # a thread that ends, or a kernel that does not count
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/schedstat", "rb") as file:
                wait += int(file.read().split()[1])
    return time.process_time(), wait / 1e9


def serve(parent: int, path: List[str], descriptor: int, memory: int) -> None:
    """Runs in a process of Children. path: the parent's sys.path."""
    _melflow.end_with_parent(parent)
    sys.path[:] = path
    connection, arrays = Connection(descriptor), _SharedArrays(memory)
    call, arguments, gives, dtype, batch = pickle.loads(connection.recv_bytes())
    function = Here(load(call), arguments, gives, dtype, batch)
    function.prepare()
    connection.send_bytes(b"ready")
    used, looked = (0.0, 0.0), -_BETWEEN
    while True:
        try:
            shapes, rate = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        answers = function(arrays.take(shapes, "float32"), rate)
        given = arrays.put([array for answer in answers for array in answer[2]])
        told = [(outcome, reason, len(results), notes) for outcome, reason, results, notes in answers]
        if time.monotonic() >= looked + _BETWEEN:
            used, looked = _used(), time.monotonic()
        connection.send_bytes(pickle.dumps((told, given, used)))
