"""Pictures of rows."""

from __future__ import annotations

import os
from typing import Any, List, Optional

import numpy as np

from . import _melflow, arguments, program
from .features import check_names, features_of
from .rows import FileRows, Rows


class Picture:
    """A picture as a document of SVG; a notebook shows it."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def __getattr__(self, name: str) -> Any:
        raise AttributeError('a picture is SVG since melflow 0.2: .svg has it, and .save("a.svg") writes it; a browser, rsvg-convert or Inkscape makes a '
                             "PNG of it" if name == "png" else f"a Picture has no attribute {name!r}")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Picture, {len(self.svg)} characters of SVG; .save(path) writes it>"

    def save(self, path: "os.PathLike[str] | str") -> None:
        to = arguments.path("path", path)
        if os.path.splitext(to)[1].lower() not in ("", ".svg"):
            raise ValueError(f"{arguments.shown(to)}: pictures are written as SVG; end the name in .svg. A browser, rsvg-convert or "
                             "Inkscape makes a PNG of it")
        with open(to, "w", encoding="utf-8") as file:
            file.write(self.svg)


def show(what: Any, recording: "int | str" = 0, *, unit: str = "", title: str = "", sample_rate: Optional[int] = None,
         **options: Any) -> Picture:
    """A picture of rows, time to the right and low bands at the bottom, which a notebook shows; .save(path) writes it.

    what: an array [frames, bands]; the path of a recording, with sample_rate and options as those of melflow.features; or what
    melflow.open gives, or the path of an output, of which the recording with this number or path is drawn.
    unit: "power", "dB", "ln power", ... of an array: linear values are drawn as dB."""
    band_hz: List[float] = []
    frame_seconds = 0.0
    if isinstance(what, (str, bytes, os.PathLike)):
        check_names(show, options)
    if isinstance(what, (str, os.PathLike)) and os.fspath(what).endswith((".h5", ".npy")):
        what = FileRows(what)
    if isinstance(what, (str, bytes, os.PathLike)):
        title = title or ("" if isinstance(what, bytes) else os.path.basename(os.fsdecode(what)))
        by, what, _ = features_of(what, sample_rate, options)
        arguments.warn(by._said)
        what = by(what)
        unit, band_hz, frame_seconds = by.unit, by.band_hz, by.frame_seconds
    elif options or sample_rate is not None:
        raise TypeError(f"{', '.join(options) or 'sample_rate'}: for a file's path; what has rows already has no such options")
    elif isinstance(what, Rows):
        if isinstance(recording, str):
            paths = list(what.path)
            if recording not in paths:
                raise ValueError(f"there is no recording {recording!r}. {arguments.meant(recording, paths[:1000])}")
            recording = paths.index(recording)
        number = arguments.index("recording", recording, len(what.path))
        title, unit = title or str(what.path[number]), str(what.unit)
        if isinstance(what, FileRows):
            facts = program.inspect(what.file)
            band_hz = facts.get("band_hz") or []
            if what.is_ragged and facts.get("sample_rate"):
                frame_seconds = facts["hop_length"] / facts["sample_rate"]
        what = what.recording(number)
    rows = np.ascontiguousarray(what, np.float32)
    if rows.ndim == 3:  # windows one after the other
        rows = rows.reshape(-1, rows.shape[-1])
    if rows.ndim != 2:
        raise ValueError(f"rows have the axes [frames, bands], these have the shape {rows.shape}")
    return Picture(_melflow.picture(rows, arguments.text("unit", unit), frame_seconds, band_hz, title))
