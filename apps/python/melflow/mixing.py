"""How much of each source an epoch has: weights, flattened to shares, and the report on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

import numpy as np

from . import arguments
from ._melflow import mixed_order

if TYPE_CHECKING:
    from .rows import Rows

# By name: a weight, "size", or a weight and the weights of what is in it.
Weights = Mapping[str, Any]
_ENDS = "first, last or a number of samples"
_MOST_SAMPLES = 2**30  # of an epoch


class Mix:
    """Sources with weights, for batches(mix=...): each has its share of the samples at every place of an epoch.

    weights: of each source, {"libri": 0.7, "calls": 0.3}; only their relation counts. "size" is as many as the source has (by `unit`); 0 leaves
      it out. A pair (weight, {...}) has the weights within a group: {"speech": (0.7, {"libri": 2, "vox": 1}), "calls": 0.3}.
      By epoch: a dict of such by the epoch from which on they apply, {0: {...}, 10: {...}}, or a function of the epoch's number.
    column: the text of recordings that says which source each is of: "source" of melflow.join, "label", "split", or one of rows.columns.
    unit: what weights are shares of: "samples" or "seconds".
    power: of weights, within each group; 0.5 with "size" is sampling with temperature 2.
    ends: "first": the epoch ends with the last sample of the source that has its last one first; "last": when each has had all; or after
      a number of samples.
    repeat: whether a source begins again, in another order, after its last sample; else the others go on without it.
    """

    def __init__(self, weights: "Weights | Mapping[int, Weights] | Callable[[int], Weights]", *, column: str = "source",
                 unit: str = "samples", power: float = 1.0, ends: "str | int" = "first", repeat: bool = True) -> None:
        self.weights = weights
        self.column = arguments.text("column", column)
        if unit not in ("samples", "seconds"):
            raise ValueError(f"mix: unit is samples or seconds, not {arguments.shown(unit)}")
        if not isinstance(power, (int, float)) or isinstance(power, bool) or not 0 <= power <= 100:
            raise ValueError(f"mix: power is a number from 0 to 100, not {arguments.shown(power)}")
        if isinstance(ends, str) and ends not in ("first", "last"):
            raise ValueError(f"mix: ends is {_ENDS}, not {ends!r}")
        self.unit, self.power, self.repeat = unit, float(power), arguments.flag("mix: repeat", repeat)
        self.ends: Union[str, int] = ends if isinstance(ends, str) else arguments.integer(f"mix: ends ({_ENDS})", ends, 1, _MOST_SAMPLES)
        self._table: Optional[Mapping[int, Weights]] = None
        if isinstance(weights, Mapping) and weights and all(isinstance(key, (int, np.integer)) for key in weights):
            if 0 not in weights:
                raise ValueError(f"mix: weights by epoch begin with epoch 0, not {min(weights)}")
            self._table = {int(epoch): of for epoch, of in weights.items()}  # type: ignore[misc]
        elif not callable(weights) and (not isinstance(weights, Mapping) or not weights):
            raise TypeError("mix: weights are a dict by source, such as {'libri': 0.7, 'calls': 0.3}, a dict of such by epoch, or a "
                            f"function of the epoch's number, not {arguments.shown(weights)}")

    def shares(self, epoch: int, sizes: Mapping[str, float]) -> Dict[str, float]:
        """The share of each source in an epoch; sizes: what each has. Raises ValueError where weights and sources differ."""
        weights: Any = self.weights
        if self._table is not None:
            weights = self._table[max(first for first in self._table if first <= epoch)]
        elif callable(weights):
            weights = weights(epoch)
        out: Dict[str, float] = {}
        self._flatten(weights, 1.0, "mix", sizes, out)
        missing = [name for name in sizes if name not in out]
        if missing:
            raise ValueError(f"mix: no weight is given for the {self.column} {_named(missing)}; give 0 for what is to be left out")
        return {name: out[name] for name in sorted(out)}

    def _flatten(self, weights: Any, share: float, where: str, sizes: Mapping[str, float], out: Dict[str, float]) -> None:
        if not isinstance(weights, Mapping) or not weights:
            raise TypeError(f"{where}: weights are a dict by source, such as {{'libri': 0.7, 'calls': 0.3}}, not {arguments.shown(weights)}")
        own = [(name, *self._weight(name, of, f"{where}: {name}", sizes)) for name, of in weights.items()]
        total = sum(weight for _, weight, _ in own)
        if not total > 0:
            raise ValueError(f"{where}: all weights are 0, so nothing would come; give one that is more")
        for name, weight, within in own:
            if within is not None:
                self._flatten(within, share * weight / total, f"{where}: {name}", sizes, out)
            elif name in out:
                raise ValueError(f"{where}: {name}: has two weights")
            else:
                out[name] = share * weight / total

    def _weight(self, name: Any, of: Any, where: str, sizes: Mapping[str, float]) -> Tuple[float, Optional[Weights]]:
        within: Optional[Weights] = None
        if isinstance(of, (tuple, list)) and len(of) == 2:
            of, within = of
        elif name not in sizes:
            raise ValueError(f"mix: there is no {self.column} {name!r}. {arguments.meant(str(name), list(sizes))}")
        if of == "size" and isinstance(of, str):
            weight = sum(sizes.get(leaf, 0.0) for leaf in _leaves(name, within))
        elif isinstance(of, (int, float, np.number)) and not isinstance(of, (bool, np.bool_)) and math.isfinite(of) and of >= 0:
            weight = float(of)
        else:
            raise ValueError(f'{where}: a weight is a number of 0 or more, "size", or a pair of it and the weights within, not {arguments.shown(of)}')
        return (weight**self.power if weight else 0.0), within

    def settings(self) -> str:
        """What decides about the order beside the shares."""
        return f"{self.unit} by {self.column}, ends {self.ends}, {'repeats' if self.repeat else 'repeats nothing'}"

    def __repr__(self) -> str:
        return f"Mix({self.weights!r}, column={self.column!r}, unit={self.unit!r}, power={self.power}, ends={self.ends!r}, repeat={self.repeat})"


def _leaves(name: Any, within: Any) -> Iterable[Any]:
    if not isinstance(within, Mapping):
        return [name]
    return [leaf for key, of in within.items()
            for leaf in _leaves(key, of[1] if isinstance(of, (tuple, list)) and len(of) == 2 else None)]


def _named(names: List[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


class Mixed:
    """The order of an epoch: `samples`, by number; `shares` asked for; and of each source after how many samples it had `ended`, 0: it had not."""

    def __init__(self, samples: np.ndarray, shares: Dict[str, float], ended: Dict[str, int]) -> None:
        self.samples, self.shares, self.ended = samples, shares, ended


class Sources:
    """The sources of rows by a mix, and the order of their samples in an epoch.

    files: the recordings that are used, in the order of their rows; counts: the rows or windows of each; together: as RowLoader._samples_together."""

    def __init__(self, given: "Mix | Weights", rows: "Rows", files: np.ndarray, counts: np.ndarray, is_ragged: bool, shuffle: bool, seed: int,
                 together: Callable[[np.ndarray, float], Optional[Tuple[np.ndarray, np.ndarray, int]]]) -> None:
        self.mix = given if isinstance(given, Mix) else Mix(given)
        self._rows, self._counts, self._shuffle, self._seed, self._together = rows, counts, shuffle, seed, together
        by = self.mix.column
        names = [n for n, there in (("label", rows.label_names and rows.labels is None), ("split", rows.split_names)) if there] + list(rows.columns)
        if by not in names:
            raise ValueError(f"mix: recordings have no single {by}, which column names; it is one of: {', '.join(names) or 'none, as they have no label, split or column'}")
        texts = rows._texts(by)
        numbers = {text: i for i, text in enumerate(sorted(set(texts)))}
        of_files = np.fromiter((numbers[texts[i]] for i in files), np.int64, len(files))
        of_samples = of_files if is_ragged else np.repeat(of_files, counts)
        self._files = {text: np.flatnonzero(of_files == i) for text, i in numbers.items()}
        self.samples = {text: np.flatnonzero(of_samples == i) for text, i in numbers.items()}
        self._lengths = counts if is_ragged else counts[:0]  # of samples [rows]
        self._made: Optional[Tuple[int, Mixed]] = None

    def order(self, epoch: int) -> Mixed:
        if self._made is None or self._made[0] != epoch:
            self._made = epoch, self._order(epoch)
        return self._made[1]

    def _is_by_rows(self) -> bool:
        return self.mix.unit == "seconds" and len(self._lengths) > 0  # windows are equally long

    def _shares(self, epoch: int) -> Dict[str, float]:
        sizes = {name: float(self._lengths[samples].sum() if self._is_by_rows() else len(samples)) for name, samples in self.samples.items()}
        shares = self.mix.shares(epoch, sizes)
        for name, share in shares.items():
            if share > 0 and not sizes[name]:
                raise ValueError(f"mix: {name} has no samples: {self._why_empty(name)}. Give it the weight 0, or see to its recordings")
        return shares

    def _why_empty(self, name: str) -> str:
        of = [i for i, text in enumerate(self._rows._texts(self.mix.column)) if text == name]
        gone = [i for i in of if self._rows.count[i] == 0]
        if len(gone) < len(of):
            return f"none of its {len(of)} recordings is in what `split` and `where` take"
        reason = self._rows._reasons().get(self._rows.path[gone[0]])
        return f"all of its {len(of)} recordings gave no rows; the first: {self._rows.path[gone[0]]}" + (f": {reason}" if reason else "")

    def _order(self, epoch: int) -> Mixed:
        mix, shares = self.mix, self._shares(epoch)
        drawn = {name: {"samples": self.samples[name], "weight": share} for name, share in shares.items() if share > 0}
        for name, of in drawn.items() if self._shuffle else ():
            together = self._together(self._files[name], shares[name])
            if together is not None:
                of.update(zip(("together", "rows_together", "window"), together))
        count = mix.ends if isinstance(mix.ends, int) else 0
        there = sum(len(self.samples[name]) for name in drawn)
        if there < count and not mix.repeat:
            raise ValueError(f"mix: ends after {count} samples, and without repetition there are {there}; take repeat=True or fewer")
        lengths = self._lengths if self._is_by_rows() else self._lengths[:0]
        until = {name: len(self.samples[name]) / shares[name] for name in drawn}  # about how many samples, until each has had its last one
        least = max(until, key=lambda name: until[name])
        if mix.ends == "last" and mix.repeat and until[least] > _MOST_SAMPLES:
            raise ValueError(f"mix: an epoch would have some {until[least]:.3g} samples, more than {_MOST_SAMPLES}, until {least}, whose share is "
                             f"{shares[least]:.3g}, has had all of its own; give it a larger weight, or `ends` a number of samples")
        samples, ended = mixed_order(list(drawn.values()), lengths, str(mix.ends), count, mix.repeat, self._shuffle, self._seed, epoch)
        return Mixed(samples, shares, dict(zip(drawn, ended.tolist())))

    def report(self, epoch: int) -> Dict[str, Dict[str, Any]]:
        """By source, its share asked for and reached, and how much of it came."""
        order, lengths, per_second = self.order(epoch), self._lengths, self._rows.rows_per_second
        of = np.empty(sum(map(len, self.samples.values())), np.int64)
        for i, samples in enumerate(self.samples.values()):
            of[samples] = i
        came = of[order.samples]
        counts = np.bincount(came, minlength=len(self.samples))
        rows = np.bincount(came, lengths[order.samples] if len(lengths) else None, len(self.samples))
        reached = rows if self._is_by_rows() else counts
        out: Dict[str, Dict[str, Any]] = {}
        for i, (name, samples) in enumerate(self.samples.items()):
            out[name] = {"asked": order.shares[name], "reached": float(reached[i] / reached.sum()), "samples": int(counts[i]),
                         "passes": float(counts[i] / max(1, len(samples))), "ended_after": order.ended.get(name) or None}
            if per_second and len(lengths):
                out[name]["seconds"] = float(rows[i] / per_second)
        return out
