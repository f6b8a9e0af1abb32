"""Jobs on speech, music and long recordings, and on writing alone.

speech  16 kHz, 80 bands every 10 ms, from WAV, FLAC and MP3 and from one of an hour, one core each
real    the demo's telephone speech, all cores
music   44.1 kHz stereo FLAC and MP3: how close to the time that decoding alone takes
long    one recording of three hours: all cores have to work on one file
write   rows to disk and nothing else
"""
import subprocess
import wave

import corpora
from measure import Failure, Program, said
from setup import (
    Job, compared, lhotse_rival, library_rival, melflow, rivals_of, speech_corpus, worker_name,
)  # fmt: skip

SPEECH, PRESET = "config/pipelines/speech_16k_80mel.yaml", "perf/pipelines/preset_80.yaml"
SPEECH_KINDS = {  # of front end: rows of a recording beside 100 a second
    "speech": 1,
    "kaldi": -2,
    "whisper": 0,
    "lhotse": 0,
}
SPEECH_LIBRARIES = {  # name: front end
    "torchaudio": "speech",
    "librosa": "speech",
    "kaldi-native-fbank": "kaldi",
    "torchaudio-kaldi": "kaldi",
    "transformers": "whisper",
    "lhotse": "lhotse",
}
SPEECH_RIVALS = [  # on compressed recordings: decoder, library, whether also on one of an hour
    ("torchcodec", "torchaudio", True),
    ("torchcodec", "transformers", False),
    ("PyAV", "librosa", True),
    ("PyAV", "torchaudio", False),
    ("soundfile", "librosa", False),
    ("soundfile", "torchaudio", False),
    ("soundfile", "transformers", True),
    ("soundfile", "kaldi-native-fbank", True),
]
SUBSET = 200  # recordings for a Python library
BANDS = 80
FORMATS = {"wav16": "WAV", "flac": "FLAC", "mp3": "MP3"}
# [ln power], [dB]: for libraries that compute in float and sum in another order. Decoders of MP3 differ
# by 1e-6 of full scale, which counts in the band above the encoder's low-pass, at 1e-10.
LN_TOLERANCE, MP3_LN_TOLERANCE, DB_TOLERANCE = 1e-2, 0.5, 5e-2


def speech(setup, file_format):
    data, files = speech_corpus(setup, file_format), setup.scaled(1000, 20)
    named = f"Speech, {FORMATS[file_format]}: {files:,} clips of 10 s"
    if file_format == "wav16":
        wanted = [("soundfile", library) for library in SPEECH_LIBRARIES]
    else:
        wanted = [pair for *pair, _ in SPEECH_RIVALS]
    return speech_job(setup, file_format, named, data, files, 10, wanted)


def speech_hour(setup):
    seconds = setup.scaled(3600, 60)
    data = corpora.make(setup, "speech_hour", 1, 16000, seconds, "flac")
    named = f"Speech, a recording of {seconds / 3600:.2g} h: FLAC"
    wanted = [pair for *pair, hour in SPEECH_RIVALS if hour]
    return speech_job(setup, "hour", named, data, 1, seconds, wanted)


def speech_job(setup, name, named, data, files, seconds, wanted):
    """`files` recordings of so many seconds by the front ends of melflow and of the rivals `wanted`."""
    part, compressed = min(files, SUBSET), name != "wav16"
    rows = {kind: 100 * seconds + more for kind, more in SPEECH_KINDS.items()}  # of a recording
    ours = {}
    for kind, each in rows.items():
        pipeline = SPEECH if kind == "speech" else PRESET
        options = [f"mel.preset={kind}"] if kind in ("whisper", "lhotse") else []
        ours[kind] = melflow(
            setup, "melflow" if kind == "speech" else f"melflow, preset {kind}", pipeline, data,
            files * each, files * each, options, workers=1, baseline=kind == "speech",
        )  # fmt: skip
    programs = [*ours.values()]
    if compressed:
        programs.append(decode_only(setup, data, files * rows["speech"], 1))
    remarks = [
        "One core each: melflow with --workers 1, the libraries with one thread; a ratio is to melflow "
        "with the same front end."
    ]
    there = rivals_of(setup, remarks, sorted({name for pair in wanted for name in pair} | {"lhotse"}))
    tolerance = MP3_LN_TOLERANCE if name == "mp3" else LN_TOLERANCE

    def add(kind, rival):
        rival.like = ours[kind].name
        programs.append(compared(rival, ours[kind], BANDS, tolerance, "ln power"))

    for decoder, library in wanted:
        if decoder in there and library in there:
            kind = SPEECH_LIBRARIES[library]
            title, made = f"{decoder} + {library}" if compressed else library, part * rows[kind]
            add(kind, library_rival(setup, title, library, kind, data, made, made, 1, part, decoder))
    if "lhotse" in there:
        add("lhotse", lhotse_rival(setup, data, part * rows["lhotse"], part))
    if part < files:
        remarks.append(f"The libraries get {part:,} of the {files:,} files.")
    title = f"{named} at 16 kHz, 80 bands every 10 ms, one core"
    return Job(f"speech_{name}", title, "frames", programs, [data], remarks)


