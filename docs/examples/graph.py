#!/usr/bin/env python3
"""A sweep: the same recordings with several numbers of bands, and how long each took.

    python graph.py FOLDER
"""
import sys
from pathlib import Path

import melflow


def pipeline(folder: Path, bands: int) -> melflow.Graph:
    graph = melflow.Graph(memory={"host": "512MiB"})
    audio = graph.file_list(root=folder, labels="parent_dir").disk_read().decode().resample(rate="16kHz")
    audio.mel(n_fft=512, hop="10ms", n_mels=bands, log="db").hdf5_write(path=f"mel{bands}.h5", overwrite=True)
    return graph


def main(folder: Path) -> None:
    for bands in (40, 80, 128):
        report = pipeline(folder, bands).run()
        rows = melflow.open(f"mel{bands}.h5")
        print(f"{bands} bands: {report['files']['ok']} files, {len(rows)} rows in {report['seconds']:.2f} s")


main(Path(sys.argv[1]))
