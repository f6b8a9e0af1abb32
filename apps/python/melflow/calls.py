"""Functions of Python as nodes of a pipeline: the stage `python`.

    def louder(samples, rate, gain=2.0):        # [samples] float32, 1 is full scale
        if len(samples) < rate:
            melflow.skip("is shorter than a second")
        return samples * gain

Of a class as many objects are made, with the node's arguments, as are called at once; they are called with samples and rate.
What a function raises fails the recording, with its text and place.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import math
import mmap
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import traceback
import types
import weakref
from multiprocessing.connection import Connection
from socket import socketpair
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple

import numpy as np

from . import _melflow
from ._melflow import RunError

Answer = Tuple[str, str, List[np.ndarray], List[str]]  # outcome, reason, results, notes

_of_thread = threading.local()
_of_this_process: Dict[str, Callable[..., Any]] = {}  # functions that cannot be imported, by name


class Skipped(Exception):
    """Raised by skip()."""


def skip(why: str) -> NoReturn:
    """In a function that a node calls: leaves the recording out, with the reason in the report."""
    raise Skipped(why)


def note(text: str) -> None:
    """In a function that a node calls: adds a warning about the recording to the report."""
    if not hasattr(_of_thread, "notes"):
        raise RuntimeError("note() is for functions that a node of a pipeline calls")
    _of_thread.notes.append(str(text))


def name_of(function: Callable[..., Any]) -> str:
    """How a pipeline names a function: MODULE:NAME, or for one that cannot be imported a name that only this process knows."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module and module != "__main__" and name:
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is function:
            return f"{module}:{name}"
    # Others of that code may have other values in their closures.
    return known(f"{name or type(function).__name__}-{_code_hash(function)[:12]}", function)


def known(begin: str, function: Callable[..., Any]) -> str:
    """The name in this process of a function that cannot be imported."""
    name = f"@{begin}:here"
    for n in range(1, len(_of_this_process) + 2):
        if _of_this_process.setdefault(name, function) is function:
            break
        name = f"@{begin}-{n}:here"
    return name


_objects: Dict[int, Tuple[Any, str]] = {}
_read: "set[int]" = set()


def known_object(value: Any) -> str:
    """The name in this process of a function that gives `value`."""
    def once() -> Any:
        """An iterator has its items only once."""
        if hasattr(value, "__next__") and id(value) in _read:
            raise RunError("this iterator has been read to its end; give a list, or a function that makes it")
        _read.add(id(value))
        return value

    if id(value) not in _objects:
        _objects[id(value)] = (value, known(type(value).__name__, once))
    return _objects[id(value)][1]


def check_outside() -> None:
    """Raises RuntimeError in a function that a node calls, and while its module is imported: there, a pipeline would wait for
    itself."""
    if getattr(_of_thread, "is_loading", False) or hasattr(_of_thread, "notes"):
        raise RuntimeError("a pipeline cannot be run by a function that a pipeline calls, nor by its module: put what runs it "
                           "under if __name__ == '__main__'")


def _load(name: str) -> Any:
    was_loading = getattr(_of_thread, "is_loading", False)
    _of_thread.is_loading = True
    try:
        return _imported(name)
    finally:
        _of_thread.is_loading = was_loading


def _imported(name: str) -> Any:
    """Imports MODULE:NAME or FILE.py:NAME. Raises RunError."""
    if name in _of_this_process:
        return _of_this_process[name]
    where, _, inner = name.rpartition(":")
    if name.startswith("@"):
        raise RunError(f"{name}: is a function of another Python process; put it into a module, and name it MODULE:NAME")
    try:
        if where.endswith(".py"):
            path = os.path.abspath(where)
            known = "melflow_file_" + hashlib.sha256(path.encode()).hexdigest()[:16]
            with open(path, "rb") as file:
                source = file.read()
            module = sys.modules.get(known)
            if module is None or module.__dict__.get("_melflow_source") != source:
                # Not by importlib: its bytecode is that of an earlier file which has the same size and second.
                module = sys.modules[known] = types.ModuleType(known)
                module.__dict__.update(__file__=path, _melflow_source=source)
                try:
                    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
                except BaseException:
                    del sys.modules[known]
                    raise
        else:
            module = importlib.import_module(where)
    except FileNotFoundError:
        raise RunError(f"{where}: there is no such file in {os.getcwd()}") from None
    except BaseException as error:
        raise RunError(f"{where} cannot be imported: {_described(error)}") from None
    target: Any = module
    for part in inner.split("."):
        target = getattr(target, part, None)
    if not callable(target):
        raise RunError(f"{where} has no function {inner!r}")
    return target


def _file_hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:32]


def _code_hash(target: Any) -> str:
    """Of the code of a function and of what is defined in it, and of the values that it encloses; "" where it has none."""
    def parts(code: Any) -> str:
        return repr((code.co_code, code.co_names, [parts(c) if hasattr(c, "co_code") else c for c in code.co_consts]))

    code = getattr(target, "__code__", None)
    if code is None:
        return ""
    enclosed = [repr(cell.cell_contents) for cell in target.__closure__ or () if cell.cell_contents is not target]
    return hashlib.sha256(repr((parts(code), target.__defaults__, enclosed)).encode()).hexdigest()[:32]


