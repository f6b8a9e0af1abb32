"""How far mel values are from float64, by their depth below the frame's peak: melflow and libraries.

    DIR/bin/python tests/golden/precision_table.py build/release/bin/melflow

DIR is the environment of setup.sh. Prints the table of docs/parity.md: the worst error [dB] of linear
mel bands against definition.py, over the presets of librosa, torchaudio and Kaldi. Each of them, and
melflow in both precisions, gets the same float32 samples: a gliding voice, noise, and a hum over noise
that is 60, 90 and 120 dB weaker. Rows are float32 everywhere, so half of a float's last step, 2.6e-7 dB,
is in every figure.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import soundfile

import definition
import signals
from libraries import LIBRARIES

PRESETS = ("librosa", "torchaudio", "kaldi")
DEPTHS = ((0, 20), (20, 40), (40, 60), (60, 80), (80, np.inf))
LINEAR = dict(log="none")
LEAST = 1e-36  # of a power: below this, float32 itself has few digits


def hum(rate, below_db):
    """A second of 50 Hz at half of full scale, and white noise that much weaker."""
    random = np.random.default_rng(1)
    at = np.arange(rate) / rate
    weak = 0.5 * 10 ** (-below_db / 20)
    return 0.5 * np.sin(2 * np.pi * 50 * at) + weak * random.standard_normal(rate)


def recordings(rate):
    for name in ("voice", "noise"):
        yield signals.SIGNALS[name](rate) / 32768.0
    for below_db in (60, 90, 120):
        yield hum(rate, below_db)


def by_melflow(program, preset, precision, samples, rate):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "in").mkdir()
        soundfile.write(root / "in" / "a.wav", samples, rate, subtype="FLOAT")
        mel = dict(LINEAR, stage="mel", preset=preset, precision=precision, backend="cpu",
                   **{"from": "batch"})
        graph = dict(files=dict(stage="file_list", root=str(root / "in")),
                     read=dict(stage="disk_read", **{"from": "files"}),
                     decode=dict(stage="decode", **{"from": "read"}),
                     segment=dict(stage="segment", **{"from": "decode"}),
                     batch=dict(stage="batch", **{"from": "segment"}), mel=mel,
                     write=dict(stage="npy_write", path=str(root / "out.npy"), **{"from": "mel"}))
        (root / "p.yaml").write_text(json.dumps(dict(version=1, graph=graph)))
        subprocess.run([program, "run", root / "p.yaml", "--quiet"], check=True)
        return np.load(root / "out.npy").astype(float)


def errors(rows, exact):
    """(depth, error), both [dB], of every value that is one."""
    peak = exact.max(axis=1, keepdims=True)
    counts = exact > LEAST
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = 10 * np.log10(peak / exact)
        error = np.abs(10 * np.log10(np.maximum(rows, 1e-300) / exact))
    return depth[counts], error[counts]


def table(program):
    worst = {}
    for preset in PRESETS:
        call, library = LIBRARIES[preset][:2]
        rate = definition.PRESETS[preset]["sample_rate"]
        o = definition.resolve(preset, dict(LINEAR))
        for recording in recordings(rate):
            samples = recording.astype(np.float32)
            exact = definition.rows(o, samples)
            rows = {f"{library}": call(o, x=samples)}
            for precision in ("float", "double"):
                rows[f"melflow, {precision}"] = by_melflow(program, preset, precision, samples, rate)
            for who, values in rows.items():
                depth, error = errors(values, exact)
                for low, high in DEPTHS:
                    there = error[(depth >= low) & (depth < high)]
                    key = (preset, who, low)
                    worst[key] = max(worst.get(key, 0.0), there.max(initial=0.0))
    return worst


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("melflow", help="the program")
    worst = table(arguments.parse_args().melflow)
    print("| preset | computed by | " + " | ".join(
        f"over {low} dB" if np.isinf(high) else f"{low}–{high} dB" for low, high in DEPTHS) + " |")
    print("|---|---|" + "---|" * len(DEPTHS))
    for preset, who in dict.fromkeys((preset, who) for preset, who, _ in worst):
        figures = " | ".join(f"{worst[preset, who, low]:.1e}" for low, _ in DEPTHS)
        print(f"| {preset} | {who} | {figures} |")


if __name__ == "__main__":
    main()
