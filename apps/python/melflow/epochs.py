"""The base of all loaders: each `for` is an epoch, and a saved state continues in the middle of one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Literal, Mapping, Optional, Tuple, overload

from ._melflow import RunError
from . import arguments, rank_watch
from .rank_watch import RankWatch
from .torch_dataset import MOST_AHEAD, as_torch
from .waits import Headroom, Waits

if TYPE_CHECKING:
    import numpy as np

    class Batch(Dict[str, Any]):
        """What type checkers know of a batch; rows, which have other names, may be of NumPy or objects for DLPack."""

        @overload
        def __getitem__(self, name: Literal["path"]) -> List[str]: ...
        @overload
        def __getitem__(self, name: Literal["file", "offset", "length", "label", "split", "target", "result_offset"]) -> np.ndarray: ...
        @overload
        def __getitem__(self, name: Literal["result"]) -> Dict[str, np.ndarray]: ...
        @overload
        def __getitem__(self, name: str) -> Any: ...
        def __getitem__(self, name: str) -> Any: ...
else:
    Batch = Dict[str, Any]

_WAIT = 0.1  # seconds between checks for signals


# The rules by which a seed gives an order of samples, in every state; another number where a version changes them.
_ORDER = 2


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> List[str]:
    """Describes the differences of two states. A key vars.NAME is the digest of one variable."""
    out = []
    differing = [key for key in {**here, **there} if there.get(key) != here.get(key)]
    for key in (key for key in differing if "." not in key):
        parts = [part.partition(".")[2] for part in differing if part.startswith(f"{key}.")]
        if not str(here.get(key)).startswith("#") and not str(there.get(key)).startswith("#"):
            out.append(f"{key} is {arguments.shown(there.get(key))} in the state and {arguments.shown(here.get(key))} here")
        elif parts and any(part.startswith(f"{key}.") for part in there):
            out.append(f"{', '.join(f'{key}[{part!r}]' for part in parts)} {'is' if len(parts) == 1 else 'are'} not as in the state")
        else:  # a digest
            out.append(f"{key} is another")
    return out


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _Batches:
    """The iterator of an epoch, of which several threads may take batches."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches, self._one = batches, threading.RLock()
        self._error: Optional[RunError] = None

    def __iter__(self) -> "_Batches":
        return self

    def __next__(self) -> Batch:
        with self._one:
            if self._error is not None:  # the error is raised in each thread
                raise self._error
            try:
                return next(self._batches)
            except RunError as error:
                self._error = error
                raise

    def close(self) -> None:
        """Ends the iterator, like close() of a generator."""
        with self._one:
            self._batches.close()


class _Run:
    """Supplies the batches of an epoch, of which one may be taken ahead of the loop."""

    def __init__(self, run: Any) -> None:
        self.of = run  # take(seconds), stop()
        self.handed = self.counted = 0  # batches that take() gave, and those that count as delivered
        self._ahead: Any = False  # what take() gives next
        self._one = threading.RLock()

    def take(self) -> Any:
        """Returns a batch, False if none has come yet, None after the last one."""
        with self._one:
            taken, self._ahead = self._ahead, False
            if taken is False:
                taken = self.of.take(_WAIT)
            self.handed += bool(taken)
            return taken

    def is_over(self) -> bool:
        """Whether the last batch is delivered. Waits for the next one."""
        while self._ahead is False:
            with self._one:
                try:
                    if self._ahead is False:
                        self._ahead = self.of.take(_WAIT)
                except RunError:  # the loop gets it
                    return False
        return self._ahead is None and self.handed == self.counted


