"""A recording of hours with each option of today's front ends, within little memory and with plenty: the same rows.

In:  tests/long/long_recordings.py MELFLOW [--hours 2] [--memory 64MiB] [--only TEXT]; NumPy.
Out: a line for each front end: the peak of resident memory [MiB] within that memory, and whether its rows are, bit for bit, those with
     4 GiB in blocks of another size; or why melflow refuses it. Exit status 0 where all rows are equal, and what is refused is what has
     to be: a whole recording's mean and level, which are known at its end alone.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import wave

import numpy as np

RATE = 16000
MEL = "n_fft: 512, hop: 160, n_mels: 80, log: ln"
# Name: stages before mel, options of mel, stages behind it, and what a refusal says ("" where there is none).
FRONT_ENDS = {
    "fit_samples, a multiple, mirrored": (["fit_samples, extra: 1, multiple: 1280, pad_mode: reflect"], MEL, [], ""),
    "fit_samples, a mirrored start": (["fit_samples, pad_left: 2s, pad_mode: reflect"], MEL, [], ""),
    "fit_samples, copies to 10 s, cut": (["fit_samples, length: 10s, pad_mode: repeat_whole"], MEL, [], ""),
    "fit_samples, copies to 3 hours": (["fit_samples, length: 3h, pad_mode: repeat"], MEL, [], "n0.length"),
    "normalize_samples": (["normalize_samples"], MEL, [], "hold"),
    "normalize_samples in windows": (["segment, length: 10s, tail: pad", "normalize_samples, by: rms, level: -25dB"], MEL, [], ""),
    "preemphasis_first": ([], MEL + ", preemphasis: 0.97, preemphasis_first: reflect", [], ""),
    "preemphasis_first: drop": ([], MEL + ", preemphasis: 0.97, preemphasis_first: drop", [], ""),
    "power_floor, power_ceiling": ([], MEL + ", power: 1, power_floor: 1e-6, power_ceiling: 10", [], ""),
    "filters": ([], MEL + ", filters: FILTERS", [], ""),
    "filter_rate": ([], MEL + ", filter_rate: 12000", [], ""),
    "log: piecewise": ([], "n_fft: 512, hop: 160, n_mels: 80, log: piecewise, input_scale: 1000", [], ""),
    "partial_frames": ([], MEL + ", center: false, partial_frames: all", [], ""),
    "drop_exact": ([], MEL + ", drop_exact: true", [], ""),
    "stack 7/6": ([], MEL, ["stack, frames: 7, hop: 6, left: 3, tail: replicate"], ""),
    "stack, context": ([], MEL, ["stack, frames: 11, hop: 1, left: 5, head: value, tail: value, order: band_major"], ""),
    "fit_rows, a number": ([], MEL, ["fit_rows, rows: 1024"], ""),
    "fit_rows, more than there are": ([], MEL, ["fit_rows, rows: 800000"], "memory.host"),
    "fit_rows, a multiple": ([], MEL, ["fit_rows, multiple: 16, extra: 1"], ""),
    "sliding_cmvn": ([], MEL, ["sliding_cmvn, window: 300, center: true, norm_variance: true"], ""),
    "Kaldi's recipe, stacked": ([], "preset: kaldi_voxceleb", ["stack, frames: 2"], ""),
}


def make_recording(path, hours):
    """Noise of another level and colour in each second, so that no two stretches are alike."""
    random = np.random.default_rng(7)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        for second in range(int(hours * 3600) + 1):  # a second more than whole minutes, less 77 samples
            noise = random.standard_normal(RATE - 77 * (second == 0))
            noise[1:] += random.uniform(-0.9, 0.9) * noise[:-1]
            file.writeframes((noise * 10 ** random.uniform(0, 3.5)).astype(np.int16).tobytes())


def pipeline(folder, front_end, memory, block, out):
    before, mel, after, _ = front_end
    last, nodes = "decode", ""
    for number, stage in enumerate([*before, f"mel, sample_rate: {RATE}, {mel}".replace("FILTERS", str(folder / "filters.npy")), *after]):
        if stage.startswith("mel, ") and "preset" in stage:
            stage = stage.replace(f"sample_rate: {RATE}, ", "")
        nodes += f"  n{number}: {{stage: {stage}, from: {last}}}\n"
        last = f"n{number}"
    return (f"version: 1\nworkers: 2\nmemory: {{host: {memory}}}\ngraph:\n  files: {{stage: file_list, root: {folder}, include: ['*.wav']}}\n"
            f"  read: {{stage: disk_read, from: files}}\n  decode: {{stage: decode, from: read, block: {block}}}\n{nodes}"
            f"  write: {{stage: npy_write, from: {last}, path: {out}, overwrite: true}}\n")


def run(program, folder, front_end, memory, block, name):
    """Runs it; the path of the rows, or None, then what melflow said, and the peak of its resident memory [MiB]."""
    out, text = folder / f"{name}.npy", folder / f"{name}.yaml"
    text.write_text(pipeline(folder, front_end, memory, block, out), encoding="utf-8")
    ended = subprocess.run([program, "run", str(text), "--quiet", "--json"], capture_output=True, text=True, check=False)
    peak = json.loads(ended.stdout or "{}").get("memory", {}).get("resident_peak", 0) / 2**20
    return out if ended.returncode == 0 else None, " ".join(ended.stderr.split()), peak


def difference(a, b):
    """What is unlike in two files of rows; "" where nothing is."""
    x, y = (np.load(path, mmap_mode="r") for path in (a, b))
    if x.shape != y.shape:
        return f"{x.shape} and {y.shape}"
    for first in range(0, len(x), 65536):
        there, here = (np.asarray(rows[first:first + 65536]).view(np.uint32) for rows in (x, y))
        if not np.array_equal(there, here):
            return f"another value from row {first + int(np.argmax((there != here).reshape(len(there), -1).any(axis=1)))} on"
    return ""


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--hours", type=float, default=2)
    arguments.add_argument("--memory", default="64MiB")
    arguments.add_argument("--only", default="")
    a = arguments.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_recording(folder / "long.wav", a.hours)
        np.save(folder / "filters.npy", np.random.default_rng(3).uniform(0, 1, (80, 257)))
        for what, front_end in FRONT_ENDS.items():
            if a.only not in what:
                continue
            little, said, peak = run(a.program, folder, front_end, a.memory, "256KiB", "little")
            if little is None:
                verdict = "refused: " + said[:300]
                wrong += front_end[3] == "" or front_end[3] not in said
            else:
                plenty, said, _ = run(a.program, folder, front_end, "4GiB", "700KiB", "plenty")
                unlike = difference(little, plenty) if plenty is not None else "with plenty refused: " + said[:300]
                rows = np.load(little, mmap_mode="r").shape
                verdict = f"{rows}, " + (unlike or "equal")
                wrong += unlike != ""
            print(f"{what:40} {peak:6.0f} MiB  {verdict}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