_hashes: "weakref.WeakKeyDictionary[Any, str]" = weakref.WeakKeyDictionary()  # of files when their functions were first seen


def _hash_of(target: Any, name: str) -> str:
    """Of the file that the code is in; of the code where it cannot be imported. Raises RunError where the file is another one
    than when it was imported."""
    if name.startswith("@"):
        return _code_hash(target)
    try:
        path = inspect.getsourcefile(inspect.unwrap(target))
    except (TypeError, OSError):
        path = None
    if path is None or not os.path.exists(path):
        return _code_hash(target)
    now = _file_hash(path)
    try:
        if _hashes.setdefault(target, now) != now:
            raise RunError(f"{path}: has changed since {name} was imported; import it again (importlib.reload), or start Python again")
    except TypeError:  # no weak references to it
        pass
    return now


def _described(error: BaseException) -> str:
    """An exception with the last place that is not of this package."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()[-1]
    frames = [f for f in traceback.extract_tb(error.__traceback__)
              if not f.filename.startswith(os.path.dirname(__file__)) and not f.filename.startswith("<frozen")]
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name})" if frames else text


def _samples(value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype == np.int16:
        array = array / np.float32(32768)
    if array.ndim != 1 or array.dtype.kind != "f":
        raise TypeError(f"the function gives {_shown(value)}; samples are an array [samples] of floats or int16")
    array = np.ascontiguousarray(array, np.float32)
    if not np.isfinite(array).all():
        raise ValueError("the function gives samples that are no numbers (NaN or infinite)")
    return array


def _shown(value: Any) -> str:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"an array {tuple(value.shape)} of {value.dtype}"
    return f"{type(value).__name__} {value!r:.60}" if value is not None else "None"


def _rows(value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.ndim not in (1, 2, 3):
        raise TypeError(f"the function gives {_shown(value)}; rows are an array [rows, columns], or one row")
    array = np.ascontiguousarray(array, np.float32)
    return array[None] if array.ndim == 1 else array


def _utterances(value: Any) -> np.ndarray:
    pairs = list(value) if value is not None else None
    try:
        array = np.asarray(pairs if pairs else np.zeros((0, 2)), np.float32)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if pairs is None or array.ndim != 2 or array.shape[1] != 2:
        raise TypeError(f"the function gives {_shown(value)}; utterances are pairs of start and end in seconds")
    return np.ascontiguousarray(array)


def _results(gives: str, value: Any) -> List[np.ndarray]:
    if gives == "rows":
        return [_rows(value)]
    if gives == "utterances":
        return [_utterances(value)]
    if gives == "waveform" and not inspect.isgenerator(value):
        return [_samples(value)]
    if not inspect.isgenerator(value) and not isinstance(value, (list, tuple)):
        raise TypeError(f"the function gives {_shown(value)}; several results are a generator or a list of arrays of samples")
    return [_samples(one) for one in value]


def _takes_rate(target: Any) -> bool:
    """Whether the rate is passed behind the samples."""
    try:
        parameters = inspect.signature(target.__call__ if inspect.isclass(target) else target).parameters.values()
    except ValueError:
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) >= (3 if inspect.isclass(target) else 2) or any(p.kind == p.VAR_POSITIONAL for p in parameters)


class _Here:
    """A function in threads of this process."""

    def __init__(self, target: Any, arguments: Dict[str, Any], gives: str) -> None:
        self._target, self._arguments, self._gives = target, arguments, gives
        self._takes_rate = _takes_rate(target)
        self._idle: List[Any] = []  # instances of a class: as many as are called at once

    def __call__(self, array: np.ndarray, rate: int) -> Answer:
        before = getattr(_of_thread, "notes", None)  # where a function calls features() of another pipeline
        _of_thread.notes = notes = []
        try:
            given = (array, rate) if rate and self._takes_rate else (array,)
            if not inspect.isclass(self._target):
                return "made", "", _results(self._gives, self._target(*given, **self._arguments)), notes
            try:
                worker = self._idle.pop()
            except IndexError:
                worker = None
            if worker is None:
                worker = self._target(**self._arguments)
            try:  # also while a generator of it runs, and whatever it raises
                return "made", "", _results(self._gives, worker(*given)), notes
            finally:
                self._idle.append(worker)
        except Skipped as why:
            return "skipped", str(why) or "the function skips it", [], notes
        except BaseException as error:  # SystemExit, too: it is about this recording
            return "failed", _described(error), [], notes
        finally:
            if before is None:
                del _of_thread.notes
            else:
                _of_thread.notes = before


class _SharedArrays:
    """Arrays that two processes pass to each other in memory of both, one list at a time; their shapes go another way."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._values = np.zeros(0, np.float32)

    def __del__(self) -> None:
        os.close(self.descriptor)

    def _room(self, count: int) -> np.ndarray:
        if len(self._values) < count:
            os.ftruncate(self.descriptor, max(4 * count, os.fstat(self.descriptor).st_size))
            self._values = np.frombuffer(mmap.mmap(self.descriptor, 0), np.float32)
        return self._values

    def put(self, arrays: List[np.ndarray]) -> List[Tuple[int, ...]]:
        """Gives their shapes."""
        room, at = self._room(sum(array.size for array in arrays)), 0
        for array in arrays:
            room[at:at + array.size] = array.reshape(-1)
            at += array.size
        return [array.shape for array in arrays]

    def take(self, shapes: List[Tuple[int, ...]]) -> List[np.ndarray]:
        """Copies of them."""
        ends = np.cumsum([math.prod(shape) for shape in shapes], dtype=int)
        room = self._room(ends[-1] if shapes else 0)
        return [room[end - math.prod(shape):end].reshape(shape).copy() for end, shape in zip(ends, shapes)]


