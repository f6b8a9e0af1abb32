"""Jobs on short recordings of a sensor, 4096 Hz, 16-bit mono: much to move and little to compute.

leak     the two-stage job: 237 rows a file, 159 transforms
builder  80 rows a file, in three labelled splits: the usual preparation of a training set
tiny     half-second clips: what a file costs, whatever is in it
growth   the two-stage job at several sizes: does time per file, or memory, grow with their number?
cores    the two-stage job on 1 and more workers
settings both of these as they are shipped, and with settings that hand-written loaders arrived at
update   the two-stage job when its output is there but for a hundred files
"""
import os
import shutil
import subprocess

import agree
import corpora
from measure import Failure, Program
from setup import (
    Job, bounded_and_whole, compared, leak_corpus, library_rival, melflow, rivals_of, worker_name,
)  # fmt: skip

PIPELINE = "config/pipelines/leak_two_stage.yaml"
BUILDER = "config/pipelines/dataset_builder.yaml"
SPLITS, LABELS = {"train": 39563, "val": 7913, "test": 3958}, 10
PLAIN = ["segment.long=null", "segment.short=null", "segment.length=512"]
LEAK_ROWS, BUILDER_ROWS, TINY_ROWS = 237, 80, 4  # per file
BANDS = 32
TOLERANCE = 1e-2  # [dB], for rows computed in float in another order
# From the table in docs/dataset-builder.md: a drive buffer of 128 KiB, 8 threads that prefetch to a depth of 16, 768
# files per task, four of these together, a queue of 8 that is half filled at the start;
LEAK_SETTINGS = ["read.buffer=128KiB", "read.depth=8", "decode.queue=16", "files.files_per_task=768"]
LEAK_SETTINGS += ["batch.files=3072", "mel.queue=8", "mel.start_at=0.5"]
# and 8 workers, 2048 files per task, 24 requests in flight.
BUILDER_SETTINGS, BUILDER_WORKERS = ["files.files_per_task=2048", "read.depth=24"], 8
SUBSET = 4000  # recordings for a Python library


def hand_fused(setup, name, fft, data, files, threads, windows="two-stage"):
    output = setup.output(f"hand_fused_{fft}_{threads}.f32")
    rows = files * (LEAK_ROWS if windows == "two-stage" else BUILDER_ROWS)
    command = [setup.bin / "melflow_hand_fused", "--fft", fft, "--windows", windows]
    command += ["--threads", threads, data, output]
    return Program(name, command, files, output, rows=rows)


def both_hand_fused(setup, data, files, ours, windows="two-stage"):
    programs = []
    for name, fft in (("hand-fused, real FFT", "r2c"), ("hand-fused, paired FFT", "pair")):
        rival = hand_fused(setup, name, fft, data, files, setup.cores, windows)
        programs.append(compared(rival, ours, BANDS, TOLERANCE, "dB"))
    return programs


def torchaudio(setup, job, data, files, rows, ours, remarks):
    """Both worker counts: which of them is better is the machine's business."""
    part = min(files, SUBSET)
    programs = []
    for library in rivals_of(setup, remarks, ["torchaudio"]):
        if part < files:
            remarks.append(f"torchaudio gets {part:,} of the {files:,} files, its times are scaled up.")
        for workers in sorted({1, setup.cores}):
            name = worker_name(library, workers)
            rival = library_rival(setup, name, library, job, data, part, part * rows, workers, part)
            programs.append(compared(rival, ours, BANDS, TOLERANCE, "dB"))
    return programs


def leak(setup):
    data, files = leak_corpus(setup), setup.scaled(39563, 100)
    ours = melflow(setup, "melflow", PIPELINE, data, files, files * LEAK_ROWS)
    programs = [ours, *both_hand_fused(setup, data, files, ours)]
    remarks = []
    programs += torchaudio(setup, "leak", data, files, LEAK_ROWS, ours, remarks)
    title = f"Two-stage job: {files:,} files of 10 s at 4096 Hz, {files * LEAK_ROWS:,} rows"
    return Job("leak", title, "files", programs, [data], remarks, scale_up=True)


def builder(setup):
    splits = {name: setup.scaled(files, 10) for name, files in SPLITS.items()}
    data, files = corpora.make_splits(setup, "splits", splits, LABELS, 4096, 10), sum(splits.values())
    # Orders splits by path, as the rivals do.
    order = [f"files.split_names=[{', '.join(sorted(SPLITS))}]"]
    ours = melflow(setup, "melflow", BUILDER, data, files, files * BUILDER_ROWS, order)
    programs = [ours, *both_hand_fused(setup, data, files, ours, "plain")]
    remarks = []
    programs += torchaudio(setup, "builder", data, files, BUILDER_ROWS, ours, remarks)
    title = f"Dataset builder: {files:,} files in three splits, 80 segments of 512 each, {files * 80:,} rows"
    return Job("builder", title, "files", programs, [data], remarks, scale_up=True)


def settings(setup, name, pipeline, data, files, rows, theirs, workers=None):
    programs = [
        melflow(setup, "as it is shipped", pipeline, data, files, rows),
        melflow(setup, "their settings", pipeline, data, files, rows, theirs, workers, baseline=False),
    ]
    title = f"Settings of hand-written loaders, {name}: {files:,} files"
    remarks = ["Their settings: " + ", ".join([*theirs, *([f"workers={workers}"] if workers else [])]) + "."]
    return Job("settings", title, "files", programs, [data], remarks, per_unit=True)


