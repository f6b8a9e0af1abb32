"""What fingerprints cost beside mel (80 bands at 16 kHz), from FLAC of several rates.

    python3 perf/fingerprint_cost.py MELFLOW WORK AUDIO [ROUNDS=7]

AUDIO: a folder of recordings in Ogg, an hour or more, which ffmpeg makes pieces of 30 s of. Prints
for each rate milliseconds of one core for a second of audio, user and system time, less those of a
run over one piece: decoding and mel, and what the branch with fingerprints adds. Medians of rounds
in turn, and the middle half of them.
"""

import pathlib
import statistics
import subprocess
import sys

from quality import seconds_of

PIECE = 30  # [s]
RATES = (8000, 16000, 44100, 48000)
PRINTS = """  print: {{stage: fingerprint, from: decode}}
  prints: {{stage: hdf5_write, from: print, path: "{out}.prints.h5", overwrite: true}}
"""
GRAPH = """version: 1
workers: 1
graph:
  files: {{stage: file_list, root: "{data}"}}
  decode: {{stage: decode, from: files}}
{low}  mel: {{stage: mel, from: {last}, sample_rate: 16000, n_fft: 400, hop: 160, n_mels: 80, log: ln}}
  write: {{stage: hdf5_write, from: mel, path: "{out}.h5", overwrite: true}}
"""


def make(audio, folder, rate):
    if folder.exists():
        return
    (folder / "all").mkdir(parents=True)
    for number, path in enumerate(sorted(audio.rglob("*.ogg"))):
        subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-ac", "1", "-ar", str(rate), "-sample_fmt", "s16",
                        "-f", "segment", "-segment_time", str(PIECE), folder / "all" / f"{number:03}_%03d.flac"],
                       check=True)
        sorted((folder / "all").glob(f"{number:03}_*"))[-1].unlink()  # shorter
    (folder / "one").mkdir()
    (folder / "one" / "a.flac").write_bytes(min((folder / "all").iterdir()).read_bytes())


def main():
    melflow, work, audio = sys.argv[1], pathlib.Path(sys.argv[2]).absolute(), pathlib.Path(sys.argv[3])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 7
    print("| rate [Hz] | decoding, mel [ms] | fingerprints [ms] | middle half | share |\n|---|---|---|---|---|")
    for rate in RATES:
        make(audio, work / str(rate), rate)
        low = "" if rate == 16000 else "  low: {stage: resample, from: decode, rate: 16kHz}\n"
        commands = {}
        for data in ("one", "all"):
            for name in ("mel", "both"):
                yaml = work / f"{rate}_{data}_{name}.yaml"
                yaml.write_text((GRAPH + (PRINTS if name == "both" else "")).format(
                    data=work / str(rate) / data, out=work / "out", low=low, last="low" if low else "decode"))
                commands[data, name] = [melflow, "run", yaml, "-q"]
        seconds = PIECE * len(list((work / str(rate) / "all").iterdir()))
        taken = {key: [] for key in commands}
        for round in range(rounds + 1):
            for key, command in commands.items():
                taken[key].append(seconds_of(command))
        of = {name: [1000 * (a - b) / seconds for a, b in list(zip(taken["all", name], taken["one", name]))[1:]]
              for name in ("mel", "both")}
        added = sorted(b - a for a, b in zip(of["mel"], of["both"]))
        mel, middle = statistics.median(of["mel"]), statistics.median(added)
        print(f"| {rate} | {mel:.3f} | {middle:.3f} | {added[len(added) // 4]:.3f} to {added[-1 - len(added) // 4]:.3f} "
              f"| {100 * middle / mel:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
