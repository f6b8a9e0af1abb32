"""Rows of samples in memory, by the stages that make the rows of files: for serving."""

from __future__ import annotations

import functools
import json
import re
from typing import Any, Mapping, Optional

import numpy as np

from . import arguments
from ._melflow import ConfigError, FeatureChain, RunError, preset_rate


class Features(arguments.Reopened):
    """The stages of a pipeline after its decoder, as a function of samples. It may be called from many
    threads, and is pickled as its arguments.

    pipeline, vars, sets: as those of melflow.Loader.

    rows = Features("speech.yaml")(samples, 16000): what the pipeline gives for a file of these samples, bit for bit.
    """

    def __init__(self, pipeline: arguments.Pipeline, *, vars: Optional[Mapping[str, Any]] = None,
                 sets: Optional[Mapping[str, Any]] = None) -> None:
        name, text = arguments.pipeline(pipeline)
        self._chain = FeatureChain(name, text, arguments.assigned("vars", vars),
                                   arguments.assigned("sets", sets))
        arguments.warn(self._chain.warnings, 2)

    def __call__(self, samples: Any, sample_rate: int) -> np.ndarray:
        """samples: [samples] of one channel, int16, or float32 with 1 as full scale. Gives [rows, columns], or
        [rows, frames, columns] where the pipeline cuts recordings. Raises RunError where a stage refuses them."""
        return _rows_of(self._chain, samples, sample_rate)

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
            raise TypeError("a fingerprint is a text, as the attribute feature_fingerprint of a "
                            f"file, not {arguments.shown(fingerprint)}")
        if fingerprint != self.fingerprint:
            raise RunError(f"the model was trained on features with the fingerprint {fingerprint}, these have "
                           f"{self.fingerprint}; `melflow compare` says which settings differ")


def _rows_of(chain: FeatureChain, samples: Any, sample_rate: int) -> np.ndarray:
    array = np.asarray(samples)
    if array.ndim != 1:
        raise ValueError(f"samples have one axis, these have the shape {array.shape}; give one "
                         "channel, or the mean of all")
    if array.dtype == np.float64:
        array = array.astype(np.float32)
    if array.dtype not in (np.dtype(np.float32), np.dtype(np.int16)):
        raise ValueError(f"samples are float32 (1 is full scale) or int16, these are {array.dtype}")
    sample_rate = arguments.whole("sample_rate", sample_rate, 1, 2**31 - 1)
    return chain.rows(np.ascontiguousarray(array), sample_rate)


@functools.lru_cache(maxsize=32)
def _chain_of(options: str) -> FeatureChain:
    text = ("version: 1\ngraph:\n  files: {stage: file_list, root: /}\n"
            "  read: {stage: disk_read, from: files}\n  decode: {stage: decode, from: read}\n"
            "  segment: {stage: segment, from: decode}\n  batch: {stage: batch, from: segment}\n"
            f"  mel: {options}\n  rows: {{stage: batches, from: mel}}\n")
    try:
        return FeatureChain("pipeline", text, {}, {})
    except ConfigError as error:  # the user has not written that text
        raise ConfigError(re.sub(r"(?m)^pipeline[:\d]*: (mel\.)?", "", str(error))) from None


_TIMES = ("n_fft", "win_length", "hop")


def features(samples: Any, sample_rate: int, **options: Any) -> np.ndarray:
    """Mel rows [frames, bands] of one recording of `sample_rate` [Hz]: options are those of the
    stage `mel` (preset="whisper", n_mels=80, ...; `melflow stages mel`). A preset of a model is for
    one rate; at another one it needs n_fft, win_length or hop."""
    rate = arguments.whole("sample_rate", sample_rate, 1, 2**31 - 1)
    node = {"stage": "mel", "from": "batch", **arguments.plain(options), "sample_rate": rate}
    theirs = preset_rate(str(node.get("preset")))
    if theirs not in (None, rate) and not any(name in node for name in _TIMES):
        raise ValueError(f"preset {node['preset']} is for samples at {theirs} Hz, and these have "
                         f"sample_rate {rate}: resample them to {theirs} Hz before, or give n_fft, "
                         f"win_length and hop in samples of {rate} Hz")
    return _rows_of(_chain_of(json.dumps(node)), samples, rate)
