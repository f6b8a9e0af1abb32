#!/usr/bin/env python3
"""What becomes of damaged recordings: melflow beside the Python libraries.

In:   damaged.py MELFLOW, the program; a Python with the rivals (requirements.txt), and ffmpeg for the AAC.
Out:  Markdown: of files with 160,000 samples of noise, how many each library gives and what it says
      (its exception, or that it warned); melflow's words are those of its report.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import decoders
import lhotse
import librosa
import numpy
import soundfile

SAMPLES, RATE = 160_000, 16_000
READERS = {name: make() for name, make in decoders.DECODERS.items()}
READERS["librosa.load"] = lambda path: librosa.load(path, sr=None)[0]
READERS["Lhotse"] = lambda path: lhotse.Recording.from_file(path).load_audio()[0]


def make(folder):
    """The recordings, by name, in the order of the table."""
    noise = numpy.random.default_rng(1).standard_normal(SAMPLES).astype("float32") / 10
    made = {}
    for ending in ("flac", "mp3", "wav"):
        path = folder / f"whole.{ending}"
        soundfile.write(path, noise, RATE)
        whole = path.read_bytes()
        half = len(whole) // 2
        made[f"whole.{ending}"] = whole
        made[f"cut in half.{ending}"] = whole[:half]
        if ending != "wav":  # in which any bytes are samples
            made[f"2,000 bytes overwritten.{ending}"] = whole[:half] + b"U" * 2000 + whole[half + 2000 :]
    made["empty.flac"] = b""
    made["text.flac"] = b"404 Not Found\n" * 50
    for name, content in made.items():
        (folder / name).write_bytes(content)
    name = "whole.m4a"
    command = ["ffmpeg", "-v", "error", "-i", folder / "whole.wav", "-c:a", "aac", folder / name]
    return [*made, name] if subprocess.run(command, check=False).returncode == 0 else [*made]


def read(reader, path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = f"{len(reader(str(path))):,}"
        except Exception as error:  # whatever a library raises
            return type(error).__name__
    kinds = sorted({w.category.__name__ for w in said if not issubclass(w.category, DeprecationWarning)})
    return ", ".join([found, *kinds])


def melflow(program, folder):
    """What the report says of each file, by name, and its counts."""
    pipeline = folder / "pipeline.yaml"
    pipeline.write_text(
        f"""version: 1
graph:
  files: {{stage: file_list, root: '{folder}', include: ['*.flac', '*.mp3', '*.wav', '*.m4a']}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  mel: {{stage: mel, from: decode, preset: kaldi}}
  write: {{stage: hdf5_write, from: mel, path: '{folder}/mel.h5'}}
""",
        encoding="utf-8",
    )
    command = [program, "run", pipeline, "--quiet", "--json"]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    remarks = {r["path"]: f"{r['status']}: {r['reason']}" for r in report["remarks"]}
    return remarks, report["files"]


def lhotse_store(paths, folder):
    """How compute_and_store_features ends with all that Lhotse can make a manifest of."""
    recordings = []
    for path in paths:
        try:
            recordings.append(lhotse.Recording.from_file(path))
        except Exception:  # as in read()
            continue
    cuts = lhotse.CutSet.from_manifests(recordings=lhotse.RecordingSet.from_recordings(recordings))
    try:
        stored = cuts.compute_and_store_features(lhotse.Fbank(), folder, progress_bar=False)
        return f"stored {len(stored)} of {len(recordings)} recordings that it can open"
    except Exception as error:
        return f"of {len(recordings)} recordings, ended by {type(error).__name__}"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        names = make(folder)
        ours, counts = melflow(sys.argv[1], folder)
        print("| | " + " | ".join(READERS) + " | melflow |\n" + "|---" * (len(READERS) + 2) + "|")
        for name in names:
            cells = [read(reader, folder / name) for reader in READERS.values()]
            print(f"| {name} | " + " | ".join(cells) + f" | {ours.get(name, 'ok')} |", flush=True)
        print(f"\nmelflow's run: {counts['found']} files, {counts['ok']} ok, {counts['failed']} failed")
        print("Lhotse's compute_and_store_features:", lhotse_store([folder / n for n in names], folder / "lhotse"))


if __name__ == "__main__":
    main()
