#!/usr/bin/env python3
"""Makes model_files.json: models' own files as their libraries write them, with a few values that the library computes from each.

In:  make_model_files.py [NAME...]           writes the file anew, or only these of it
     With what make_front_ends.py needs, melflow, and PyYAML and hyperpyyaml.
Out: model_files.json beside it: {name: {source, rate, preset: its value, "FILE" is the folder, files: {name: text, or base64: ...}, refused: a part
     of the message, or masked, columns and signals as in front_ends.json}}.
"""

import argparse
import base64
import json
import os
import pathlib
import sys
import tempfile

import melflow

import front_end_cases
import front_end_libraries
import make_front_ends
import model_file_cases

PATH = pathlib.Path(__file__).with_name("model_files.json")


def filled(preset, folder):
    """The value of a preset with the folder in the place of FILE."""
    if isinstance(preset, dict):
        return {key: filled(value, folder) if key == "file" else value for key, value in preset.items()}
    return preset.replace("FILE", folder) if preset.startswith("FILE") else preset


def text_of(preset):
    return preset if isinstance(preset, str) else json.dumps(preset)


def nodes_in_order(of):
    """The nodes of a file, with what cuts and fills up to the class's length."""
    nodes = [tuple(node) for node in of["nodes"]]
    if of["window"]:
        nodes.insert([stage for stage, _ in nodes].index("mel"), ("fit_samples", {"length": of["window"]}))
    return dict(nodes)


def stored(path):
    data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def made(name):
    rate, source, write, judge = model_file_cases.FILES[name]
    preset = model_file_cases.PRESETS.get(name, "FILE")
    with tempfile.TemporaryDirectory() as folder:
        write(folder)
        written = {p.name: stored(p) for p in sorted(pathlib.Path(folder).iterdir())}
        if len(written) == 1 and not isinstance(preset, dict) and preset == "FILE" and next(iter(written)).endswith(".conf"):
            preset = "FILE/" + next(iter(written))
        out = dict(source=source, rate=rate, preset=preset, files=written)
        if name in model_file_cases.REFUSED:
            return dict(out, refused=model_file_cases.REFUSED[name])
        of = json.loads(melflow._melflow.model_nodes(text_of(filled(preset, folder))))  # pylint: disable=protected-access
        nodes = nodes_in_order(of)
        front_end_cases.CASES[name] = nodes
        front_end_libraries.FRONT_ENDS[name] = (rate, source, lambda x: judge(folder, x))
        case = make_front_ends.case(name)
        masked = int(nodes.get("mel", {}).get("preset") in ("nemo", "nemotron_streaming") and "fit_rows" not in nodes or name == "hf_gemma4")
        return dict(out, masked=masked, columns=case["columns"], signals=case["signals"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    all_of = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    for name in given.names or model_file_cases.FILES:
        try:
            all_of[name] = made(name)
            print(name, flush=True)
        except (melflow.ConfigError, melflow.RunError) as error:
            print(name, "NOT MADE:", error, flush=True)
    lines = [f"{json.dumps(name)}:{json.dumps(all_of[name], separators=(',', ':'))}" for name in model_file_cases.FILES if name in all_of]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{PATH.name}: {len(lines)} files, {os.path.getsize(PATH)} bytes")


if __name__ == "__main__":
    sys.exit(main())
