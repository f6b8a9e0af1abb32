#!/usr/bin/env python3
"""Rows by the class of Transformers that wrote a model's files: for melflow verify-parity --reference transformers.

In:  parity_extractor.py REQUEST ANSWER, as parity_reference.py; REQUEST has in place of reference, options and changed:
     {"model": {"file": the folder, or a file in it}, "keys": {key of the file or argument of the call: value},
      "sample_rate", "columns": of melflow's rows}
Out: as parity_reference.py, without own_errors; an output may have "masked", the number of rows at the end that the library's
     mask leaves out; or {"library", "version", "failed": why the class does not read the folder}.

Of the folder its JSON alone is read: no hub is asked, no code of the folder is run, and no weights are loaded.
"""

import importlib.util
import inspect
import json
import os
import sys

# By its path, as the folder of this file is not searched: it has modules with names that others have, too.
_SPEC = importlib.util.spec_from_file_location("parity_reference", os.path.join(os.path.dirname(os.path.realpath(__file__)), "parity_reference.py"))
parity_reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(parity_reference)

FILES = ("preprocessor_config.json", "processor_config.json")


class Refused(Exception):
    """Says why the library has no rows by this folder."""


def folder_of(path):
    if os.path.isdir(path):
        return path
    if os.path.basename(path) not in FILES:
        raise Refused(f"a file is read by the names {' and '.join(FILES)} alone; name a folder with one")
    return os.path.dirname(path) or "."


class Extractor:
    """The class, told the keys of the file, and called with those of the call."""

    def __init__(self, path, keys):
        from transformers import AutoFeatureExtractor
        offline = dict(local_files_only=True, trust_remote_code=False)
        folder = folder_of(path)
        of = AutoFeatureExtractor.from_pretrained(folder, **offline)
        self.taken = inspect.signature(type(of).__call__).parameters
        stored = {key: value for key, value in keys.items() if hasattr(of, key)}
        self.call = {key: value for key, value in keys.items() if key not in stored}
        self.unknown = [key for key in self.call if key not in self.taken]
        self.of = AutoFeatureExtractor.from_pretrained(folder, **offline, **stored) if stored else of
        self.is_target = self.call.pop("audio_target", False)

    def rows(self, x):
        """All values of x, an array, and the mask of its rows, or None."""
        given = dict(sampling_rate=self.of.sampling_rate, return_tensors="pt" if importlib.util.find_spec("torch") else "np", **self.call)
        given = {key: value for key, value in given.items() if key in self.taken}
        # Some classes take tensors alone, some lists.
        forms = [[x]]
        if "return_tensors" not in self.taken:
            import torch
            forms = [torch.from_numpy(x)]
        out = self.of(*([] if self.is_target else forms), **({"audio_target": forms[0]} if self.is_target else {}), **given)
        key = next(key for key in (*self.of.model_input_names, *out) if key in out and "mask" not in key)
        mask = next((out[key] for key in out if "mask" in key), None)
        return array(out[key]), None if mask is None else array(mask)[0]


def array(values):
    import numpy as np
    return np.asarray(values.detach().numpy() if hasattr(values, "detach") else values, dtype=float)


def two_dimensional(values, columns):
    """[rows, columns] or [columns, rows] of the only recording. Of several crops the first counts."""
    while values.ndim > 2:
        values = values[0]
    return values.reshape(-1, 1) if columns == 1 else values.reshape(-1, columns) if values.ndim < 2 else values


def is_transposed(extractor, rate, columns):
    """Whether the class gives [columns, rows]: of a recording whose number of rows is another one."""
    import numpy as np
    for seconds in (1, 2):
        rows, own = two_dimensional(extractor.rows(np.zeros(seconds * rate, np.float32))[0], columns).shape
        if rows != own:
            return own != columns and rows == columns
    return False


def answer(request):
    import numpy as np
    extractor = Extractor(request["model"]["file"], request["keys"])
    columns = request["columns"]
    is_turned = columns > 1 and is_transposed(extractor, request["sample_rate"], columns)
    is_masked = {}

    def call(_, x):
        values, mask = extractor.rows(x)
        rows = two_dimensional(values, columns)
        rows = rows.T if is_turned else rows
        is_masked["rows"] = int(np.sum(np.cumsum(mask[::-1]) == 0)) if mask is not None and mask.shape == (len(rows),) else 0
        return rows

    outputs = []
    for one in request["inputs"]:
        is_masked.clear()
        outputs.append({**parity_reference.rows_of(call, None, one, False), "masked": is_masked.get("rows", 0)})
    return dict(function=f"{type(extractor.of).__name__}.__call__", outputs=outputs, unknown=extractor.unknown)


def main():
    sys.path[:] = [path for path in sys.path if os.path.realpath(path) != os.path.dirname(os.path.realpath(__file__))]
    os.environ["HF_HUB_OFFLINE"] = "1"
    request_path, answer_path = sys.argv[1:]
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    lacks = parity_reference.missing([parity_reference.NUMPY, parity_reference.TRANSFORMERS])
    if lacks:
        made = dict(missing=lacks)
    else:
        library = dict(library="transformers", version=parity_reference.version("transformers"))
        try:
            made = {**library, **answer(request)}
        except Exception as error:  # any error of a class for a folder that it does not take
            lines = [line for line in str(error).splitlines() if line.strip()]
            made = {**library, "failed": lines[0] if isinstance(error, Refused) else f"{type(error).__name__}: {lines[0] if lines else ''}"}
    with open(answer_path, "w", encoding="utf-8") as file:
        json.dump(made, file)


if __name__ == "__main__":
    main()