def samples_of(path):
    try:
        with wave.open(path) as sound:
            if sound.getframerate() == 8000:
                return sound.getnframes()
    except (wave.Error, EOFError):
        pass
    raise Failure(f"{path}: is not one of the demo's recordings (WAV, 8 kHz)")


def real(setup):
    root = setup.recordings
    paths = [p for p in corpora.recordings(root) if p.endswith(".wav")] if root.is_dir() else []
    if not paths:
        remark = f"Omitted: there are no recordings in {root}; apps/demo.sh fetches them."
        return Job("real", "Real recordings", "files", [], [], [remark])
    lengths = [samples_of(path) for path in paths]
    rows = sum(1 + n // 80 for n in lengths if n > 0)  # some recordings have no samples
    ours = melflow(setup, "melflow", "config/pipelines/demo.yaml", root, len(paths), rows)
    programs, remarks = [ours], []
    for library in rivals_of(setup, remarks, ["torchaudio"]):
        for workers in sorted({1, setup.cores}):
            rival = library_rival(
                setup, worker_name(library, workers), library, "real", root, len(paths), rows, workers
            )
            programs.append(compared(rival, ours, BANDS, DB_TOLERANCE, "dB"))
    title = f"Real recordings: the demo's {len(paths):,} files, {sum(lengths) / 8000 / 3600:.1f} h at 8 kHz"
    return Job("real", title, "files", programs, [root], remarks)


def decode_only(setup, data, amount, threads):
    command = [setup.bin / "melflow_decode_only", "--threads", threads, data]
    return Program("decode only", command, amount)


def counted(setup, data, hop):
    """What is in a folder of compressed recordings: only decoding tells."""
    command = [setup.bin / "melflow_decode_only", "--hop", str(hop), data]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{data} cannot be decoded: {done.stderr.strip()}")
    return said(done.stdout)


def music(setup, file_format):
    files = setup.scaled(200, 4)
    data = corpora.make(setup, f"music_{file_format}", files, 44100, 30, file_format, 2)
    found = counted(setup, data, 512)
    seconds, rows = float(found["audio_seconds"]), int(found["transforms"])
    ours = melflow(setup, "melflow", "perf/pipelines/music.yaml", data, seconds, rows)
    programs = [ours, decode_only(setup, data, seconds, setup.cores)]
    title = f"Music, {FORMATS[file_format]}: {files} files of 30 s, 44.1 kHz stereo, 128 bands"
    return Job(f"music_{file_format}", title, "s of audio", programs, [data])


def long(setup):
    seconds = setup.scaled(3 * 3600, 60)
    data = corpora.make(setup, "long", 1, 44100, seconds, "flac")
    options = ["memory.host=256MiB"]
    ours = melflow(setup, "melflow", SPEECH, data, seconds, 1 + seconds * 100, options)
    programs = [ours, decode_only(setup, data, seconds, 1)]
    title = f"Long: one FLAC of {seconds / 3600:.2g} h at 44.1 kHz, resampled to 16 kHz, 80 bands"
    return Job("long", title, "s of audio", programs, [data])


def write(setup):
    rows = setup.scaled(9_376_431, 10_000)

    def program(name, by, file, **more):
        output = setup.output(file)
        command = [setup.bin / "melflow_write_rows", "--by", by, "--rows", rows]
        command += ["--threads", setup.cores, output]

        def verify(_):
            if output.stat().st_size < rows * 128:
                raise Failure(f"{name}: {output} is too short")
            return {"rows": rows}

        return Program(
            name, command, rows * 128 / 1e6, output, rows=rows, own_clock=True, verify=verify, **more
        )

    programs = [
        program("RowFile (HDF5)", "rowfile", "write.h5", baseline=True),
        program("pwrite, flat file", "pwrite", "write.f32"),
    ]
    title = f"Writing alone: {rows:,} rows of 32 columns, {rows * 128 / 1e9:.2f} GB"
    return Job("write", title, "MB", programs, [])


def deflate(setup):
    rows = setup.scaled(2_000_000, 100_000)

    def program(name, by, threads, **more):
        output = setup.output(f"deflate_{by}_{threads}.h5")
        command = [setup.bin / "melflow_write_rows", "--by", by, "--rows", rows]
        command += ["--threads", threads, "--deflate", 1, output]

        def verify(_):
            if output.stat().st_size < rows * 128 * 0.5:
                raise Failure(f"{name}: {output} is too short")
            return {"rows": rows}

        return Program(
            name, command, rows * 128 / 1e6, output, rows=rows, own_clock=True, verify=verify, **more
        )

    programs = [
        program("RowFile, 1 thread", "rowfile", 1, baseline=True),
        program("H5Dwrite with filters, 1 thread", "h5dwrite", 1),
    ]
    if setup.cores > 1:
        programs.append(program(f"RowFile, {setup.cores} threads", "rowfile", setup.cores))
    title = f"Writing compressed: {rows:,} rows of 32 columns, shuffle and deflate 1"
    return Job("deflate", title, "MB", programs, [])
