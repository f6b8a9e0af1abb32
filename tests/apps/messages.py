"""Wrong inputs of a first day and what the program says of each.

Usage: messages.py MELFLOW            compares with messages.txt, which is beside this file
       messages.py MELFLOW --write    writes it; read what has changed: a message says what is
                                      wrong, where, what is allowed and what to do
In messages.txt each case is what was typed or written, and behind it what was printed and the exit
status. Nothing of it depends on the machine.
"""

import difflib
import os
import pathlib
import subprocess
import sys
import tempfile
import wave

PIPELINE = """\
version: 1
memory: {host: 512MiB}
graph:
  files:
    stage: file_list
    root: clips
  read: {stage: disk_read, from: files}
  decode: {stage: decode, from: read}
  resample:
    stage: resample
    from: decode
    rate: 16kHz
  segment: {stage: segment, from: resample}
  batch: {stage: batch, from: segment}
  mel:
    stage: mel
    from: batch
    n_fft: 512
    hop: 10ms
    n_mels: 80
    log: db
    backend: cpu
  write:
    stage: hdf5_write
    from: mel
    path: out.h5
"""

PART = """\
version: 1
parameters: {FILES: null}
output: collect
graph:
  collect: {stage: batch, from: in, files: "${FILES}"}
"""

# What is written in place of what in the pipeline above.
EDITS = [
    # Names of other libraries
    ("    hop: 10ms", "    hop_length: 160"),
    ("    hop: 10ms", "    frame_shift: 10"),
    ("    hop: 10ms", "    window_stride: 0.01"),
    ("    n_fft: 512", "    n_fft: 512\n    win: 400"),
    ("    n_fft: 512", "    n_fft: 512\n    frame_length: 25"),
    ("    n_fft: 512", "    n_fft: 512\n    winlen: 0.025"),
    ("    n_fft: 512", "    nfft: 512"),
    ("    n_mels: 80", "    num_mel_bins: 80"),
    ("    n_mels: 80", "    n_mels: 80\n    htk: true"),
    ("    n_mels: 80", "    n_mels: 80\n    f_min: 20"),
    ("    n_mels: 80", "    n_mels: 80\n    low_freq: 20"),
    ("    n_mels: 80", "    n_mels: 80\n    sr: 16000"),
    ("    n_mels: 80", "    n_mels: 80\n    device: cuda"),
    ("    rate: 16kHz", "    sample_rate: 16000"),
    ("    root: clips", "    data_dir: clips"),
    ("    path: out.h5", "    file: out.h5"),
    ("  batch: {stage: batch, from: segment}", "  batch: {stage: batch, from: segment, batch_size: 16}"),
    ("  read: {stage: disk_read, from: files}", "  read: {stage: disk_read, from: files, num_workers: 4}"),
    ("  read: {stage: disk_read, from: files}", "  read: {stage: disk_read, input: files}"),
    ("graph:", "pipeline:"),
    ("version: 1", "version: 1\nthreads: 4"),
    # Slips of the keyboard
    ("    n_mels: 80", "    n_mles: 80"),
    ("    stage: mel", "    stage: mle"),
    ("    from: batch", "    from: bacth"),
    ("    log: db", "    log: dB"),
    ("    log: db", "    log: true"),
    ("memory: {host", "memroy: {host"),
    ("memory: {host", "memory: {hots"),
    ("    n_mels: 80", "    quux: 80"),
    # Utterances
    ("    root: clips", "    root: clips\n    utterances: {}"),
    ("    root: clips", "    manifest: u.csv\n    utterances: {end: to, duration: length}"),
    ("    root: clips", "    manifest: u.csv\n    utterances: {unit: ms}"),
    # Values
    ("    root: clips", "    root: [clips]"),
    ("    root: clips", "    root: {DATA}"),
    ("    root: clips", "    root: clips\n    labels: speakr\n    columns: {speaker: top_dir}"),
    ("    path: out.h5", "    path: nowhere/out.h5"),
    ("    root: clips", "    root: [clips, more]"),
    ("memory: {host: 512MiB}", "memory: {host: 512Mb}"),
    ("memory: {host: 512MiB}", "memory: {host: -512MiB}"),
    ("    hop: 10ms", "    hop: -1s"),
    ("    rate: 16kHz", "    rate: -16kHz"),
    ("    n_mels: 80", '    n_mels: "80"'),
    ("    n_mels: 80", "    n_mels: eighty"),
    ("    n_mels: 80", "    n_mels: .nan"),
    ("    n_mels: 80", "    n_mels: 80.5"),
    ("    n_mels: 80", "    n_mels:"),
    ("    n_mels: 80", "    n_mels: 0"),
    ("    n_mels: 80", "    n_mels: [80, 128]"),
    ("    n_mels: 80", "    n_mels: 99999999999999999999"),
    ("    log: db", "    log: db\n    fmin: nan"),
    ("    log: db", "    log: db\n    fmin: 20Hz"),
    ("    log: db", "    log: db\n    fmin: 7000\n    fmax: 4000"),
    ("    log: db", "    log: db\n    fmax: 9000"),
    ("    log: db", "    log: db\n    center: yup"),
    ("    log: db", "    log: db\n    center: 'true'"),
    ("    log: db", "    log: db\n    preset: wisper"),
    ("    log: db", "    log: db\n    win_length: 1024"),
    ("    log: db", "    log: db\n    sample_rate: 8kHz"),
    ("    hop: 10ms", "    hop: 10 milliseconds"),
    ("    hop: 10ms", "    hop: 10.1us"),
    ("    hop: 10ms", "    hop: 0.3ms"),
    ("    hop: 10ms", "    hop: 0"),
    ("    hop: 10ms", "    hop: 12.5"),
    ("    rate: 16kHz", "    rate: 16 kilohertz"),
    ("    rate: 16kHz", "    rate: 22.05kHZz"),
    ("    rate: 16kHz", "    rate: 16"),
    ("    rate: 16kHz", "    rate: 44.1"),
    ("    rate: 16kHz", "    rate: 44.10005kHz"),
    ("host: 512MiB", "host: 512"),
    ("host: 512MiB", "host: 2"),
    ("host: 512MiB", "host: 512 megs"),
    ("host: 512MiB", "host: 8MiB"),
    ("    root: clips", "    root: clips\n    splits: ratio\n    split_ratios: {train: 0.8, test: 0.1}"),
    ("    root: clips", "    root: clips\n    splits: ratio\n    split_ratios: {train: most, test: 20}"),
    ("    root: clips", "    root: clips\n    splits: ratio\n    split_ratios: [80, 20]"),
    ("    root: clips", "    root: clips\n    labels: folder"),
    ("    root: clips", "    root: clips\n    label_file: labels.xls\n    labels: file"),
    ("    root: clips", "    manifest: list.xlsx"),
    ("    root: clips", "    root: nowhere"),
    ("    root: clips", "    include: [a.wav]"),
    ("version: 1", "version: 2"),
    ("version: 1", "version: one"),
    ("version: 1\n", ""),
    # The text
    ("    n_mels: 80", "    n_mels 80"),
    ("    n_mels: 80", "     n_mels: 80"),
    ("    n_mels: 80", "   n_mels: 80"),
    ("    n_mels: 80", "\tn_mels: 80"),
    ("    n_mels: 80", "    n_mels:80"),
    ("    n_mels: 80", "    n_mels = 80"),
    ("    n_mels: 80", "    n_mels: 80 log: db"),
    ("    n_mels: 80", "    n_mels: 80\n    n_mels: 64"),
    ("stage: decode, from: read}", "stage: decode, from: read"),
    ("stage: decode, from: read}", "stage: decode, from: read]"),
    ("stage: decode, from: read}", "stage: decode from: read}"),
    ("stage: decode, from: read}", "stage:decode, from: read}"),
    ("stage: decode, from: read}", "stage: decode, from:read}"),
    ("stage: decode, from: read}", "stage:decode, from:read}"),
    ("  resample:\n    stage: resample\n    from: decode\n    rate: 16kHz\n", "  resample:\n  stage: resample\n  from: decode\n  rate: 16kHz\n"),
    ("  decode: {stage", "decode: {stage"),
    ("    path: out.h5", '    path: "out.h5'),
    ("    root: clips", "    root: clips\n    include: **/*.wav"),
    ("  read: {stage: disk_read, from: files}", "  read: {stage: disk_read, from: ${FROM}}"),
    ("    root: clips", "    root: ${DATA}"),
    ("    root: clips", "    root: ${DATA"),
    ("    root: clips", "    root: $DATA"),
    (PIPELINE, ""),
    (PIPELINE, "just words\n"),
    # The graph
    ("  read: {stage: disk_read, from: files}", "  read: {stage: disk_read, from: batch}"),
    ("  read: {stage: disk_read, from: files}", "  read: {stage: disk_read}"),
    ("  read: {stage: disk_read, from: files}", "  read: {from: files}"),
    ("  read: {stage: disk_read, from: files}", "  read: disk_read"),
    ("  decode: {stage: decode, from: read}", "  decode: {stage: decode, from: files}"),
    ("    from: batch", "    from: segment"),
    ("    from: batch", "    from: files"),
    ("  batch: {stage: batch, from: segment}\n  mel:\n    stage: mel\n    from: batch\n", "  mel:\n    stage: mel\n    from: read\n"),
    ("    from: batch", "    from: [batch, segment]"),
    ("  segment: {stage: segment, from: resample}", "  segment: {stage: segment, from: resample, length: 10 km}"),
    ("  segment: {stage: segment, from: resample}", "  segment: {stage: segment, from: resample, hop: 1s}"),
    ("    from: mel\n    path: out.h5\n", "    from: mel\n"),
    ("  write:\n    stage: hdf5_write\n    from: mel\n    path: out.h5\n", ""),
    # Routes, filters and joins
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {duration: "> 15s"}}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {duration: "> 15s"}}}\n  segment: {stage: segment, from: way.lang}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {duration: "> 15s"}}, else: short}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {duration: long}}}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {length: "> 15s"}}}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {duration: "> 15 seconds"}}}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {duration: 2s..1s}}}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {duration: 1s..500}}}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {duration: "> -1s"}}}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {size: 1MiB..2s}}}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: [long, short]}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {label: [dog, "!cat"]}}}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: "duration > 15s"}}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: route, from: resample, outputs: {long: {label: dog}}, else: long}\n  segment: {stage: segment, from: way.long}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {label: dog}}\n  segment: {stage: segment, from: way.dog}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {split: train}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {column.speaker: ann}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {target.snr: "> 5"}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: merge, from: [decode, resample]}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: merge, from: [resample, segment]}\n  segment: {stage: segment, from: way}'),
    ('  decode: {stage: decode, from: read}', '  decode: {stage: decode, from: way}\n  way: {stage: filter, from: read, where: {duration: "> 1s"}}'),
    ('  decode: {stage: decode, from: read}', '  decode: {stage: decode, from: way}\n  way: {stage: filter, from: read, where: {channels: 1}}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {channels: stereo}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {channels: 1.5}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {chanels: 1}}\n  segment: {stage: segment, from: way}'),
    ('  decode: {stage: decode, from: read}', '  decode: {stage: decode, from: way}\n  way: {stage: filter, from: read, where: {peak: "> -60dB"}}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {peak: "> -60"}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {peak: loud}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {peak: -60dB..0}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {peak: -1dB..-60dB}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {peak: "< 90%"}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {peaks: "< 0.9"}}\n  segment: {stage: segment, from: way}'),
    # Rows side by side
    ('    from: mel\n    path: out.h5', '    from: both\n    path: out.h5\n  both: {stage: concat, from: mel}'),
    ('    from: mel\n    path: out.h5', '    from: both\n    path: out.h5\n  both: {stage: concat, from: [mel, mel]}'),
    ('    from: mel\n    path: out.h5', '    from: both\n    path: out.h5\n  both: {stage: concat, from: [mel, batch]}'),
    ('    from: mel\n    path: out.h5', '    from: both\n    path: out.h5\n  other: {stage: mel, from: batch, n_fft: 512, hop: 20ms, n_mels: 20}\n  both: {stage: concat, from: [mel, other]}'),
    ('    from: mel\n    path: out.h5', '    from: both\n    path: out.h5\n  cut: {stage: segment, from: resample, length: 1s}\n  pack: {stage: batch, from: cut}\n  other: {stage: mel, from: pack, n_fft: 512, hop: 10ms, n_mels: 20}\n  both: {stage: concat, from: [mel, other]}'),
    ('    from: mel\n    path: out.h5', '    from: both\n    path: out.h5\n  again: {stage: decode, from: read}\n  rate: {stage: resample, from: again, rate: 16kHz}\n  all: {stage: segment, from: rate}\n  pack: {stage: batch, from: all}\n  other: {stage: mel, from: pack, n_fft: 512, hop: 10ms, n_mels: 20}\n  both: {stage: concat, from: [mel, other]}'),
    ('    from: mel\n    path: out.h5', '    from: both\n    path: out.h5\n  all: {stage: segment, from: resample}\n  rows: {stage: samples, from: all}\n  both: {stage: concat, from: [mel, rows]}'),
    ('    path: out.h5', '    path: out.h5\n  way: {stage: route, from: resample, outputs: {a: {path: "a*"}}, else: b}\n  sa: {stage: segment, from: way.a}\n  ba: {stage: batch, from: sa}\n  ma: {stage: mel, from: ba, n_fft: 512}\n  sb: {stage: segment, from: way.b}\n  bb: {stage: batch, from: sb}\n  mb: {stage: mel, from: bb, n_fft: 512}\n  both: {stage: concat, from: [ma, mb]}\n  end: {stage: discard, from: both}'),
    ('  batch: {stage: batch, from: segment}', '  batch: {stage: batch, from: segment}\n  way: {stage: filter, from: batch, where: {label: dog}}'),
    ('    path: out.h5', '    path: out.h5\n    on_failure: branches'),
    ('    root: clips', '    root: clips\n    on_failure: branch'),
    ('    root: clips', '    root: clips\n    max_duration: 15'),
    ('    root: clips', '    root: clips\n    columns: [speaker]'),
    ('    root: clips', '    root: clips\n    columns: {speaker: "("}'),
    ('  segment: {stage: segment, from: resample}', '  segment: {stage: segment, from: resample, min_length: 3s, max_length: 2s}'),
    # Samples
    ('  decode: {stage: decode, from: read}', '  decode: {stage: decode, from: read, downmix: 0}'),
    ('  decode: {stage: decode, from: read}', '  decode: {stage: decode, from: read, downmix: side}'),
    ('  decode: {stage: decode, from: read}', '  decode: {stage: decode, from: read, downmix: stereo}'),
    ('  decode: {stage: decode, from: read}', '  decode: {stage: decode, from: read, truncated: skip}'),
    ('  read: {stage: disk_read, from: files}', '  read: {stage: disk_read, from: files, engine: uring}'),
    ('  decode: {stage: decode, from: read}', '  decode: {stage: decode, from: read, channel: 2}'),
    ('  segment: {stage: segment, from: resample}', '  trim: {stage: trim_silence, from: resample}\n  segment: {stage: segment, from: trim}'),
    ('  segment: {stage: segment, from: resample}', '  trim: {stage: trim_silence, from: resample, threshold: 40dB}\n  segment: {stage: segment, from: trim}'),
    ('  segment: {stage: segment, from: resample}', '  trim: {stage: trim_silence, from: resample, threshold: quiet}\n  segment: {stage: segment, from: trim}'),
    ('  segment: {stage: segment, from: resample}', '  trim: {stage: trim_silence, from: resample, threshold: -40dB, top_db: 60}\n  segment: {stage: segment, from: trim}'),
    ('  segment: {stage: segment, from: resample}', '  trim: {stage: trim_silence, from: resample, top_db: 60, hold: 0.1s}\n  segment: {stage: segment, from: trim}'),
    # Recordings without files
    ('    stage: file_list\n    root: clips\n  read: {stage: disk_read, from: files}\n  decode: {stage: decode, from: read}', '    stage: synthetic\n  decode: {stage: decode, from: files}'),
    ('    stage: file_list\n    root: clips\n  read: {stage: disk_read, from: files}\n  decode: {stage: decode, from: read}\n  resample:\n    stage: resample\n    from: decode\n', '    stage: synthetic\n    low: 9000\n  resample:\n    stage: resample\n    from: files\n'),
    # Other outputs
    ('    path: out.h5', '    path: out.h5\n  look: {stage: tap, from: mel}'),
    ('    path: out.h5', '    path: out.h5\n  look: {stage: tap, from: mel, path: look, limit: 0}'),
    ('    path: out.h5', '    path: out.h5\n  copy: {stage: audio_write, from: decode}'),
    ('    path: out.h5', '    path: out.h5\n  copy: {stage: audio_write, from: read, path: copies}'),
    ('    path: out.h5', '    path: out.h5\n  copy: {stage: audio_write, from: segment, path: copies}'),
    ('    path: out.h5', '    path: out.h5\n  copy: {stage: audio_write, from: mel, path: copies}'),
    ('    path: out.h5', '    path: out.h5\n  copy: {stage: audio_write, from: decode, path: copies, format: flac, dtype: float32}'),
    ('    path: out.h5', '    path: out.h5\n  copy: {stage: audio_write, from: decode, path: copies, format: mp3}'),
    ('    path: out.h5', '    path: out.h5\n  end: {stage: null, from: decode}'),
    ('    path: out.h5', '    path: out.h5\n  end: {stage: discard, from: decode, path: nowhere}'),
    # Samples where a time is meant, and the other way round
    ("    hop: 10ms", "    hop: 10"),
    ("    hop: 10ms", "    hop: 10ms\n    win_length: 25"),
    ("    hop: 10ms", "    hop: 0.01"),
    ("    n_fft: 512", "    n_fft: 25ms"),
    ("    log: db", "    log: db\n    fmax: 8k"),
    ("  segment: {stage: segment, from: resample}", "  segment: {stage: segment, from: resample, length: 3}"),
    # Values that others have
    ("    log: db", "    log: db\n    window: hanning"),
    ("    log: db", "    log: natural"),
    ("    log: db", "    log: db\n    normalize: true"),
    ("    path: out.h5", "    path: out.h5\n    compression: gzip"),
    ("    path: out.h5", "    path: out.h5\n    dtype: fp16"),
    ("    path: out.h5", "    path: features.npy"),
    ("    path: out.h5", "    path: ~/out.h5"),
    ("    stage: mel", "    stage: melspectrogram"),
    ("    stage: mel", "    type: mel"),
    ("  decode: {stage: decode, from: read}", "  decode: {stage: decode, from: read, sample_rate: 16000}"),
    ("memory: {host: 512MiB}", "memory: 2GB"),
    ("version: 1", "version: 1\nworkers: all"),
    ("version: 1", "version: 1\noutput: x.h5"),
    ("    log: db", "    preset: whisper\n    log: none"),
    ("    log: db", "    log: db\n    fmin: 9000"),
    ("  write:\n    stage: hdf5_write\n    from: mel\n", "  cepstra: {stage: mfcc, from: mel, n_mfcc: 90}\n  write:\n    stage: hdf5_write\n    from: cepstra\n"),
    ("    log: db\n    backend: cpu\n  write:\n    stage: hdf5_write\n    from: mel\n", "    backend: cpu\n  cepstra: {stage: mfcc, from: mel}\n  write:\n    stage: hdf5_write\n    from: cepstra\n"),
    ("    from: mel\n    path: out.h5", "    from: [mel, batch]\n    path: out.h5"),
    # The corpus
    ("    root: clips", "    root: ~/clips"),
    ("    root: clips", '    root: "{DATA}"'),
    ("    root: clips", '    root: clips\n    include: [".wav"]'),
    ("    root: clips", "    root: clips\n    recursive: true"),
    ("    root: clips", "    root: clips\n    splits: [80, 10, 10]"),
    ("    root: clips", "    root: clips\n    splits: random"),
    ("    root: clips", "    root: clips\n    splits: {train: 80}"),
    ("    root: clips", "    root: clips\n    split_group: top_dir"),
    ("    root: clips", "    root: clips\n    split_ratios: {train: 80, test: 20}"),
    ("    root: clips", "    root: clips\n    splits: ratio\n    split_ratios: {train: 80%, val: 10}"),
    ("    root: clips", "    root: clips\n    splits: ratio\n    split_group: 'spk[0-9]+'"),
    ("    root: clips", "    root: clips\n    splits: ratio\n    split_group: speaker"),
    ("    root: clips", "    root: clips\n    labels: manifest"),
    ("    root: clips", "    root: clips\n    labels: speaker"),
    # Conditions
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {duration: [1s, 15s]}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {duration: ">=1s, <=15s"}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, where: {duration: 1s..}}\n  segment: {stage: segment, from: way}'),
    ('  segment: {stage: segment, from: resample}', '  way: {stage: filter, from: resample, min_duration: 1s}\n  segment: {stage: segment, from: way}'),
    # Brackets, quotes and dashes
    ('  read: {stage: disk_read, from: files}', '  read: {stage: disk_read, from: "${FROM}"'),
    ('  read: {stage: disk_read, from: files}', '  read: {stage: disk_read, from: "${FROM}" concurrency: 2}'),
    ('  read: {stage: disk_read, from: files}', '  - read: {stage: disk_read, from: files}'),
    # Several sources
    ('  read: {stage: disk_read, from: files}', '  more: {stage: file_list, root: clips}\n  read: {stage: disk_read, from: files}'),
    ('  read: {stage: disk_read, from: files}', '  more: {stage: file_list, root: clips}\n  read: {stage: disk_read, from: [files, mroe]}'),
    ('  read: {stage: disk_read, from: files}', '  more: {stage: file_list, root: clips}\n  read: {stage: disk_read, from: [files, more, files]}'),
    ('  read: {stage: disk_read, from: files}', '  more: {stage: file_list, root: clips, feed: preload}\n  read: {stage: disk_read, from: [files, more]}'),
    ('  read: {stage: disk_read, from: files}', '  more: {stage: file_list, root: clips, files_per_task: 4}\n  read: {stage: disk_read, from: [files, more]}'),
    ('  read: {stage: disk_read, from: files}', '  more: {stage: file_list, root: nowhere, labels: folder}\n  read: {stage: disk_read, from: [files, more]}'),
    ('  read: {stage: disk_read, from: files}', '  more: {stage: synthetic}\n  read: {stage: disk_read, from: [files, more]}'),
    ('  read: {stage: disk_read, from: files}', '  more: {stage: file_list, root: clips}\n  read: {stage: disk_read, from: files}\n  read_b: {stage: disk_read, from: more}\n  both: {stage: concat, from: [read, read_b]}'),
    ('    root: clips\n  read: {stage: disk_read, from: files}\n  decode: {stage: decode, from: read}', '    root: clips\n    feed: preload\n  more: {stage: file_list, root: clips, feed: preload}\n  read: {stage: disk_read, from: files}\n  decode_a: {stage: decode, from: read}\n  read_b: {stage: disk_read, from: more}\n  decode_b: {stage: decode, from: read_b}\n  decode: {stage: merge, from: [decode_a, decode_b]}'),
    ('    root: clips\n  read: {stage: disk_read, from: files}\n  decode: {stage: decode, from: read}', '    root: clips\n    update_by: content\n  more: {stage: file_list, root: clips, update_by: content}\n  read: {stage: disk_read, from: files}\n  decode_a: {stage: decode, from: read}\n  read_b: {stage: disk_read, from: more}\n  decode_b: {stage: decode, from: read_b}\n  decode: {stage: merge, from: [decode_a, decode_b]}'),
    # Fragments
    ('  batch: {stage: batch, from: segment}', '  batch: {use: nowhere.yaml, from: segment}'),
    ('  batch: {stage: batch, from: segment}', '  batch: {use: part.yaml, from: segment}'),
    ('  batch: {stage: batch, from: segment}', '  batch: {use: part.yaml, from: segment, with: {FILE: 4}}'),
    ('  batch: {stage: batch, from: segment}', '  batch: {use: part.yaml, with: {FILES: 4}}'),
    ('  batch: {stage: batch, from: segment}', '  batch: {use: part.yaml, from: segment, with: {FILES: many}}'),
    ('  batch: {stage: batch, from: segment}', '  batch: {use: part.yaml, from: segment, with: {FILES: 4}, queue: 3}'),
    ('  batch: {stage: batch, from: segment}', '  batch: {use: part.yaml, stage: batch, from: segment}'),
    ('  batch: {stage: batch, from: segment}', '  batch: {use: p.yaml, from: segment}'),
]

