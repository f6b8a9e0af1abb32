#!/usr/bin/env python3
"""Whether `melflow explain` finds a limit that is known, and whether its hint brings what it says.

In:  tests/long/known_limits.py [--melflow PROGRAM] [--dir DIR] [--only NAME,...] [--rounds 1]
     DIR: corpora, graphs and outputs (2 GB; default build/known_limits).
Out: a line for each, and how many limits and changes are right; of the hints, |predicted / measured throughput - 1|: the
     median, and what 90 % stay below. Exit status 0 where all limits and changes are right, 1 else.

`melflow explain --verify` runs each once, then three times without and three times with its best hint, in turn. Nothing
else should run on the machine: the last column is what others had of the cores.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

# Arguments of melflow_make_corpus; those of a list all write into one folder.
CORPORA = {
    "speech": ["--files 1500 --rate 16000 --seconds-min 2 --seconds-max 6"],
    "music": ["--files 120 --rate 44100 --seconds-min 20 --seconds-max 40 --channels 2 --format mp3"],
    "tiny": ["--files 20000 --rate 8000 --seconds 0.25 --split-dirs 20"],
    "flac": ["--files 400 --rate 44100 --seconds 10 --format flac"],
    "long": ["--files 6 --rate 44100 --seconds 300 --channels 2"],
    "single": ["--files 1 --rate 44100 --seconds 1200"],
    "one_long": ["--files 200 --rate 16000 --seconds 2", "--files 1 --rate 16000 --seconds 1500"],
}


def corpus(program, folder, name):
    path = os.path.join(folder, "corpora", name)
    if not os.path.exists(path + ".whole"):
        shutil.rmtree(path, ignore_errors=True)
        for i, arguments in enumerate(CORPORA[name]):
            subprocess.run([os.path.join(os.path.dirname(program), "melflow_make_corpus"), "--out",
                            os.path.join(path, str(i)), *arguments.split()], check=True, stdout=sys.stderr)
        open(path + ".whole", "w").close()
    for place, _, files in os.walk(path):  # into the page cache
        for file in files:
            with open(os.path.join(place, file), "rb") as f:
                while f.read(1 << 20):
                    pass
    return path


class Graph:
    """A graph of which is known:
    limit   CAUSE [NODE]: what holds it back, as `explain --json` says it (of cores, any node: it names the stage with most of the work);
            alternatives joined by " or "
    change  the option that the best hint is to change; "none": it must say that there is nothing to gain by an option; "reuse": that
            audio decoded once would save time; alternatives joined by " or "
    nodes   NAME[=STAGE][<FROM] [OPTIONS], joined by " | "; FROM is the one before where it is not said"""

    STAGES = {"files": "file_list", "read": "disk_read", "write": "hdf5_write"}  # of others their name
    OWN = {"file_list": 'root: "${{DATA}}"', "hdf5_write": 'path: "${{OUT}}/{name}.h5"'}

    def __init__(self, name, corpus, limit, change, nodes, memory="512MiB", top=""):
        self.name, self.corpus, self.limits, self.changes = name, corpus, limit.split(" or "), change.split(" or ")
        self.text, last = f"version: 1\nmemory: {{host: {memory}}}\n{top}graph:\n", ""
        for node in nodes.split(" | "):
            head, _, options = node.partition(" ")
            node, stage, before = re.fullmatch(r"(\w+)(?:=(\w+))?(?:<(\w+))?", head).groups()
            stage = stage or self.STAGES.get(node, node)
            words = [f"stage: {stage}", last and f"from: {before or last}", self.OWN.get(stage, "").format(name=node), options]
            self.text += f"  {node}: {{{', '.join(filter(None, words))}}}\n"
            last = node

    def explain(self, program, folder):
        out = os.path.join(folder, "out")
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        path = os.path.join(folder, self.name + ".yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.text)
        ended = subprocess.run([program, "explain", path, "--verify", "--json", "--no-progress"], capture_output=True, text=True,
                               env={**os.environ, "DATA": corpus(program, folder, self.corpus), "OUT": out})
        if ended.returncode != 0:
            sys.exit(f"{self.name}: exit {ended.returncode}: {ended.stderr}")
        return json.loads(ended.stdout)


HEAVY = "sample_rate: 16000, n_fft: 2048, win_length: 400, hop: 80, n_mels: 128, precision: double"
SMALL = "sample_rate: 8000, n_fft: 256, hop: 80, n_mels: 40"
LONG = "sample_rate: 44100, n_fft: 4096, hop: 441, n_mels: 128"
DOUBLE = "sample_rate: 16000, n_fft: 400, hop: 80, precision: double, n_mels"
START = "files | read | decode | segment | batch | "
SMALL_BLOCKS = "files | read whole: 64KiB | decode block: {} | segment | batch {}| mel {} | write"


def resampled(how, mel, files="files"):
    return f"{files} | read | decode | resample {how} | segment | batch | mel {mel} | write"


GRAPHS = [
    # Compressing at the highest level on all cores.
    Graph("deflate_everywhere", "speech", "cores", "none",
          START + "mel sample_rate: 16000, n_fft: 512, hop: 160, n_mels: 40 | write compression: deflate, level: 9"),
    # All recordings are resampled and encoded as FLAC, on all cores.
    Graph("flac_in_folders", "speech", "cores", "none",
          'files | read | decode | resample rate: 8000, quality: quick | write=audio_write path: "${OUT}/clips", format: flac'),
    # Decoding is most of the work and the same in each run.
    Graph("flac_light", "flac", "cores", "reuse", START + "mel sample_rate: 44100, n_fft: 512, hop: 882, n_mels: 40 | write"),
    # Long transforms in double precision, on all cores.
    Graph("heavy_mel", "speech", "cores", "none", START + f"mel {HEAVY} | write"),
    # Mel, cosine transform and deltas on all cores.
    Graph("heavy_mfcc", "speech", "cores", "none", START + f"mel {HEAVY} | mfcc n_mfcc: 40 | deltas order: 2 | write"),
    # The budget has room for two blocks at a time, so reading waits while both are in one batch in one thread of mel, and the second
    # core idles until they give their memory back.
    Graph("least_memory", "speech", "memory", "memory.host or batch.files", SMALL_BLOCKS.format(
        "64KiB", "files: 16 ", "sample_rate: 16kHz, n_fft: 2048, win_length: 25ms, hop: 5ms, n_mels: 80, log: ln, precision: double"),
        memory="1100KiB"),
    # Sixteen threads share the cores.
    Graph("many_workers", "tiny", "cores", "none", START + f"mel {SMALL} | write", top="workers: 16\n"),
    # Long transforms in double precision keep both cores of a machine with two busy all the time, and the eight workers, set in the
    # hope of more, share the same two cores (on a machine with eight cores this would be no mistake).
    Graph("more_workers_than_cores", "long", "cores mel", "none", "files | read | decode | segment | batch files: 2 | mel sample_rate: "
          "44.1kHz, n_fft: 4096, hop: 441, n_mels: 256, log: db, precision: double | write", memory="1GiB", top="workers: 8\n"),
    # Every option is at its default and both cores compute, nearly all of it decoding stereo MP3 and resampling to 16 kHz, which is
    # the same in every run and which a cache of decoded audio saves the next ones.
    Graph("mp3_every_time", "music", "cores decode or cores resample", "reuse",
          resampled("rate: 16kHz", "n_fft: 512, hop: 160, n_mels: 64, log: db"), memory="1GiB"),
    # Deflate at level 9 costs many times what the bands cost and is done inside of write, which may take one item at a time because
    # its author had heard that HDF5 allows one writer.
    Graph("one_compressor", "speech", "concurrency write", "write.concurrency", START + "mel sample_rate: 16kHz, n_fft: 400, hop: 160, "
          "n_mels: 80, log: ln | write compression: deflate, level: 9, concurrency: 1"),
    # Decoding stereo MP3 is by far most of the work (no resampling, cheap bands) and may run only once at a time, as in a script
    # whose decoder was not thread-safe, so the second core has little to do.
    Graph("one_decoder", "music", "concurrency decode", "decode.concurrency", 'files include: ["**/*.mp3"] | read | decode concurrency: 1 '
          "| segment | batch | mel sample_rate: 44.1kHz, n_fft: 2048, hop: 1024, n_mels: 64, log: db | write"),
    # The last recording has four fifths of all audio, and the costly resampling of one recording goes block after block in one
    # thread, so the second core idles until it is through; only shorter pieces would help.
    Graph("one_huge_file", "one_long", "ending", "none or reuse", resampled("rate: 22.05kHz, quality: very_high", "preset: hifigan")),
    # Mel is nearly all of the work and may process only one batch at a time.
    Graph("one_mel", "speech", "concurrency mel", "mel.concurrency", START + f"mel {HEAVY}, concurrency: 1 | write"),
    # Resampling at the highest quality is most of the work and may process only one recording at a time.
    Graph("one_resampler", "speech", "concurrency resample", "resample.concurrency", resampled(
        "rate: 22050, quality: very_high, concurrency: 1", "sample_rate: 22050, n_fft: 512, hop: 320, n_mels: 40")),
    # One thread does all stages although the machine has two cores, so FLAC decoding, resampling and mel take turns on half of it;
    # left over from a day on a shared machine.
    Graph("one_worker", "flac", "workers", "workers", resampled("rate: 16kHz", "preset: kaldi", "files labels: parent_dir"),
          top="workers: 1\n"),
    # One thread computes long transforms.
    Graph("one_worker_mel", "long", "workers", "workers", START + f"mel {LONG} | write", top="workers: 1\n"),
    # One thread runs many small stages.
    Graph("one_worker_tiny", "tiny", "workers", "workers", START + f"mel {SMALL} | write", top="workers: 1\n"),
    # All audio is decoded and resampled into memory before anything is computed, though the run uses it once and the bands are cheap,
    # so loading is nearly the whole run; streaming overlaps it, a cache saves it in later runs.
    Graph("preloaded_once", "flac", "loading", "files.feed or reuse", resampled(
        "rate: 16kHz", "n_fft: 512, hop: 160, n_mels: 80, log: db", "files labels: parent_dir, feed: preload"), memory="2GiB"),
    # There is only one recording, whose blocks are processed in sequence.
    Graph("single_recording", "single", "few_files", "none or reuse", resampled(
        "rate: 22050, quality: very_high", "sample_rate: 22050, n_fft: 512, hop: 320, n_mels: 40")),
    # One of two branches computes longer transforms, only one batch at a time, and holds the other back.
    Graph("slow_branch", "speech", "concurrency heavy", "heavy.concurrency", START + "light=mel sample_rate: 16000, n_fft: 512, hop: 320, "
          f"n_mels: 40 | heavy=mel<batch {HEAVY}, concurrency: 1 | write_light=hdf5_write<light | write_heavy=hdf5_write<heavy"),
    # The memory budget holds hardly two blocks of these long recordings.
    Graph("small_budget_long", "long", "memory", "memory.host", SMALL_BLOCKS.format("256KiB", "", LONG), memory="4MiB"),
    # Three sets of features from one decoding, on all cores.
    Graph("three_features", "speech", "cores", "none", START +
          f"fine=mel<batch {DOUBLE}: 128 | coarse=mel<batch {DOUBLE}: 64 | decibels=mel<batch {DOUBLE}: 40, log: db | "
          "write_fine=hdf5_write<fine | write_coarse=hdf5_write<coarse | write_decibels=hdf5_write<decibels"),
    # Every stage is cheap and at its default, so opening, copying, transforming and storing 20,000 clips that are in the page cache
    # fill both cores, and no bound of any stage is reached.
    Graph("tiny_and_cheap", "tiny", "cores", "none",
          f"files labels: parent_dir | read | decode | segment | batch | mel {SMALL}, log: ln | mfcc n_mfcc: 13 | write"),
    # One batch takes in the whole corpus (copied from a setting for a graphics processor), so mel begins when the last file is
    # decoded and then works on that one batch in one thread, while the other core idles.
    Graph("whole_corpus_batch", "tiny", "beginning or ending", "batch.files or batch.bytes", SMALL_BLOCKS.format(
        "64KiB", "files: 65536, bytes: 1GiB ",
        "sample_rate: 8kHz, n_fft: 1024, win_length: 25ms, hop: 5ms, n_mels: 40, log: ln, precision: double"), memory="12GiB"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--melflow", default="build/release/bin/melflow")
    parser.add_argument("--dir", default="build/known_limits")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=1)
    a = parser.parse_args()
    program, folder = os.path.abspath(a.melflow), os.path.abspath(a.dir)
    os.makedirs(folder, exist_ok=True)
    graphs = [g for g in GRAPHS if not a.only or g.name in a.only.split(",")]
    right, errors = 0, []
    print("| graph | limit | hint | predicted | measured | by others |\n|---|---|---|---|---|---|")
    for graph in graphs * a.rounds:
        said = graph.explain(program, folder)
        limit, verified = said["limit"], said["verification"]
        cause = " ".join(filter(None, (limit["cause"], limit["node"])))
        if limit["hints"]:
            change = " ".join(limit["hints"][0]["set"])
        else:
            change = "reuse" if limit["reuse"] else "none"
        # Where no node is expected, any will do; for cores, the named node is the stage with most of the work.
        ok = any(cause == limit or limit == cause.split()[0] or limit.split()[0] == cause == "cores"
                 for limit in graph.limits) and any(c in change.split() for c in graph.changes)
        right += ok
        predicted = measured = ""
        if verified:
            p, m = verified["predicted"]["likely"], verified["measured"]["middle"]
            errors.append(abs(p / m - 1))
            predicted, measured = f"{p:.2f}", f"{m:.2f}"
        wrong = "" if ok else f" **expected {' or '.join(graph.limits)}; {' or '.join(graph.changes)}**"
        print(f"| {graph.name} | {cause}, {100 * limit['share']:.0f} % | {change}{wrong} | {predicted} | {measured} | "
              f"{limit['taken_by_others']:.2f} |", flush=True)
    runs = len(graphs) * a.rounds
    print(f"\n{right} of {runs} right; {len(errors)} hints made: error " + (
        f"{statistics.median(errors):.1%} in the median, {sorted(errors)[int(0.9 * (len(errors) - 1))]:.1%} in 90 %" if errors else "of none"))
    return 0 if right == runs else 1


if __name__ == "__main__":
    sys.exit(main())
