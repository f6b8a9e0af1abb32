"""Batches and samples for torch.utils.data.DataLoader, where a framework insists on one."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Mapping, Optional

from . import arguments

MOST_AHEAD = 64  # batches


def as_torch(batches: Any, ahead: int = 0, steps: Optional[int] = None) -> Any:
    """A torch.utils.data.IterableDataset whose items are the batches of a loader: see Epochs.as_torch."""
    from torch.utils.data import IterableDataset, get_worker_info

    ahead = arguments.integer("ahead", ahead, 0, MOST_AHEAD)
    steps = None if steps is None else arguments.integer("steps", steps, 1)

    class Batches(IterableDataset):  # type: ignore[misc]
        _epoch = _taken = 0  # the number of the `for`, and batches taken in it
        _given: Optional[int] = None  # what set_epoch() was called with, until the next `for`
        _is_loaded = False  # load_state_dict() was called since the last `for`
        _apart = 0  # the loader's number of an epoch less that of the trainer
        _is_over = False  # all batches were taken
        _under_way: Optional[Iterator[Dict[str, Any]]] = None  # an epoch of the loader that goes on in the next `for`

        def __iter__(self) -> Iterator[Dict[str, Any]]:
            if get_worker_info() is not None:
                raise RuntimeError("melflow's batches are made by dedicated threads, without worker processes: "
                                   "DataLoader(..., batch_size=None, num_workers=0)")
            given, self._given = self._given, None
            if given is not None and self._is_loaded and given <= batches.epoch:
                self._apart = batches.epoch - given
            elif given is not None and steps is None:
                self._apart = 0 if self._is_loaded else self._apart
                batches.set_epoch(given + self._apart)
            self._is_loaded = False
            return self._whole() if steps is None else self._steps(steps)

        def _whole(self) -> Iterator[Dict[str, Any]]:
            self._taken, self._is_over = 0, False
            for batch in batches:
                self._taken += 1
                yield batch
            self._is_over = True

        def _steps(self, steps: int) -> Iterator[Dict[str, Any]]:
            if self._taken == steps:
                self._epoch, self._taken = self._epoch + 1, 0
            epoch, self._is_over = self._epoch, False
            while self._taken < steps and self._epoch == epoch:
                begins = self._under_way is None
                if self._under_way is None:
                    self._under_way = iter(batches)
                batch = next(self._under_way, None)
                if batch is None:
                    self._under_way = None
                    if begins:
                        raise RuntimeError("an epoch of the loader has no batch, so there are none to make steps of")
                    continue
                self._taken += 1
                yield batch
            self._is_over = self._taken == steps

        def __len__(self) -> int:
            return len(batches) if steps is None else steps  # TypeError where the loader has none

        def set_epoch(self, epoch: int) -> None:
            """The trainer's number of the next epoch. After load_state_dict() the loader goes on where the state was, by whatever
            number the trainer calls that epoch, unless the trainer ended it early and is at a later one."""
            epoch = arguments.integer("epoch", epoch)
            here = self._epoch + (self._taken == steps)
            if steps is not None and not self._is_loaded and epoch + self._apart != here:
                raise ValueError(f"epochs of {steps} steps follow each other, so the next one is {here - self._apart}, not {epoch}; to go "
                                 "on with a training, use load_state_dict() of the state that was saved with it")
            if steps is not None:
                self._apart = here - epoch
            else:
                self._given = epoch

        def state_dict(self) -> Dict[str, Any]:
            """The position of the loader, for trainers and for torchdata's StatefulDataLoader."""
            untrained = 0 if self._is_over else min(ahead, self._taken)
            state = batches.state_dict(untrained)
            return state if steps is None else {"epoch": self._epoch, "taken": self._taken - untrained, "steps": steps, "loader": state}

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            if steps is not None:
                state = arguments.state(state, ("epoch", "taken", "steps", "loader"), "as_torch(steps=...)")
                if state["steps"] != steps:
                    raise ValueError(f"the state is of epochs of {state['steps']} steps, and here they have {steps}")
                epoch = arguments.integer("epoch of a state", state["epoch"])
                taken = arguments.integer("taken of a state", state["taken"], 0, steps)
            batches.load_state_dict(state if steps is None else state["loader"])
            self._epoch, self._taken = (0, 0) if steps is None else (epoch, taken)
            self._under_way, self._given, self._is_over, self._is_loaded = None, None, False, True

        def __reduce__(self) -> tuple:
            return as_torch, (batches, ahead, steps)

    return Batches()
