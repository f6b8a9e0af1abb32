#!/usr/bin/env python3
"""What the stage `quality` adds to a run from FLAC, MP3 and WAV: user and system time over that of the run without it.

In:  perf/quality.py MELFLOW AUDIO [--dir build/perf/quality] [--rounds 7] [--seconds 600]
     AUDIO: a folder of recordings, such as the music of a package of Debian (tests/support/fetch_audio.sh); stereo ones are taken, in pieces of 30 s.
     Needs numpy and soundfile with MP3 (libsndfile 1.1).
Out: a row for each format and set of measures: the median of the ratios of runs in turn, and the middle half of them. One worker, 128 mel bands.
"""

import argparse
import pathlib
import resource
import statistics
import subprocess
import sys

import numpy as np
import soundfile

PIECE = 30  # [s]
SETS = {"without": "", "default": "default", "all but true_peak": "[default, loudness, loudness_range, loudness_momentary, loudness_short_term]", "all": "all"}
GRAPH = """version: 1
workers: 1
graph:
  files: {{stage: file_list, root: "{data}"}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
{quality}  mel: {{stage: mel, from: {last}, sample_rate: {rate}, n_fft: 2048, hop: 512, n_mels: 128, log: db}}
  write: {{stage: hdf5_write, from: mel, path: "{out}", overwrite: true}}
"""


def make(audio, folder, seconds):
    """Writes the pieces as FLAC, MP3 and WAV, and returns their rate."""
    pieces, rate = 0, 0
    for path in sorted(audio.rglob("*")):
        if path.suffix not in (".ogg", ".flac", ".wav", ".mp3") or pieces * PIECE >= seconds:
            continue
        about = soundfile.info(path)
        if about.channels != 2 or (rate and about.samplerate != rate):
            continue
        rate = about.samplerate
        for k in range(int(about.duration // PIECE)):
            if pieces * PIECE >= seconds:
                break
            x, _ = soundfile.read(path, PIECE * rate, k * PIECE * rate, dtype="float32")
            for kind in ("flac", "mp3", "wav"):
                to = folder / kind / f"{pieces:03}.{kind}"
                to.parent.mkdir(parents=True, exist_ok=True)
                if not to.exists():
                    soundfile.write(to, np.clip(x, -1, 1), rate, subtype=None if kind == "mp3" else "PCM_16")
            pieces += 1
    if not pieces:
        sys.exit(f"{audio}: no stereo recordings of {PIECE} s")
    return rate


def seconds_of(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("melflow")
    parser.add_argument("audio", type=pathlib.Path)
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("build/perf/quality"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    rate = make(options.audio, options.dir, options.seconds)
    print("| format | measures | user + system [s] | ÷ without | middle half |\n|---|---|---|---|---|")
    for kind in ("flac", "mp3", "wav"):
        commands = {}
        for name, measures in SETS.items():
            yaml = options.dir / f"{kind}_{name.replace(' ', '_')}.yaml"
            quality = f"  measure: {{stage: quality, from: decode, measures: {measures}}}\n" if measures else ""
            yaml.write_text(GRAPH.format(data=options.dir.resolve() / kind, out=options.dir.resolve() / "out.h5", rate=rate, quality=quality,
                                         last="measure" if measures else "decode"))
            commands[name] = [options.melflow, "run", yaml, "--quiet"]
        taken = {name: [] for name in SETS}
        for command in commands.values():
            seconds_of(command)
        for _ in range(options.rounds):
            for name, command in commands.items():
                taken[name].append(seconds_of(command))
        for name in SETS:
            ratios = sorted(a / b for a, b in zip(taken[name], taken["without"]))
            low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
            print(f"| {kind} | {name} | {statistics.median(taken[name]):.2f} | {statistics.median(ratios):.2f} | {low:.2f} to {high:.2f} |", flush=True)


if __name__ == "__main__":
    main()
