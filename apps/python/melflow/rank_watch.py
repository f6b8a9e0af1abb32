"""Which rank of a training holds the others up, and what each waits for when one stops."""

from __future__ import annotations

import json
import threading
import warnings
from typing import Any, Dict, List, Optional

from . import arguments, waits


class RankWatch:
    """Each rank writes what it does into the store of torch.distributed, from a thread; so it is known without collective calls, and of
    ranks that make none any more. Made by Epochs.watch_ranks."""

    def __init__(self, loader: Any, seconds: float, rank: int, world_size: int, store: Any) -> None:
        self._loader, self._rank, self._world_size, self._store = loader, rank, world_size, store
        self._seconds = arguments.seconds("seconds", seconds)
        self._warned: Any = None  # the step of which it has warned
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._go, name="melflow ranks", daemon=True)

    def __enter__(self) -> "RankWatch":
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        self._stops.set()
        if self._thread.is_alive():
            self._thread.join()

    def _go(self) -> None:
        while not self._stops.wait(min(5.0, self._seconds / 4)):
            try:
                self.look()
            except Exception as error:  # the store ends with the process that has it
                warnings.warn(f"ranks are no longer watched: {error}", RuntimeWarning, stacklevel=2)
                return

    def _does(self) -> Dict[str, Any]:
        of: Optional[waits.Waits] = self._loader._waits
        if of is None or self._loader._run is None:
            return {"rank": self._rank, "does": "no epoch", "epoch": self._loader.epoch, "batches": 0, "for_s": 0.0, "waited_s": of.waited() if of else 0.0}
        return {"rank": self._rank, "does": "program" if of.in_program else "waiting", "epoch": of.epoch, "batches": of.count(),
                "for_s": of.lap_so_far(), "waited_s": of.waited()}

    def _write(self) -> Dict[str, Any]:
        mine = self._does()
        self._store.set(str(self._rank), json.dumps(mine))
        return mine

    def look(self) -> None:
        """Writes what this rank does, and warns where that takes long. The thread calls it."""
        mine = self._write()
        step = mine["does"], mine["epoch"], mine["batches"]
        if mine["does"] == "no epoch" or mine["for_s"] < self._seconds or step == self._warned:
            return
        self._warned = step
        others = "; ".join(map(_said, (other for other in self.ranks() if other["rank"] != self._rank)))
        warnings.warn(f"{_said(mine)}; {others}", RuntimeWarning, stacklevel=2)

    def ranks(self) -> List[Dict[str, Any]]:
        """What each rank did when it last wrote: `rank`, `does` ("waiting" for a batch, "program", "no epoch", "not begun"), `epoch`, `batches` taken of it,
        `for_s`, and `waited_s` for all batches of the epoch after the first one."""
        self._write()
        out = []
        for rank in range(self._world_size):
            key = str(rank)
            out.append(json.loads(self._store.get(key)) if self._store.check([key]) else
                       {"rank": rank, "does": "not begun", "epoch": 0, "batches": 0, "for_s": 0.0, "waited_s": 0.0})
        return out

    def __str__(self) -> str:
        by_wait = sorted(self.ranks(), key=lambda one: one["waited_s"])
        most = by_wait[-1]
        if len(by_wait) < 2:
            return f"there is one rank, which waited {most['waited_s']:.3g} s for batches"
        least, next_one = by_wait[0]["waited_s"], by_wait[-2]["waited_s"]
        if most["waited_s"] > 2 * next_one + 0.1:
            return f"rank {most['rank']} holds the others up: it waited {most['waited_s']:.3g} s for batches, the others {least:.3g} to {next_one:.3g} s"
        return f"no rank holds the others up: they waited {least:.3g} to {most['waited_s']:.3g} s for batches"


def _said(one: Dict[str, Any]) -> str:
    if one["does"] == "waiting":
        return f"rank {one['rank']} has waited {one['for_s']:.0f} s for batch {one['batches']} of epoch {one['epoch']}"
    if one["does"] == "program":
        return f"rank {one['rank']} has been in the program for {one['for_s']:.0f} s after batch {one['batches'] - 1} of epoch {one['epoch']}"
    return f"rank {one['rank']} has {'no epoch under way' if one['does'] == 'no epoch' else 'not begun'}"


def watch(loader: Any, seconds: float) -> RankWatch:
    """For torch.distributed, which has to be initialized."""
    try:
        import torch.distributed as dist
        is_there = dist.is_available() and dist.is_initialized()
    except ImportError:
        is_there = False
    if not is_there:
        raise RuntimeError("watch_ranks needs torch.distributed with its processes: call torch.distributed.init_process_group() before")
    store = dist.PrefixStore("melflow/ranks", dist.distributed_c10d._get_default_store())
    return RankWatch(loader, seconds, dist.get_rank(), dist.get_world_size(), store)
