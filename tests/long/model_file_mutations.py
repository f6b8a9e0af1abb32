#!/usr/bin/env python3
"""Models' own files with one key changed, added, misspelt or of another type: each changes the rows as in the library, or is an error that names the key.

In:  model_file_mutations.py [--count 2000] [--seed 1] [FILE...], with what tests/golden/make_model_files.py needs; files of model_file_cases.py, by
     default all whose library writes or takes one by itself
Out: a line for each that is neither, and the numbers of each verdict by family; exit status 1 where there is one:
     same: the rows of the library that read the changed file, by the bounds of front_ends.json; error: melflow's, with the key's name; undefined:
     the library's rows are 0 / 0. ESPnet, FunASR, WeNet and WeSpeaker are written anew from their sources.
"""

import argparse
import ast
import base64
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

# Files as the libraries wrote them.
STORED = json.loads((ROOT / "tests/golden/model_files.json").read_text(encoding="utf-8"))
# Of `dither` rows are other ones each time, in the library, too.
CLASS_KEYS = {"feature_extractor_type", "feature_type", "_target_", "dither", "y", "waveform"}
# Where the keys of the class are in a file of YAML.
PLACES = {"nemo": ["preprocessor"], "espnet_tts": ["feats_extract_conf"], "espnet": ["frontend_conf"], "funasr": ["frontend_conf"],
          "wenet": ["dataset_conf", "fbank_conf"], "wespeaker": ["dataset_args", "fbank_args"]}


class Source(str):
    """A value of a call that is no literal: torch.hann_window."""

    def __repr__(self):
        return str(self)


class Json:
    """A file of JSON or YAML, and the map of keys of the class in it."""

    def __init__(self, name, text, is_yaml):
        self.is_yaml, self.root = is_yaml, yaml.safe_load(text) if is_yaml else json.loads(text)
        self.place = next((place for prefix, place in PLACES.items() if name.startswith(prefix)), [])
        self.fields = self.root
        for key in self.place:
            self.fields = self.fields[key]

    def text(self, fields):
        root = json.loads(json.dumps(self.root))
        at = root
        for key in self.place[:-1]:
            at = at[key]
        if self.place:
            at[self.place[-1]] = fields
        root = root if self.place else fields
        return yaml.safe_dump(root) if self.is_yaml else json.dumps(root, indent=2)


class Lines:
    """Options of Kaldi, or the object of a file of SpeechBrain that has tags: a line for each key."""

    def __init__(self, text, begin, between):
        self.lines, self.begin, self.between, self.fields, self.kept = text.splitlines(), begin, between, {}, {}
        self.at = [i for i, line in enumerate(self.lines) if line.startswith(begin)]
        if between == ":":  # of the first object alone
            self.at = [i for n, i in enumerate(self.at) if i == self.at[0] + n]
        for line in (self.lines[i] for i in self.at):
            key, _, value = line[len(begin):].split("#")[0].partition(between)
            value = value.strip() or "true"
            self.kept[key.strip()] = line
            self.fields[key.strip()] = 80 if value.startswith("!ref") else yaml.safe_load(value)

    def text(self, fields):
        made = [self.kept[key] if key in self.kept and self.fields[key] == value and type(self.fields[key]) is type(value)
                else self.begin + key + self.between + " " * (self.between == ":") + self.shown(value) for key, value in fields.items()]
        return "\n".join([*self.lines[:self.at[0]], *made, *(line for i, line in enumerate(self.lines) if i > self.at[0] and i not in self.at)]) + "\n"

    def shown(self, value):
        if self.between == "=" and isinstance(value, str):
            return value
        return json.dumps(value)


class Call:
    """A call of torchaudio or librosa."""

    def __init__(self, text):
        call = ast.parse(text, mode="eval").body
        self.name, self.arguments = ast.unparse(call.func), [ast.unparse(a) for a in call.args]
        self.fields = {}
        for one in call.keywords:
            try:
                self.fields[one.arg] = ast.literal_eval(one.value)
            except ValueError:
                self.fields[one.arg] = Source(ast.unparse(one.value))

    def text(self, fields):
        return f"{self.name}({', '.join([*self.arguments, *(f'{key}={value!r}' for key, value in fields.items())])})"


def form_of(name, file, text):
    if file == "":
        return Call(text)
    if file.endswith(".conf"):
        return Lines(text, "--", "=")
    return Lines(text, "    ", ":") if name.startswith("sb_") else Json(name, text, file.endswith(".yaml"))


