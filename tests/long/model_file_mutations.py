#!/usr/bin/env python3
"""Models' own files with one key changed, added, misspelt or of another type: each changes the rows as in the library, or is an error that names the key.

In:  model_file_mutations.py [--count 2000] [--seed 1], with what tests/golden/make_model_files.py needs
Out: a line for each that is neither, and the numbers of each verdict; exit status 1 where there is one:
     same: the rows of the library that read the changed file, by the bounds of front_ends.json; error: melflow's, with the key's name; undefined:
     the library's rows are 0 / 0.
"""

import argparse
import collections
import json
import pathlib
import random
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/golden"))

import melflow  # noqa: E402
import numpy as np  # noqa: E402
import yaml  # noqa: E402

import front_end_cases  # noqa: E402
import front_end_libraries  # noqa: E402
import front_end_signals  # noqa: E402
import make_front_ends  # noqa: E402
import model_file_cases  # noqa: E402
from make_model_files import filled, nodes_in_order, text_of  # noqa: E402

# Of `dither` rows are other ones each time, in the library, too.
CLASS_KEYS = {"feature_extractor_type", "feature_type", "_target_", "dither"}


def other_value(draw, value):
    """Another value of the same type, near enough that most classes take it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice([value + 1, value * 2, max(1, value // 2), value - 8])
    if isinstance(value, float):
        return draw.choice([value * 1.5, value / 2, value + 0.25])
    if isinstance(value, str):
        return draw.choice([value + "x", "hamming", "povey", "right", "left", "slaney"])
    if isinstance(value, list):
        return [v * 1.25 if isinstance(v, (int, float)) else v for v in value]
    return draw.choice([1, 0.5, True])


def wrong_type(draw, value):
    return draw.choice([str(value), [value], {"value": value}, None, "a text" if not isinstance(value, str) else 3])


def mutated(draw, fields):
    """The fields with one key changed, and that key."""
    out = dict(fields)
    key = draw.choice(sorted(set(fields) - CLASS_KEYS))
    kind = draw.choice(["change", "change", "change", "misspelt", "type", "add"])
    if kind == "change":
        out[key] = other_value(draw, out[key])
    elif kind == "type":
        out[key] = wrong_type(draw, out[key])
    elif kind == "misspelt":
        at = draw.randrange(1, len(key))
        key, value = key[:at] + key[at:][1:] + key[at], out.pop(key)
        if key in out or key in fields:
            key += "_"
        out[key] = value
    else:
        key = draw.choice(["mel_scale", "norm", "preemph", "hop", "n_mel", "dither_", "normalize_audio_", "center_", "window_fn", "top_db_"])
        out[key] = draw.choice([1, 0.5, "hann", True, None])
    return out, key, kind


def rows_of(nodes, rate, x):
    graph = {"files": {"stage": "file_list", "root": "/"}, "read": {"stage": "disk_read", "from": "files"},
             "decode": {"stage": "decode", "from": "read"}}
    last = "decode"
    for stage, options in nodes.items():
        graph[stage] = {"stage": stage, "from": last, **options}
        last = stage
    graph["rows"] = {"stage": "batches", "from": last}
    return make_front_ends.flat(melflow.Features(json.dumps({"version": 1, "graph": graph}))(x, rate)).astype(np.float64)


def verdict(name, folder, preset, key, x):
    """What becomes of the changed file, and why where it is wrong."""
    _, source, _, judge = model_file_cases.FILES[name]
    try:
        of = json.loads(melflow._melflow.model_nodes(text_of(preset)))  # pylint: disable=protected-access
        nodes, rate = nodes_in_order(of), of["sample_rate"]
        rows_of(nodes, rate, x)
    except (melflow.ConfigError, melflow.RunError) as error:
        return ("error", "") if key in str(error) else ("WRONG", f"does not name it: {error}"[:300])
    front_end_cases.CASES[name] = nodes
    front_end_libraries.FRONT_ENDS[name] = (rate, source, lambda samples: judge(folder, samples))
    try:
        theirs, bound = make_front_ends.judged(name, x)
    except Exception as error:  # pylint: disable=broad-except
        if "not finite" in str(error):  # 0 / 0 where a band has no bin
            return "undefined", ""
        return "WRONG", f"the library fails, melflow computes: {type(error).__name__} {error}"[:300]
    ours = rows_of(nodes, rate, x)
    if ours.shape[1:] != theirs.shape[1:]:
        return "WRONG", f"{ours.shape}, the library has {theirs.shape}"
    ratio, _ = make_front_ends.difference(ours, theirs, bound)
    return ("same", "") if ratio <= 1 else ("WRONG", f"other rows: {ratio:.3g} bounds, {ours.shape} {theirs.shape}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw, x = random.Random(given.seed), front_end_signals.SIGNALS["speech"]()
    names = [n for n, (_, source, _, _) in model_file_cases.FILES.items()
             if ("transformers" in source or "lhotse" in source) and n not in model_file_cases.REFUSED and "nested" not in n]
    counts, wrong, texts = collections.Counter(), 0, {}
    warnings.simplefilter("ignore")
    for i in range(given.count):
        name = names[i % len(names)]
        with tempfile.TemporaryDirectory() as folder:
            if name not in texts:
                model_file_cases.FILES[name][2](folder)
                [path] = pathlib.Path(folder).iterdir()
                texts[name] = path.name, path.read_text(encoding="utf-8")
            file, text = texts[name]
            is_yaml = file.endswith(".yaml")
            fields, key, kind = mutated(draw, yaml.safe_load(text) if is_yaml else json.loads(text))
            pathlib.Path(folder, file).write_text(yaml.safe_dump(fields) if is_yaml else json.dumps(fields, indent=2), encoding="utf-8")
            what, why = verdict(name, folder, filled(model_file_cases.PRESETS.get(name, "FILE"), folder), key, x)
        counts[kind, what] += 1
        if what == "WRONG":
            wrong += 1
            print(f"{name}: {kind} {key}: {json.dumps(fields.get(key))[:60]}: {why}", flush=True)
    for (kind, what), count in sorted(counts.items()):
        print(f"{kind:9} {what:6} {count}")
    print(f"{given.count} files, {wrong} neither as in the library nor an error with the key's name")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
