#!/usr/bin/env python3
"""Lhotse's own way from a folder of recordings to stored features: compute_and_store_features.

In:   lhotse_store.py [--limit N] DIR OUT
Out:  OUT, float32 [rows, 80], files in path order; on stdout the line of mel_files.py.

The clock starts when everything is imported and a first recording is done, and stops when Lhotse has
stored the features, in its default way, a .npy for each recording. OUT is made of them afterwards.
"""
import argparse
import pathlib
import tempfile
import time

import mel_files  # first: it limits the threads
import lhotse
import numpy
import torch


def store(paths, folder):
    """Cuts with features, in `folder`."""
    recordings = lhotse.RecordingSet.from_recordings(map(lhotse.Recording.from_file, paths))
    cuts = lhotse.CutSet.from_manifests(recordings=recordings)
    return cuts.compute_and_store_features(lhotse.Fbank(), folder, progress_bar=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=0, help="only the first N recordings")
    parser.add_argument("dir")
    parser.add_argument("out", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=options.out.parent) as folder:
        store(mel_files.listed(options.dir, 1), f"{folder}/first")
        begin, cpu_begin = time.monotonic(), mel_files.cpu_seconds()
        paths = mel_files.listed(options.dir, options.limit)
        cuts = store(paths, f"{folder}/all")
        seconds, cpu = time.monotonic() - begin, mel_files.cpu_seconds() - cpu_begin
        rows = numpy.concatenate([cut.load_features() for cut in cuts])
        rows.astype("float32", copy=False).tofile(options.out)
    print(f"files={len(paths)} rows={len(rows)} seconds={seconds:.4f} cpu={cpu:.4f} offset=0")


if __name__ == "__main__":
    main()