def other_value(draw, value):
    """Another value of the same type, near enough that most classes take it."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice([value + 1, value * 2, max(1, value // 2), value - 8])
    if isinstance(value, float):
        return draw.choice([value * 1.5, value / 2, value + 0.25])
    if isinstance(value, Source):
        return Source(draw.choice(["torch.hann_window", "torch.blackman_window", "torch.bartlett_window", "torch.kaiser_window"]))
    if isinstance(value, dict):
        key = draw.choice(sorted(value))
        return {**value, key: other_value(draw, value[key])}
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
    is_call = not isinstance(preset, dict) and "(" in preset
    try:
        of = json.loads(melflow._melflow.model_nodes(text_of(preset)))  # pylint: disable=protected-access
        nodes, rate = nodes_in_order(of), of["sample_rate"]
        rows_of(nodes, rate, x)
    except (melflow.ConfigError, melflow.RunError) as error:
        is_named = key.replace("-", "_") in str(error).replace("-", "_")  # Kaldi's programs take both
        return ("error", "") if is_named else ("WRONG", f"does not name it: {error}"[:300])
    if is_call:
        judge = lambda folder, samples: model_file_cases.by_call(preset, samples)  # noqa: E731
    front_end_cases.CASES[name] = nodes
    front_end_libraries.FRONT_ENDS[name] = (rate, source, lambda samples: judge(folder, samples))
    try:
        theirs, bound = make_front_ends.judged(name, x)
    except Exception as error:  # pylint: disable=broad-except
        if "not finite" in str(error):  # 0 / 0 where a band has no bin
            return "undefined", ""
        return "WRONG", f"the library fails, melflow computes: {type(error).__name__} {error}"[:300]
    ours = rows_of(nodes, rate, x)
    if key == "pad_value" and len(ours) < len(theirs) and np.ptp(theirs[len(ours):]) == 0:  # a row that the mask of NeMo leaves out has this value
        theirs[len(ours):] = 0
    if ours.shape[1:] != theirs.shape[1:]:
        return "WRONG", f"{ours.shape}, the library has {theirs.shape}"
    ratio, _ = make_front_ends.difference(ours, theirs, bound)
    return ("same", "") if ratio <= 1 else ("WRONG", f"other rows: {ratio:.3g} bounds, {ours.shape} {theirs.shape}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*")
    given = parser.parse_args()
    draw, x = random.Random(given.seed), front_end_signals.SIGNALS["speech"]()
    names = given.files or [n for n in model_file_cases.FILES if n not in model_file_cases.REFUSED and "nested" not in n and n != "nemo_archive"]
    counts, wrong, forms = collections.Counter(), 0, {}
    warnings.simplefilter("ignore")
    for i in range(given.count):
        name = names[i % len(names)]
        preset = model_file_cases.PRESETS.get(name, "FILE")
        with tempfile.TemporaryDirectory() as folder:
            for one, text in STORED[name]["files"].items():
                pathlib.Path(folder, one).write_bytes(text.encode() if isinstance(text, str) else base64.b64decode(text["base64"]))
            if name not in forms:
                file = next((one for one in sorted(STORED[name]["files"]) if one.endswith((".json", ".yaml", ".conf"))), "")
                forms[name] = file, form_of(name, file, STORED[name]["files"][file] if file else preset)
            file, form = forms[name]
            fields, key, kind = mutated(draw, form.fields)
            if file:
                pathlib.Path(folder, file).write_text(form.text(fields), encoding="utf-8")
                preset = filled(preset, folder + "/" + file if file.endswith(".conf") else folder)
            else:
                preset = form.text(fields)
            what, why = verdict(name, folder, preset, key, x)
        counts[name.split("_")[0], kind, what] += 1
        if i % 100 == 99:
            print(f"{i + 1} of {given.count} files", file=sys.stderr, flush=True)
        if what == "WRONG":
            wrong += 1
            print(f"{name}: {kind} {key}: {json.dumps(fields.get(key))[:60]} (was {json.dumps(form.fields.get(key))[:40]}): {why}", flush=True)
    for (family, kind, what), count in sorted(counts.items()):
        print(f"{family:11} {kind:9} {what:9} {count}")
    for what in sorted({one for _, _, one in counts}):
        print(what, sum(count for (_, _, one), count in counts.items() if one == what))
    print(f"{given.count} files, {wrong} neither as in the library nor an error with the key's name")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