class Epochs(arguments.Reopened):
    """A `for` is an epoch from its beginning. Only load_state_dict() goes on in the middle of one,
    for the next `for`.

    An epoch counts when a batch of it was taken: after one that was broken off, by `break`, an
    exception, or because its iterator was dropped, comes the next. One is under way at a time:
    another iterator breaks it off, and the earlier one raises RunError when it is used again.
    """

    _STATE: str  # kind of a saved state

    _epoch = 0
    _delivered = 0  # samples of the epoch taken so far
    _resumes = False  # whether the next `for` continues the epoch
    _before: Tuple[Tuple[int, int], ...] = ()  # epoch and delivered before each of the last batches taken
    _run: Optional[_Run] = None  # of the current epoch
    _broken_off_by = ""
    _waits: Optional[Waits] = None

    def _begin(self) -> Any:
        """Begins a run of the epoch, after the samples already delivered; it has take(seconds) and stop()."""
        raise NotImplementedError

    def _batch(self, run: Any, taken: Any) -> Batch:
        """The batch for what the run gave; counts its samples as delivered."""
        raise NotImplementedError

    def _end(self, run: Any) -> None:
        """Called when all batches of an epoch were taken."""

    def _order_settings(self) -> Dict[str, Any]:
        """By name, the settings that decide which samples an epoch has and their order: numbers and
        texts, and digests of longer values."""
        raise NotImplementedError

    def _list_settings(self, epoch: int, loads: bool) -> Dict[str, Any]:
        """Further such settings, which count in the middle of that epoch."""
        return {}

    def _most(self, epoch: int) -> Optional[int]:
        """The number of samples of an epoch, for all ranks together, where it is known."""
        return None

    def __iter__(self) -> Iterator[Batch]:
        return _Batches(self._go())

    def _go(self) -> Iterator[Batch]:
        self._break_off("another iterator of it has begun, and it has one epoch under way at a "
                        "time; make a second one for two at once")
        epoch = self._next_epoch()
        if epoch != self._epoch:
            self._epoch, self._delivered = epoch, 0
        waits = self._waits = Waits(self._epoch)
        run = self._run = _Run(self._begin())
        try:
            while True:
                taken = run.take() if self._run is run else None
                if self._run is not run:
                    raise RunError(f"this epoch of the {type(self).__name__} was broken off: "
                                   f"{self._broken_off_by}")
                if taken is None and self._resumes:  # nothing is left of the epoch of the state
                    run.of.stop()
                    self._epoch, self._delivered, self._resumes = self._epoch + 1, 0, False
                    run = self._run = _Run(self._begin())
                    continue
                if taken is None:
                    break
                if taken is False:  # nothing yet; Python handles its signals here
                    continue
                self._before = (*self._before, (self._epoch, self._delivered))[-MOST_AHEAD:]
                batch = self._batch(run.of, taken)
                run.counted += 1
                self._resumes = False
                waits.comes(len(batch["file"]))
                yield batch
                waits.asks()
            self._end(run.of)
            self._epoch, self._delivered, self._resumes = self._epoch + 1, 0, False
        finally:
            run.of.stop()
            if self._run is run:
                self._run = None

    def _next_epoch(self) -> int:
        """The number of the epoch under way, else that of the next `for`."""
        is_over = self._run is None and self._delivered > 0 and not self._resumes
        return self._epoch + is_over

    def _break_off(self, why: str) -> None:
        run, self._run = self._run, None
        if run is not None:
            self._broken_off_by = why
            run.of.stop()

    def close(self) -> None:
        """Breaks off the epoch under way."""
        self._break_off("close() was called")

    @property
    def epoch(self) -> int:
        """The number of the epoch that is under way or was broken off, else of the next one."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next `for` run this epoch, from its beginning."""
        self._go_to(arguments.integer("epoch", epoch), 0, "set_epoch() was called")

    def state_dict(self, ahead: int = 0) -> Dict[str, Any]:
        """The position in training: after the last batch taken or, if that was the last one of its epoch, at the beginning of the
        next epoch. Waits for the next batch, to know which. Some hundred bytes. ahead: how many of the batches taken the program
        has not trained on, so that they follow again; up to 64."""
        run, epoch, delivered = self._run, self._epoch, self._delivered
        ahead = min(arguments.integer("ahead", ahead, 0, MOST_AHEAD), len(self._before))
        if ahead:
            epoch, delivered = self._before[-ahead]
        elif run is not None and delivered and run.is_over() and self._run is run:
            return {"epoch": epoch + 1, "delivered": 0, self._STATE: self._order_settings(), "order": _ORDER}
        deciding = self._order_settings() | (self._list_settings(epoch, False) if delivered else {})
        return {"epoch": epoch, "delivered": delivered, self._STATE: deciding, "order": _ORDER}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next `for` continue after the last batch of that state: the same samples in the
        same order follow, to the end of that epoch, or the next epoch where nothing is left of it.
        Raises ValueError, with what has changed, if other samples would follow."""
        keys = ("epoch", "delivered", self._STATE)
        state = arguments.state(state, keys, f"a {type(self).__name__}")
        epoch = arguments.integer("epoch of a state", state["epoch"])
        delivered = arguments.integer("delivered of a state", state["delivered"])
        if state.get("order") != _ORDER:
            saver = "another version of melflow" if "order" in state else "melflow 0.1"
            raise ValueError(f"the state is of {saver}, in which a seed gives another order of samples, so others would follow: go on with the version that "
                             f"saved it, or begin its epoch anew by set_epoch({epoch})")
        there = state[self._STATE]
        here = self._order_settings() | (self._list_settings(epoch, True) if delivered else {})
        differences = _differences(there, here)
        if differences:
            raise ValueError(f"the state is of another {type(self).__name__}, so other samples "
                             f"would follow: {'; '.join(differences)}. Make it as it was, or use "
                             "set_epoch()")
        most = self._most(epoch)
        if most is not None and delivered > most:
            raise ValueError(f"delivered of a state is at most {most}, the samples of an epoch, "
                             f"not {delivered}")
        self._go_to(epoch, delivered, "load_state_dict() was called")

    def _go_to(self, epoch: int, delivered: int, why: str) -> None:
        self._break_off(why)
        self._epoch, self._delivered, self._resumes, self._before = epoch, delivered, delivered > 0, ()

    def _position(self) -> Dict[str, Any]:
        return {"_epoch": self._epoch, "_delivered": self._delivered, "_resumes": self._resumes}

    @property
    def waits(self) -> Optional[Dict[str, Any]]:
        """Who waited for whom in the epoch under way, or the last one: `batches`, their number; `first_batch_s`, in which the run
        started; then `waiting_for_batches`, which a faster loader would save, and `in_program`, each with `seconds` in all, `p50_ms` and `p99_ms` of a step.
        None before the first epoch."""
        return None if self._waits is None else self._waits.figures()

    def headroom(self, steps: int, memory: str = "1GiB") -> Headroom:
        """What the program would gain from a loader that costs nothing:

            h = loader.headroom(200)
            for batch in h:
                train(batch)
            print(h)    # the loader holds the loop back; without its cost the loop would be 1.9 times as fast: ...

        Gives `steps` batches of an epoch, fewer where it is shorter, then as many from memory, where at most `memory` of them is held; the others
        are those repeated. The next `for` is the next epoch."""
        return Headroom(self, arguments.integer("steps", steps, 1), arguments.byte_count("memory", memory))

    def watch_ranks(self, seconds: float = 60) -> RankWatch:
        """Watches the ranks of torch.distributed:

            with loader.watch_ranks(60) as ranks:
                for batch in loader:
                    train(batch)
                print(ranks)    # rank 3 holds the others up: it waited 41.2 s for batches, the others 0.31 to 2.2 s

        A rank that waits for a batch, or is in one step of the program, for `seconds` warns, with what each rank does. All ranks watch."""
        return rank_watch.watch(self, seconds)

    def metrics(self, run: Optional[str] = None) -> str:
        """Figures of the epoch under way, or the last one, as text that Prometheus reads, for the textfile collector of its node exporter. No name of a
        recording is in it. run: their label `run`, which tells loaders, such as those of several ranks, apart that one collector reads."""
        waits = self._waits or Waits()
        figures = waits.figures()
        lines = [("epoch", "gauge", "Number of the epoch", waits.epoch),
                 ("samples", "gauge", "Samples of the epoch that were taken, since it began here", waits.samples),
                 ("batches", "gauge", "Batches of the epoch that were taken", figures["batches"]),
                 ("first_batch_seconds", "gauge", "Until the first batch of the epoch", figures["first_batch_s"]),
                 ("waiting_for_batches_seconds", "gauge", "The program waited for batches in the epoch, without the first", figures["waiting_for_batches"]["seconds"]),
                 ("in_program_seconds", "gauge", "The program worked on batches in the epoch", figures["in_program"]["seconds"])]
        label = "" if run is None else '{run="' + _escaped(arguments.text("run", run)) + '"}'
        return "".join(f"# HELP melflow_loader_{name} {text}\n# TYPE melflow_loader_{name} {kind}\nmelflow_loader_{name}{label} {value:.10g}\n"
                       for name, kind, text, value in lines)

    def as_torch(self, ahead: int = 0, steps: Optional[int] = None) -> Any:
        """A torch.utils.data.IterableDataset whose items are batches, for trainers and DataLoader(..., batch_size=None). It has set_epoch(),
        state_dict() and load_state_dict(), and a length where the loader has one.

        ahead: batches that the trainer takes before it has trained on the one before, which its state leaves out: 1 for Lightning where there is
        no length. steps: every `for` gives as many batches, from where the one before ended, through as many epochs as that takes; so
        it has a length. Its state counts those steps, too."""
        return as_torch(self, ahead, steps)
