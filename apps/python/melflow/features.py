"""Rows of samples in memory, by the stages that make the rows of files: for serving."""

from __future__ import annotations

import functools
import json
import os
from typing import Any, Mapping, Optional

import numpy as np

from . import arguments
from ._melflow import FeatureChain, RunError


class Features:
    """The stages of a pipeline after its decoder, as a function of samples. It may be called from many threads.

    pipeline: a YAML file, or its text (with a line break in it), that ends in one node of the stage `batches`.
    vars, sets: as --var and --set of the program.

    rows = Features("speech.yaml")(samples, 16000): what the pipeline gives for a file of these samples, bit for bit.
    """

    def __init__(self, pipeline: "os.PathLike[str] | str", *, vars: Optional[Mapping[str, Any]] = None,
                 sets: Optional[Mapping[str, Any]] = None) -> None:
        name = os.fspath(pipeline)
        text = name if "\n" in name else ""
        self._chain = FeatureChain("pipeline" if text else name, text, {k: str(v) for k, v in (vars or {}).items()},
                                   {k: str(v) for k, v in (sets or {}).items()})

    def __call__(self, samples: Any, sample_rate: int) -> np.ndarray:
        """samples: [samples] of one channel, int16, or float32 with 1 as full scale. Gives [rows, columns], or
        [rows, frames, columns] where the pipeline cuts recordings. Raises RunError where a stage refuses them."""
        array = np.asarray(samples)
        if array.ndim != 1:
            raise ValueError(f"samples have one axis, these have the shape {array.shape}; give one channel, or the mean of "
                             "all")
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        if array.dtype not in (np.dtype(np.float32), np.dtype(np.int16)):
            raise ValueError(f"samples are float32 (1 is full scale) or int16, these are {array.dtype}")
        return self._chain.rows(np.ascontiguousarray(array), arguments.whole("sample_rate", sample_rate, 1))

    @property
    def fingerprint(self) -> str:
        """Equal for features that are equal: the attribute `feature_fingerprint` of files that the pipeline writes."""
        return self._chain.fingerprint

    @property
    def unit(self) -> str:
        return self._chain.unit

    def check(self, fingerprint: str) -> None:
        """Raises RunError where a model was trained on other features."""
        if not isinstance(fingerprint, str):
            raise TypeError(f"a fingerprint is a text, as the attribute feature_fingerprint of a file, not {fingerprint!r}")
        if fingerprint != self.fingerprint:
            raise RunError(f"the model was trained on features with the fingerprint {fingerprint}, these have "
                           f"{self.fingerprint}; `melflow compare` says which settings differ")


@functools.lru_cache(maxsize=32)
def _chain_of(options: str) -> Features:
    text = ("version: 1\ngraph:\n  files: {stage: file_list, root: /}\n  read: {stage: disk_read, from: files}\n"
            "  decode: {stage: decode, from: read}\n  segment: {stage: segment, from: decode}\n"
            "  batch: {stage: batch, from: segment}\n"
            f"  mel: {options}\n  rows: {{stage: batches, from: mel}}\n")
    return Features(text)


def features(samples: Any, sample_rate: int, **options: Any) -> np.ndarray:
    """Mel rows [frames, bands] of one recording: options are those of the stage `mel` (preset="whisper", n_mels=80, ...;
    `melflow stages mel`). sample_rate is that of the options, unless these have one."""
    node = {"stage": "mel", "from": "batch", **options}
    if "preset" not in options:
        node.setdefault("sample_rate", arguments.whole("sample_rate", sample_rate, 1))
    return _chain_of(json.dumps(node))(samples, sample_rate)