class _Child:
    """A process that calls the function."""

    def __init__(self) -> None:
        ours, theirs = socketpair()
        self.arrays = _SharedArrays(os.memfd_create("melflow arrays"))
        handed = [theirs.fileno(), self.arrays.descriptor]
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"from melflow import calls; calls.serve(*{handed})"], pass_fds=handed,
            stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path},
            start_new_session=True)  # Ctrl-C is for this process, which lets calls end
        theirs.close()
        self.connection = Connection(ours.detach())

    def prepare(self, spec: bytes, timeout: Optional[float]) -> None:
        self.connection.send_bytes(spec)
        if not self.connection.poll(timeout):
            raise TimeoutError
        self.connection.recv_bytes()

    def end(self) -> str:
        """How it has ended, if by itself."""
        self.connection.close()
        try:
            status = self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        return f"by signal {-status}" if status < 0 else f"with exit status {status}"


class _Children:
    """A function in other processes, each of which makes one call at a time. One that ends by itself, or whose call takes too
    long, fails its recording and is replaced."""

    def __init__(self, call: str, arguments: Dict[str, Any], gives: str, processes: int, timeout: float) -> None:
        self._spec = pickle.dumps((call, arguments, gives))
        self._timeout = timeout or None
        self.cpu_seconds, self._counting = 0.0, threading.Lock()  # of the processes, in all calls so far
        self._idle: "queue.LifoQueue[Optional[_Child]]" = queue.LifoQueue()
        for _ in range(processes):
            self._idle.put(None)  # started at the first call

    def __call__(self, array: np.ndarray, rate: int) -> Answer:
        child = self._idle.get()
        try:
            if child is None:
                child = _Child()
                child.prepare(self._spec, self._timeout)
            child.connection.send_bytes(pickle.dumps((child.arrays.put([array]), rate)))
            if not child.connection.poll(self._timeout):
                raise TimeoutError
            outcome, reason, shapes, notes, seconds = pickle.loads(child.connection.recv_bytes())
            with self._counting:
                self.cpu_seconds += seconds
            return outcome, reason, child.arrays.take(shapes), notes
        except TimeoutError:
            if child is not None:
                child.process.kill()
                child.end()
            child = None
            return "failed", f"the function takes longer than {self._timeout:g} s (timeout)", [], []
        except (EOFError, ConnectionError):
            how = child.end() if child is not None else ""
            child = None
            return "failed", f"the process of the function ended {how}", [], []
        finally:
            self._idle.put(child)

    def __del__(self) -> None:
        while not self._idle.empty():
            child = self._idle.get()
            if child is not None:
                child.end()


def serve(descriptor: int, memory: int) -> None:
    """In a process of _Children."""
    connection, arrays = Connection(descriptor), _SharedArrays(memory)
    call, arguments, gives = pickle.loads(connection.recv_bytes())
    function = _Here(_load(call), arguments, gives)
    connection.send_bytes(b"ready")
    before = time.process_time()
    while True:
        try:
            shapes, rate = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        outcome, reason, results, notes = function(arrays.take(shapes)[0], rate)
        put, now = arrays.put(results), time.process_time()
        connection.send_bytes(pickle.dumps((outcome, reason, put, notes, now - before)))
        before = now


class Call:
    """A function as a stage has it."""

    def __init__(self, name: str, arguments: str, gives: str, processes: int, timeout: float) -> None:
        target, self.arguments = _load(name), json.loads(arguments)
        if processes and name.startswith("@"):
            raise RunError(f"{name}: other processes cannot import it; put it into a module, or use processes: 0")
        try:
            signature = inspect.signature(target)
            (signature.bind if inspect.isclass(target) else signature.bind_partial)(**self.arguments)
        except TypeError as error:
            raise RunError(f"{name}: {error}; `arguments` of the node are {self.arguments}") from None
        except ValueError:  # no signature, as of functions in C
            pass
        extra = getattr(target, "fingerprint", None)
        self.source_hash = _hash_of(target, name) + ("" if extra is None else str(extra(**self.arguments)))
        self.function: Callable[[np.ndarray, int], Answer]
        if processes:
            where, _, inner = name.rpartition(":")
            name = f"{os.path.abspath(where)}:{inner}" if where.endswith(".py") else name  # children start at any time
            self.function = _Children(name, self.arguments, gives, processes, timeout)
        else:
            self.function = _Here(target, self.arguments, gives)


_melflow.set_calls(Call)
