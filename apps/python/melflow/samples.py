"""Samples by number, for frameworks that make batches of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Union

import numpy as np

from . import arguments
from .epochs import Batch
from .row_loader import RowLoader, Where

if TYPE_CHECKING:
    from .row_sets import RowSets
    from .rows import Rows


class Samples(arguments.Reopened):
    """A map-style dataset for torch.utils.data.DataLoader, also with worker processes, each of which opens the rows again.

    samples[i] is a dict with the rows of a sample as they are stored, by their name or names, and "label", "path" and so on as in a batch.
    A sample is a row or a recording, as in batches(); a recording has "length", too, and needs DataLoader(..., collate_fn=samples.pad).
    split, where, recordings: as for batches(). batches() needs no workers, and is faster: this is for what insists on a DataLoader with
    a sampler.
    """

    def __init__(self, rows: "Union[Rows, RowSets]", *, split: Optional[str] = None, where: Optional[Where] = None,
                 recordings: Optional[bool] = None) -> None:
        self._loader = RowLoader(rows, 1, split=split, where=where, recordings=recordings, shuffle=False)

    def __len__(self) -> int:
        return self._loader.samples

    def __getitem__(self, at: Any) -> Batch:
        return self._loader._sample(arguments.index("sample", at, len(self)))

    @staticmethod
    def pad(samples: List[Batch]) -> Batch:
        """A batch of torch's tensors of samples of unequal length, with zeros behind the shorter ones."""
        from torch.utils.data import default_collate

        longest = {name: max(len(sample[name]) for sample in samples) for name, value in samples[0].items()
                   if isinstance(value, np.ndarray)}
        return default_collate([sample | {name: np.pad(sample[name], [(0, most - len(sample[name]))] + [(0, 0)] * (sample[name].ndim - 1))
                                          for name, most in longest.items()} for sample in samples])  # type: ignore[no-any-return]