# What is typed; `a.yaml` is the pipeline above, `clips` has a recording and what is none.
COMMANDS = [
    "",
    "rnu a.yaml",
    "run",
    "run a.yml",
    "run clips",
    "run old.h5",
    "run old.npy",
    "run clips/fine.wav",
    "run --vra A=b a.yaml",
    "run a.yaml --sets mel.n_mels=64",
    "validate a.yaml --features",
    "run a.yaml --set mel.n_mels",
    "run a.yaml --set n_mels=64",
    "run a.yaml --set mle.n_mels=64",
    "run a.yaml --set mel.n_mels=many",
    "run a.yaml --set mel=64",
    "run a.yaml --var DATA",
    "run a.yaml --var DATA=clips",
    "run data.yaml --var DATA=",
    "run data.yaml --var DTAA=clips",
    "run data.yaml DATA=clips",
    "run a.yaml mel.n_mels=40",
    "run a.yaml --workers many",
    "run a.yaml --workers",
    "run a.yaml --workers -1",
    "run a.yaml --workers 1 --workers 2",
    "run a.yaml --set",
    "run a.yaml --quiet=maybe",
    "run a.yaml b.yaml",
    "--vresion",
    "--set mel.n_mels=64 run a.yaml",
    "validate a.yaml --explain --json",
    "stages mel mfcc",
    "stages hop",
    "run a.yaml --report r.pdf",
    "run a.yaml --trace-calls 5",
    "sweep a.yaml --repeat 0",
    "run a.yaml --set mel.hop=",
    "compare a.yaml a.yaml --set-b mel.n_mels=40",
    "inspect old.h5 --failed --skipped",
    "run a.yaml --set files.root=nowhere",
    "run a.yaml --progress-every soon",
    "run a.yaml --set files.root=a.yaml",
    "run a.yaml --set files.include=clip*",
    "run a.yaml -q --set files.manifest=list.txt",
    "run a.yaml --set files.root=empty",
    "run a.yaml --set write.path=no/such/out.h5",
    "run a.yaml -q",
    "update two.yaml -q",
    "stages mell",
    "stages whisper",
    "inspect nothing.h5",
    "inspect a.yaml",
    "inspect clips",
    "inspect old.h5",
    "show old.h5",
    "compare a.yaml",
    "compare a.yaml a.yaml --set mel.n_mels=64",
    "compare a.yaml a.yaml --set-b mel.n_mels=64",
    "report run.json",
    "bench a.yaml",
    "bench --dir nowhere",
    "bench --dir a.yaml",
    "bench --json out.json",
    "bench --json=no/out.json",
    "bench --seconds 0",
    "bench --seconds soon",
    "bench --repeat 0",
    "help rnu",
    "run a.yaml --resume=always",
    "run a.yaml --json out.json",
    "run a.yaml --report no/r.html",
    "run a.yaml --threads=4",
    "run a.yaml -j4",
    "run a.yaml -o x.h5",
    "run a.yaml --overwrite",
    "run base.yml",
    "stages MFCCS",
    "stages mel.hopp",
    "stages melspectrogram",
    "verify-parity a.yaml clips",
    "verify-parity a.yaml gone.wav",
    "verify-parity a.yaml old.h5",
    "run a.yaml -q --set files.columns={speaker:'speaker_([0-9]+)'}",
    "run a.yaml -q --set files.columns={speaker:'fi(ne)'}",
    "run a.yaml -q --set segment.length=60s",
    "run a.yaml -q --set files.manifest=semicolons.csv",
    "run a.yaml -q --set files.manifest=short.csv",
    "run a.yaml -q --set files.manifest=table.csv --set files.targets=age",
    "run a.yaml -q --set files.manifest=table.csv --set files.labels=manifest",
    "run a.yaml -q --set files.splits=ratio --set files.split_group=split",
    "run a.yaml -q --set files.splits=top_dir --set files.split_names=[train,test] --set files.root=.",
]


