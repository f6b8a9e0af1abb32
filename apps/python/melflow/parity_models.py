"""melflow's rows by a model's own file, for comparison with the class that wrote it."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Union

import numpy as np

from ._melflow import mel_settings, model_nodes
from .parity_rows import FLOAT_SHARE, UNLIMITED, Ours, Stage, Theirs, chain


class Samples:
    """values: [rows, columns] of a front end that gives samples, not mel rows."""

    def __init__(self, nodes: List[Stage], rate: int, samples: np.ndarray) -> None:
        rows, _, _ = chain(*nodes).rows_of_samples(UNLIMITED, None, samples, rate)
        self.values = rows.reshape(len(rows), -1).astype(float)

    def limits(self, theirs: Theirs, tolerance: Mapping[str, Any]) -> np.ndarray:
        """The largest allowed difference of each value from the library's: what single precision makes of sums over a recording."""
        size = np.abs(theirs.values)
        return FLOAT_SHARE * size.max(initial=0.0) + tolerance["rtol"] * size


class Model:
    """What a model's file stands for: the value of `preset` as {"file": FOLDER, KEY: VALUE}. title: the class. said: what is assumed."""

    def __init__(self, preset: Mapping[str, Any]) -> None:
        of = json.loads(model_nodes(json.dumps(preset)))
        self._keys = {key: value for key, value in preset.items() if key not in ("file", "ignore")}
        self._nodes: List[Stage] = [(stage, options) for stage, options in of["nodes"]]
        self.title, self.rate, self.said = of["title"], of["sample_rate"], of["said"]
        self._at = next(i for i, (stage, _) in enumerate(self._nodes) if stage in ("mel", "samples"))
        self.preset = self._nodes[self._at][1].get("preset", "")
        if of["window"]:  # longer recordings are cut, shorter ones filled up
            self._nodes.insert(self._at, ("fit_samples", {"length": of["window"]}))
            self._at += 1

    def question(self) -> Dict[str, Any]:
        """What parity_extractor.py needs to know: the keys beside the file, the rate, and the columns of a row."""
        return {"keys": self._keys, "sample_rate": self.rate, "columns": self.rows("float", np.zeros(2 * self.rate, np.float32)).values.shape[1]}

    def rows(self, precision: str, samples: np.ndarray) -> Union[Ours, Samples]:
        stage, options = self._nodes[self._at]
        if stage == "samples":
            return Samples(self._nodes, self.rate, samples)
        settings = json.loads(mel_settings(json.dumps(options), ""))
        return Ours(settings, precision, samples, self._nodes[self._at + 1:], self._nodes[:self._at] or [("segment", {})])
