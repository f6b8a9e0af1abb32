"""How functions of a pipeline are called: in threads of this process, several recordings together, or block by block."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Protocol, Tuple

import numpy as np

from .call_results import Answer, answer_of, described, noting, results_of, samples_of, shown


class Caller(Protocol):
    def __call__(self, arrays: List[np.ndarray], rate: int) -> List[Answer]: ...
    def taken(self) -> Tuple[int, float, float, float]: ...


def _takes_rate(target: Any) -> bool:
    """Whether the rate is passed behind the samples."""
    try:
        parameters = inspect.signature(target.__call__ if inspect.isclass(target) else target).parameters.values()
    except ValueError:
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) >= (3 if inspect.isclass(target) else 2) or any(p.kind == p.VAR_POSITIONAL for p in parameters)


class Here:
    """A function in threads of this process. A call gets one array, or `batch` of them."""

    def __init__(self, target: Any, arguments: Dict[str, Any], gives: str, dtype: str, batch: int) -> None:
        self._target, self._arguments, self._gives, self._dtype, self._batch = target, arguments, gives, dtype, batch
        self._takes_rate = _takes_rate(target)
        self._idle: List[Any] = []  # instances of a class: as many as are called at once

    def prepare(self) -> None:
        """Makes the instance of a class for the first call; the call repeats what fails here, and reports it."""
        if inspect.isclass(self._target):
            with contextlib.suppress(Exception):
                self._idle.append(self._target(**self._arguments))

    def __call__(self, arrays: List[np.ndarray], rate: int) -> List[Answer]:
        """With `batch`: the arrays have one shape, and are at most so many."""
        if not self._batch:
            return [answer_of(lambda: self._called(array, rate, self._results)) for array in arrays]
        if len(arrays) > 1:
            try:
                with noting(None):
                    return self._called_together(arrays, rate, lambda one: answer_of(lambda: self._results(one)))
            except BaseException:  # the calls one by one find out which is wrong
                pass
        return [answer_of(lambda: self._called_together([array], rate, self._results)[0]) for array in arrays]

    def _results(self, value: Any) -> List[np.ndarray]:
        return results_of(self._gives, value, self._dtype)

    def _called(self, array: np.ndarray, rate: int, take: Callable[[Any], Any]) -> Any:
        """Returns `take` of the function's result."""
        given = (array, rate) if rate and self._takes_rate else (array,)
        if not inspect.isclass(self._target):
            return take(self._target(*given, **self._arguments))
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = None
        if worker is None:
            worker = self._target(**self._arguments)
        try:  # also while a generator of it runs, and whatever it raises
            return take(worker(*given))
        finally:
            self._idle.append(worker)

    def _called_together(self, arrays: List[np.ndarray], rate: int, take_one: Callable[[Any], Any]) -> List[Any]:
        """Always passes `batch` arrays, so that the result for one does not depend on how many come together."""
        def take(value: Any) -> List[Any]:
            if inspect.isgenerator(value):  # which may give the same memory again
                value = [np.array(one) if isinstance(one, np.ndarray) else one for one in value]
            values = list(value) if hasattr(value, "__iter__") else None
            if values is None or len(values) != self._batch:
                raise TypeError(f"the function gives {shown(value) if values is None else f'{len(values)} results'} for a batch of "
                                f"{self._batch}; give one for each")
            return [take_one(one) for one in values[:len(arrays)]]

        return self._called(batch_of(arrays, self._batch), rate, take)

    def taken(self) -> Tuple[int, float, float, float]:
        """How many calls are made at once, the time of all calls, and for other processes their processor time and the time in which
        they were ready but had no core; 0 calls: each thread makes its own."""
        return 0, 0.0, 0.0, 0.0

    def stream(self) -> "Stream":
        return Stream(self._target, self._arguments)


def batch_of(arrays: List[np.ndarray], size: int) -> np.ndarray:
    """[size, ...]: joins one to `size` arrays of one shape; repeats the last one to fill up."""
    return np.stack([*arrays, *[arrays[-1]] * (size - len(arrays))])


