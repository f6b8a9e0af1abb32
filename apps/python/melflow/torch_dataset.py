"""Batches for torch.utils.data.DataLoader, where a framework insists on one."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator


def as_torch(batches: Iterable[Dict[str, Any]]) -> Any:
    """A torch.utils.data.IterableDataset whose items are batches, for DataLoader(..., batch_size=None)."""
    from torch.utils.data import IterableDataset, get_worker_info

    class Batches(IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Iterator[Dict[str, Any]]:
            if get_worker_info() is not None:
                raise RuntimeError("melflow's batches are made by dedicated threads, without worker processes: "
                                   "DataLoader(..., batch_size=None, num_workers=0)")
            return iter(batches)

        def __len__(self) -> int:
            return len(batches)  # type: ignore[arg-type]  # TypeError where the loader has none

        def state_dict(self) -> Dict[str, Any]:
            """Of the loader, for torchdata's StatefulDataLoader."""
            return batches.state_dict()  # type: ignore[attr-defined,no-any-return]

        def load_state_dict(self, state: Dict[str, Any]) -> None:
            batches.load_state_dict(state)  # type: ignore[attr-defined]

        def __reduce__(self) -> tuple:
            return as_torch, (batches,)

    return Batches()