def fill(folder):
    (folder / "a.yaml").write_text(PIPELINE)
    (folder / "two.yaml").write_text(
        PIPELINE + "  second: {stage: npy_write, from: mel, path: second.npy}\n")
    (folder / "part.yaml").write_text(PART)
    (folder / "data.yaml").write_text(PIPELINE.replace("clips", "${DATA}"))
    (folder / "old.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    (folder / "old.npy").write_bytes(b"\x93NUMPY\x01\x00" + bytes(100))
    (folder / "base.yaml").write_text(PIPELINE)
    (folder / "semicolons.csv").write_text("path;label\nclips/fine.wav;dog\n")
    (folder / "short.csv").write_text("path,label\nclips/fine.wav\n")
    (folder / "table.csv").write_text("path,age,lable\nclips/fine.wav,old,dog\n")
    (folder / "list.txt").write_text("clips/fine.wav\n")
    (folder / "empty").mkdir()
    clips = folder / "clips"
    clips.mkdir()
    with wave.open(str(clips / "fine.wav"), "wb") as out:
        out.setparams((1, 2, 16000, 0, "NONE", ""))
        out.writeframes(bytes(2 * 16000))
    (clips / "page.wav").write_text("<html>\n<body>Not found</body>\n")
    (clips / "nothing.wav").write_text("")
    (clips / "damaged.wav").write_bytes(b"RIFF" + bytes(20))
    (clips / "short.flac").write_bytes(b"fLaC" + bytes(10))


def say(program, folder, arguments):
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
    ended = subprocess.run([program, *arguments], cwd=folder, env=environment, timeout=120,
                           stdin=subprocess.DEVNULL, capture_output=True, check=False)
    text = (ended.stdout.decode() + ended.stderr.decode()).replace(str(folder.resolve()), "/here")
    lines = [line for line in text.splitlines() if not line.endswith("nothing was started")]
    return "".join(f"  {line}\n" for line in lines) + f"  [{ended.returncode}]\n"


def block(text):
    return "".join(f"> {line}\n" for line in text.rstrip("\n").split("\n"))


def everything(program):
    out = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        fill(folder)
        for before, after in EDITS:
            assert PIPELINE.count(before) == 1, before
            (folder / "p.yaml").write_text(PIPELINE.replace(before, after))
            out.append(block(after) + say(program, folder, ["validate", "p.yaml"]))
        for command in COMMANDS:
            out.append(f"$ melflow {command}".rstrip() + "\n" + say(program, folder, command.split()))
            (folder / "out.h5").unlink(missing_ok=True)
    return "\n".join(out)


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    stored = pathlib.Path(__file__).with_name("messages.txt")
    now = everything(program)
    if "--write" in sys.argv:
        stored.write_text(now)
        return 0
    before = stored.read_text()
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), now.splitlines(True),
                                               "messages.txt", "now"))
    return 0 if before == now else 1


if __name__ == "__main__":
    sys.exit(main())
