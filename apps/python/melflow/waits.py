"""Who waits for whom in a training loop, and what it would gain from a loader that costs nothing."""

from __future__ import annotations

import time
from array import array
from typing import Any, Dict, Iterable, Iterator, List, Optional

import numpy as np

from .torch_dataset import as_torch

clock = time.perf_counter


def _figures(times: "array[float]") -> Dict[str, float]:
    """Sum [s], median and 99th percentile [ms]."""
    p50, p99 = np.percentile(times, (50, 99)) * 1e3 if times else (0.0, 0.0)
    return {"seconds": float(sum(times)), "p50_ms": float(p50), "p99_ms": float(p99)}


class Waits:
    """The times of epoch number `epoch`: of the first batch, in which the run starts, then of each step how long the program waited for its batch, and how
    long the loader was not asked for the next one."""

    def __init__(self, epoch: int = 0) -> None:
        self.epoch, self.samples = epoch, 0
        self.first: Optional[float] = None
        self.batches, self.program = array("d"), array("d")
        self._since = clock()

    def _lap(self) -> float:
        since, self._since = self._since, clock()
        return self._since - since

    def comes(self, samples: int = 0) -> None:
        """A batch has come."""
        self.samples += samples
        if self.first is None:
            self.first = self._lap()
        else:
            self.batches.append(self._lap())

    def asks(self) -> None:
        """The program asks for the next one."""
        self.program.append(self._lap())

    @property
    def in_program(self) -> bool:
        """Whether the program has a batch, and has not asked for the next one."""
        return self.count() > len(self.program)

    def count(self) -> int:
        return len(self.batches) + (self.first is not None)

    def lap_so_far(self) -> float:
        return clock() - self._since

    def waited(self) -> float:
        """For batches after the first one, with the one under way."""
        return sum(self.batches) + (0.0 if self.first is None or self.in_program else self.lap_so_far())

    def figures(self) -> Dict[str, Any]:
        return {"batches": self.count(), "first_batch_s": self.first or 0.0,
                "waiting_for_batches": _figures(self.batches), "in_program": _figures(self.program)}


def _size(batch: Dict[str, Any], memory: int) -> int:
    """Bytes of a batch; of bfloat16, whose objects do not tell it, a thirty-second of `memory`."""
    return sum(value.nbytes if isinstance(value, np.ndarray) else _size(value, memory) if isinstance(value, dict) else
               memory // 32 if hasattr(value, "__dlpack__") else 0 for value in batch.values())


class Headroom:
    """Goes `steps` steps with batches as they come, then as many with the same batches from memory: what a loader that costs nothing would give.

    print() says what holds the loop back and what it would gain. cause: "program", "loader" or "both"; gain: how many times as fast the loop would
    be; seconds_per_step, seconds_from_memory; repeated: how often each batch was given from memory (1 where all fit into `memory`)."""

    _WARM = 3  # steps that are not counted, as everything is slower at first

    def __init__(self, epoch: Iterable[Dict[str, Any]], steps: int, memory: int) -> None:
        self._epoch, self.steps, self._memory = epoch, steps, memory
        self.gain = self.seconds_per_step = self.seconds_from_memory = 0.0
        self.cause, self.repeated = "", 0.0

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        kept: List[Dict[str, Any]] = []
        held, waits = 0, Waits()
        epoch = iter(self._epoch)
        live = 0
        for batch in epoch:
            waits.comes()
            size = _size(batch, self._memory)
            if not kept or held + size <= self._memory:
                kept.append(batch)
                held += size
            yield batch
            waits.asks()
            live += 1
            if live == self.steps:
                break
        if hasattr(epoch, "close"):
            epoch.close()
        if live <= 2 * self._WARM:
            raise ValueError(f"headroom: the epoch has {live} batches, and it takes more than {2 * self._WARM} to compare them")
        again = Waits()
        for step in range(live):
            again.comes()
            if step == live - 1:  # after it, who knows how many there are asks for no more
                self._judge(waits, again)
                self.repeated = live / len(kept)
            yield kept[step % len(kept)]
            again.asks()

    def __len__(self) -> int:
        """Where the loader has a length, and an epoch is not resumed."""
        return 2 * min(self.steps, len(self._epoch))  # type: ignore[arg-type]

    def set_epoch(self, epoch: int) -> None:
        self._epoch.set_epoch(epoch)  # type: ignore[attr-defined]

    def as_torch(self) -> Any:
        """A torch.utils.data.IterableDataset of it, for trainers that take no other iterable."""
        return as_torch(self)

    def _judge(self, waits: Waits, again: Waits) -> None:
        # Step i is the batch's wait, which begins when step i - 1 ends, and the program's time for it.
        program = np.array(waits.program[self._WARM:])
        waited = np.array(waits.batches[self._WARM - 1:])[:len(program)]
        self.seconds_per_step = float(program.mean() + waited.mean())
        self.seconds_from_memory = float(np.mean(again.program[self._WARM:]))
        self.gain = self.seconds_per_step / max(self.seconds_from_memory, 1e-9)
        self.cause = "program" if self.gain < 1.1 else "loader" if self.gain > 2 else "both"

    def __str__(self) -> str:
        if not self.cause:
            return "headroom: not measured yet; go through it in a `for` to its end"
        step, alone = 1e3 * self.seconds_per_step, 1e3 * self.seconds_from_memory
        times = f"{self.gain:.2f} times" if self.gain < 100 else "more than 100 times"
        said = {"program": "the program holds the loop back; a loader that costs nothing would gain next to nothing",
                "loader": f"the loader holds the loop back; without its cost the loop would be {times} as fast",
                "both": f"loader and program hold the loop back; without the loader's cost it would be {times} as fast"}[self.cause]
        often = f"; {self.steps} steps took {self.repeated:.1f} times each batch that fitted into memory" if self.repeated > 1 else ""
        return f"{said}: a step takes {step:.3g} ms, with batches from memory {alone:.3g} ms{often}"