class Stream:
    """An object of a class, which gets one recording."""

    def __init__(self, target: Any, arguments: Dict[str, Any]) -> None:
        self._make = functools.partial(target, **arguments)
        self._takes_rate = _takes_rate(target)
        self._object: Any = None

    def __call__(self, blocks: List[np.ndarray], rate: int, is_last: bool) -> Answer:
        """Joins what the object gives for all these blocks into one array."""
        def given() -> Iterator[Any]:
            if self._object is None:
                self._object = self._make()
            for block in blocks:
                yield self._object(*((block, rate) if self._takes_rate else (block,)))
            if is_last and hasattr(self._object, "finish"):
                yield self._object.finish()

        def made() -> List[np.ndarray]:
            # Each is taken before the next call, which may give the same memory.
            return [np.concatenate([np.zeros(0, np.float32), *(samples_of(one) for one in given() if one is not None)])]

        return answer_of(made)


class Batches:
    """Calls a function with the arrays of several threads together, of one shape and rate. Each thread that asks waits; some of
    them make the calls, also for the others."""

    _PATIENCE = 0.02  # [s] A batch that is not full is not called while others come within this time.

    def __init__(self, function: Caller, size: int, at_once: int) -> None:
        self._function, self._size, self._at_once = function, size, at_once
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)  # something has come
        self._waiting: List[_Request] = []
        self._under_way = 0
        self._seconds = 0.0

    def __call__(self, arrays: List[np.ndarray], rate: int) -> List[Answer]:
        asker = _Asker(len(arrays))
        requests = [_Request(asker, array, rate) for array in arrays]
        with self._lock:
            self._waiting += requests
            asker.calls = self._under_way < self._at_once
            self._under_way += asker.calls
            self._more.notify_all()
        while asker.left or asker.calls:
            if not asker.calls:
                asker.woken.acquire()
                continue
            if asker.left:
                self._call()
            self._hand_on(asker)
        return [request.answer for request in requests]

    def _call(self) -> None:
        with self._lock:
            while 0 < len(self._next_batch()) < self._size and self._more.wait(self._PATIENCE):
                pass
            together = self._next_batch()
            for request in together:
                self._waiting.remove(request)
        if not together:  # another thread has taken them meanwhile
            return
        began = time.monotonic()
        try:
            answers = self._function([request.array for request in together], together[0].rate)
        except BaseException as error:  # no memory: the other threads wait for answers
            answers = [("failed", described(error), [], []) for _ in together]
        with self._lock:
            self._seconds += time.monotonic() - began
            for request, answer in zip(together, answers):
                request.answer = answer
                request.asker.left -= 1
                if request.asker.left == 0:
                    request.asker.woken.release()

    def _next_batch(self) -> "List[_Request]":
        """The requests for the next call: the oldest, and others of the same shape and rate."""
        like = [r for r in self._waiting if r.kind == self._waiting[0].kind]
        return like[:self._size]

    def _hand_on(self, asker: "_Asker") -> None:
        """Lets another thread call, when all requests of this one are answered."""
        with self._lock:
            if asker.left and self._waiting:
                return
            asker.calls = False
            if asker.left:  # others have taken them
                self._under_way -= 1
                return
            for request in self._waiting:
                if not request.asker.calls:
                    request.asker.calls = True
                    request.asker.woken.release()
                    return
            self._under_way -= 1

    def taken(self) -> Tuple[int, float, float, float]:
        return (self._at_once, self._seconds, *self._function.taken()[2:])


class _Asker:
    """A thread that waits for answers of Batches."""

    def __init__(self, left: int) -> None:
        self.left, self.calls = left, False
        self.woken = threading.Semaphore(0)


class _Request:
    def __init__(self, asker: _Asker, array: np.ndarray, rate: int) -> None:
        self.asker, self.array, self.rate = asker, array, rate
        self.kind = (array.shape, rate)
        self.answer: Answer = ("failed", "", [], [])