def leak_settings(setup):
    files = setup.scaled(39563, 100)
    return settings(setup, "two-stage job", PIPELINE, leak_corpus(setup), files, files * LEAK_ROWS, LEAK_SETTINGS)


def builder_settings(setup):
    splits = {name: setup.scaled(files, 10) for name, files in SPLITS.items()}
    data, files = corpora.make_splits(setup, "splits", splits, LABELS, 4096, 10), sum(splits.values())
    return settings(
        setup, "dataset builder", BUILDER, data, files, files * BUILDER_ROWS, BUILDER_SETTINGS, BUILDER_WORKERS
    )


def tiny_corpus(setup):
    files = setup.scaled(200_000, 2000)
    return corpora.make(setup, "tiny", files, 4096, 0.5, split_dirs=max(1, files // 1000)), files


def tiny(setup):
    data, files = tiny_corpus(setup)
    options = [*PLAIN, "decode.fit=null"]
    ours = melflow(setup, "melflow", PIPELINE, data, files, files * TINY_ROWS, options)
    command = [setup.bin / "melflow_decode_only", "--threads", setup.cores, data]
    rival = Program("decode only", command, files)
    title = f"Tiny files: {files:,} clips of 0.5 s at 4096 Hz, {files * TINY_ROWS:,} rows"
    return Job("tiny", title, "files", [ours, rival], [data], per_unit=True)


def growth(setup):
    data, programs, folders = leak_corpus(setup), [], []
    for whole in (1_000, 27_695, 39_563):
        files = setup.scaled(whole, 25)
        part = corpora.linked(data, setup.dir / "corpora" / f"leak_links_{files}", files)
        folders.append(part)
        name = f"melflow, {files:,} files"
        run = melflow(setup, name, PIPELINE, part, files, files * LEAK_ROWS, baseline=not programs)
        programs.append(run)
    title = "Growth: the two-stage job on more and more files"
    return Job("growth", title, "files", programs, folders, per_unit=True)


def million(setup):
    """Links to the same clips, since a million files of their own would take 8 GB."""
    data, clips = tiny_corpus(setup)
    files, folder = 1_000_000, setup.dir / "corpora/tiny_links_1000000"
    options = [*PLAIN, "decode.fit=null"]
    few = melflow(setup, f"melflow, {clips:,} files", PIPELINE, data, clips, clips * 4, options)
    corpora.linked(data, folder, files, folders=1000)
    many = melflow(
        setup, f"melflow, {files:,} files", PIPELINE, folder, files, files * 4, options,
        baseline=False,
    )  # fmt: skip
    title = "A million files: hard links to clips of 0.5 s at 4096 Hz"
    return Job("million", title, "files", [few, many], [folder], per_unit=True)


def cores(setup):
    data, files = leak_corpus(setup), setup.scaled(39563, 100)
    programs = []
    for workers in sorted({1, 2, setup.cores}):
        label = f"{workers} worker" + ("s" if workers > 1 else "")
        run = melflow(
            setup, f"melflow, {label}", PIPELINE, data, files, files * LEAK_ROWS, workers=workers,
            baseline=workers == 1,
        )  # fmt: skip
        rival = hand_fused(setup, f"hand-fused, {label}", "r2c", data, files, workers)
        programs += [run, compared(rival, run, BANDS, TOLERANCE, "dB")]
    remarks = ["Ratios are to melflow with one worker; the rival takes the real FFT."]
    return Job("cores", "Cores: the two-stage job on 1 and more", "files", programs, [data], remarks)


def update(setup):
    """Both corpora are folders of links, so that the recordings themselves stay as they are."""
    data, old, added = leak_corpus(setup), setup.scaled(39563, 100), 100
    files = old + added
    before, after = (
        corpora.linked(data, setup.dir / "corpora" / f"leak_links_{n}", n) for n in (old, files)
    )
    earlier = setup.output("earlier.h5")
    full = melflow(setup, "full build", PIPELINE, after, files, files * LEAK_ROWS)
    ours = melflow(
        setup, "update", PIPELINE, after, files, added * LEAK_ROWS, baseline=False, verb="update",
    )  # fmt: skip

    def put_earlier_output():
        if not earlier.exists():
            command = [setup.bin / "melflow", "run", PIPELINE, "--quiet"]
            env = {**os.environ, "DATA": str(before), "OUT": str(earlier)}
            if subprocess.run(command, env=env, check=False).returncode != 0:
                raise Failure(f"{earlier} cannot be made")
        shutil.copyfile(earlier, ours.output)

    def same_as_built(said):
        found = bounded_and_whole(setup, ours, said)
        worst = agree.largest_difference(
            full.output, ours.output, agree.MELFLOW_ROWS_AT, files * LEAK_ROWS, BANDS, 0, ours.name
        )
        return {**found, "difference": worst, "unit": "dB", "like": full.name}

    ours.prepare, ours.verify = put_earlier_output, same_as_built
    title = f"Update: {added} files more than the {old:,} whose rows are there"
    remarks = [f"files/s are those in the output afterwards; the update computes {added} of them."]
    return Job("update", title, "files", [full, ours], [after], remarks, made=[earlier])
