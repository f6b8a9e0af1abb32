"""The rows of several corpora as those of one."""

from __future__ import annotations

import warnings
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ._melflow import JoinedRows as _JoinedRows
from .rows import Rows


class JoinedRows(Rows):
    """Rows by number of several sources, the recordings of the first one first. columns["source"] is the name of each recording's source, for
    `where`, and for `mix` of batches().

    sources: by name, what melflow.open gave. Labels and splits of the same name are one. normalize=True scales
    each source by its own statistics. Raises ValueError, with the names of the sources, where their rows are of different kinds.
    """

    def __init__(self, sources: "Mapping[str, Rows]") -> None:
        self.sources: Dict[str, Rows] = dict(sources)
        parts = list(self.sources.values())
        first = parts[0]
        for name, of in self.sources.items():
            self._check_alike(next(iter(self.sources)), first, name, of)
        self._reader = _JoinedRows([of._reader for of in parts], np.array([len(of) for of in parts], np.int64))
        rows = np.cumsum([0] + [len(of) for of in parts])
        self.name, self.unit, self.dtype, self.is_ragged = first.name, first.unit, first.dtype, first.is_ragged
        self.shape = (int(rows[-1]), *first.shape[1:])
        self.offset = np.concatenate([of.offset + before for of, before in zip(parts, rows)])
        self.count, self.status = (np.concatenate([getattr(of, name) for of in parts]) for name in ("count", "status"))
        self.path = [path for of in parts for path in of.path]
        self.label_names, self.label = self._numbered(parts, "label")
        self.split_names, self.split = self._numbered(parts, "split")
        if all(of.target is not None for of in parts):
            self.target = np.concatenate([of.target for of in parts if of.target is not None])
        names = dict.fromkeys(name for of in parts for name in of.columns)
        self.columns = {name: [text for of in parts for text in of.columns.get(name, [""] * len(of.path))] for name in names}
        self.columns["source"] = [name for name, of in self.sources.items() for _ in of.path]
        self.rows_per_second = first.rows_per_second if all(of.rows_per_second == first.rows_per_second for of in parts) else 0.0
        fingerprints = {of.attributes.get("feature_fingerprint") for of in parts}
        self.attributes = {"rows": self.name, "feature_fingerprint": fingerprints.pop() if len(fingerprints) == 1 else None}
        if all(of.mean is not None and not of.is_normalized for of in parts):
            self.statistics_by, self.group_names = "source", list(self.sources)
            self.group_mean, self.group_std = (np.array([getattr(of, name) for of in parts]) for name in ("mean", "std"))
            self.mean, self.std = self.group_mean[0], self.group_std[0]  # used for no recording, as each has a source
        self._batch_workers = max(of._batch_workers for of in parts)
        self._firsts = np.concatenate([getattr(of, "_firsts", np.arange(len(of.path))) + before
                                       for of, before in zip(parts, np.cumsum([0] + [len(of.path) for of in parts]))])
        # Where one has more rows than its store keeps, the order is that for the smallest such store.
        self._kept_rows = min((of._kept_rows for of in parts if of._kept_rows is not None and of._kept_rows < len(of)), default=None)
        self._order()

    @property
    def losses(self) -> Dict[str, str]:
        """Path and reason of recordings that could not be read."""
        return {path: reason for of in self.sources.values() for path, reason in getattr(of, "losses", {}).items()}

    def _reasons(self) -> Dict[str, str]:
        return {path: reason for of in self.sources.values() for path, reason in of._reasons().items()}

    def _scaled(self, normalize: Any) -> Dict[str, Any]:
        return {self.name: "source" if normalize is True else normalize}

    @staticmethod
    def _check_alike(first: str, a: Rows, name: str, b: Rows) -> None:
        if not isinstance(b, Rows):
            raise TypeError(f"join: {name}: is {type(b).__name__}; a source is the path of a file or a pipeline, or what melflow.open gives for one")
        if b.labels is not None:
            raise ValueError(f"join: {name}: recordings have several labels each, which cannot be joined; take a column")
        if "source" in b.columns:
            raise ValueError(f"join: {name}: recordings have a column called source, which is the name of each one's corpus here; call it otherwise")
        for what, x, y in (("rows", a.name, b.name), ("shape of a row", a.shape[1:], b.shape[1:]), ("type", a.dtype, b.dtype), ("unit", a.unit, b.unit),
                           ("kind of sample", a.is_ragged, b.is_ragged)):
            if x != y:
                raise ValueError(f"join: the {what} of {first} is {x!r}, and of {name} {y!r}; make both by the same stages")
        mine, theirs = (of.attributes.get("feature_fingerprint") for of in (a, b))
        if mine != theirs:
            warnings.warn(f"join: {first} and {name} were not made by the same stages and options (their feature fingerprints differ), so that equal audio "
                          "may have other rows in them", stacklevel=4)

    @staticmethod
    def _numbered(parts: List[Rows], what: str) -> "Tuple[List[str], Optional[np.ndarray]]":
        """The names of the labels or splits of all parts, and the numbers of their recordings by these; -1 for none."""
        of_each = [getattr(of, f"{what}_names") for of in parts]
        names = list(dict.fromkeys(name for of in of_each for name in of))
        if not names:
            return [], None
        number = {name: i for i, name in enumerate(names)}
        out = []
        for of, own in zip(parts, of_each):
            numbers, table = getattr(of, what), np.array([number[name] for name in own] + [-1], np.int32)
            out.append(np.full(len(of.path), -1, np.int32) if numbers is None or not own else table[numbers])
        return names, np.concatenate(out)

    def __repr__(self) -> str:
        return f"<JoinedRows of {', '.join(self.sources)}: {self.name}, {self.shape} {self.dtype}, {len(self.path)} recordings>"

