"""Runs melflow over recordings with wrong sizes and other bytes, and looks for silent losses.

Every container is written here, byte by byte, with every sample type and one or two channels, so
that the samples are known. The sizes of the samples and of the whole are then made wrong, other
bytes are put where the samples that are counted end, and behind all of them. With FFmpeg's program
MP3, FLAC and Ogg are made, too, and begin with something else, are cut out of a stream or end
early; they are compared with what melflow gives of the whole file.

In:  tests/long/odd_recordings.py MELFLOW [--keep FOLDER] [--whole SIZE]
     SIZE: of disk_read.whole; 4096 reads through a window.
Out: a line for each kind of file: how many were exact, exact with a warning, part of the samples
     with a warning, failed (which has a reason), or silent: other samples than there are, and not a
     word. Each silent one by name. Exit status 0 where there is none.
"""

import argparse
import array
import collections
import functools
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

RATE = 16000
FRAMES = 6000  # longer than a sector of zeros, which may be padding
PIPELINE = """version: 1
graph:
  files: {{stage: file_list, root: "{root}", include: "**"}}
  read: {{stage: disk_read, from: files, whole: {whole}}}
  decode: {{stage: decode, from: read, downmix: 1, truncated: keep}}
  cut: {{stage: segment, from: decode}}
  rows: {{stage: samples, from: cut}}
  write: {{stage: npy_write, from: rows, path: "{out}", dtype: float32, overwrite: true}}
"""


def f32(value):
    return array.array("f", (value,))[0]


# ---- sample types: bytes of a sample, and its value as a fraction of full scale


def integer(size, order="little", unsigned=False):
    def value(raw):
        return f32((int.from_bytes(raw, order, signed=not unsigned) - (128 if unsigned else 0)) / 2.0 ** (8 * size - 1))

    return size, value


def real(code):
    return struct.calcsize(code), lambda raw: f32(struct.unpack(code, raw)[0])


def mu_law(raw):  # ITU-T G.711
    code = raw[0] ^ 0xFF
    size = (((code & 0x0F) << 3) + 0x84 << (code >> 4 & 7)) - 0x84
    return (-size if code & 0x80 else size) / 32768


def a_law(raw):
    code = raw[0] ^ 0x55
    size, segment = (code & 0x0F) << 4, code >> 4 & 7
    size = size + 8 if segment == 0 else size + 0x108 << segment - 1
    return (size if code & 0x80 else -size) / 32768


TYPES = {
    "u8": integer(1, unsigned=True), "ulaw": (1, mu_law), "alaw": (1, a_law),
    "s8": integer(1), "s16": integer(2), "s24": integer(3), "s32": integer(4), "f32": real("<f"), "f64": real("<d"),
    "s16be": integer(2, "big"), "s24be": integer(3, "big"), "s32be": integer(4, "big"), "f32be": real(">f"), "f64be": real(">d"),
}


def samples_of(body, kind, channels):
    """The first channel's."""
    size, value = TYPES[kind]
    step = size * channels
    return [value(body[at:at + size]) for at in range(0, len(body) - step + 1, step)]


def body_of(kind, channels, rng):
    size, _ = TYPES[kind]
    if not kind.startswith("f"):
        return rng.randbytes(size * channels * FRAMES)
    code = (">" if kind.endswith("be") else "<") + ("f" if size == 4 else "d")
    return b"".join(struct.pack(code, rng.uniform(-0.9, 0.9)) for _ in range(channels * FRAMES))


# ---- containers: (kind, channels, bytes, size of the samples, of the whole or None, bytes behind)


def le(value, size=4):
    return (value % (1 << 8 * size)).to_bytes(size, "little")


def be(value, size=4):
    return (value % (1 << 8 * size)).to_bytes(size, "big")


def pad(data, step=2):
    return bytes(-len(data) % step)


W64_GUID = bytes.fromhex("f3acd3118cd100c04f8edb8a")


def wave_format(kind, channels, number=le, extensible=False):
    size, code = TYPES[kind][0], {"f": 3, "u": 1, "s": 1, "ulaw": 7, "alaw": 6}.get(kind if "law" in kind else kind[0])
    head = number(0xFFFE if extensible else code, 2) + number(channels, 2) + number(RATE) + number(RATE * size * channels)
    head += number(size * channels, 2) + number(8 * size, 2)
    if extensible:
        head += number(22, 2) + number(8 * size, 2) + number(3 if channels == 2 else 4) + number(code, 2)
        head += bytes.fromhex("000000001000800000aa00389b71")
    return b"fmt " + number(len(head)) + head


def riff(kind, channels, body, counted, whole, behind, number=le, name=b"RIFF", extensible=False):
    inside = b"WAVE" + wave_format(kind, channels, number, extensible) + b"data" + number(counted) + body + pad(body) + behind
    return name + number(len(inside) if whole is None else whole - 8) + inside


def rf64(kind, channels, body, counted, whole, behind, name=b"RF64"):
    rest = wave_format(kind, channels) + b"data" + le(-1) + body + pad(body) + behind
    size = 4 + 36 + len(rest) if whole is None else whole - 8
    ds64 = b"ds64" + le(28) + le(size, 8) + le(counted, 8) + le(len(body), 8) + le(0)
    return name + le(-1) + b"WAVE" + ds64 + rest


def w64(kind, channels, body, counted, whole, behind):
    form = wave_format(kind, channels)[8:]
    fmt = b"fmt " + W64_GUID + le(24 + len(form), 8) + form + pad(form, 8)
    rest = b"wave" + W64_GUID + fmt + b"data" + W64_GUID + le(24 + counted, 8) + body + pad(body, 8) + behind
    return b"riff" + bytes.fromhex("2e91cf11a5d628db04c10000") + le(24 + len(rest) if whole is None else whole, 8) + rest


def aiff(kind, channels, body, counted, whole, behind):
    size = TYPES[kind][0]
    common = be(channels, 2) + be(len(body) // size // channels) + be(8 * size, 2) + bytes.fromhex("400cfa00000000000000")
    form, head = b"AIFF", b""
    if kind in ("s16", "f32be", "f64be", "ulaw", "alaw"):
        form, head = b"AIFC", b"FVER" + be(4) + be(0xA2805140)
        common += {"s16": b"sowt", "f32be": b"fl32", "f64be": b"fl64"}.get(kind, kind.encode()) + bytes(2)
    inside = head + b"COMM" + be(len(common)) + common + b"SSND" + be(8 + counted) + bytes(8) + body + pad(body) + behind
    return b"FORM" + be(4 + len(inside) if whole is None else whole - 8) + form + inside


def au(kind, channels, body, counted, whole, behind):
    code = {"ulaw": 1, "s8": 2, "s16be": 3, "s24be": 4, "s32be": 5, "f32be": 6, "f64be": 7, "alaw": 27}[kind]
    return b".snd" + be(24) + be(counted) + be(code) + be(RATE) + be(channels) + body + behind


def caf(kind, channels, body, counted, whole, behind):
    size = TYPES[kind][0]
    flags = ("f" in kind) + 2 * (not kind.endswith("be"))
    desc = struct.pack(">d", RATE) + b"lpcm" + be(flags) + be(size * channels) + be(1) + be(channels) + be(8 * size)
    return b"caff" + be(1, 2) + be(0, 2) + b"desc" + be(32, 8) + desc + b"data" + be(4 + counted, 8) + be(1) + body + behind


def nist(kind, channels, body, counted, whole, behind):
    size, _ = TYPES[kind]
    text = f"NIST_1A\n   1024\nchannel_count -i {channels}\nsample_rate -i {RATE}\n"
    text += f"sample_n_bytes -i {size}\nsample_sig_bits -i {8 * size}\n"
    text += f"sample_byte_format -s{size} {'10' if kind.endswith('be') else '01'}\n"
    text += f"sample_coding -s3 pcm\nsample_count -i {counted // size // channels}\nend_head\n"
    return text.encode().ljust(1024, b" ") + body + behind


CONTAINERS = {
    "wav": (riff, "wav", ("u8", "s16", "s24", "s32", "f32", "f64", "ulaw", "alaw")),
    "wavex": (functools.partial(riff, extensible=True), "wav", ("s16", "s24", "f32")),
    "rifx": (functools.partial(riff, number=be, name=b"RIFX"), "wav", ("s16be", "s24be", "f32be")),
    "rf64": (rf64, "rf64", ("u8", "s16", "s24", "f32")),
    "bw64": (functools.partial(rf64, name=b"BW64"), "wav", ("s16", "s24", "f32")),
    "w64": (w64, "w64", ("u8", "s16", "s24", "f32")),
    "aiff": (aiff, "aiff", ("s8", "s16be", "s24be", "s32be", "s16", "f32be", "ulaw", "alaw")),
    "au": (au, "au", ("s8", "s16be", "s24be", "s32be", "f32be", "f64be", "ulaw", "alaw")),
    "caf": (caf, "caf", ("s16", "s16be", "s24be", "f32be")),
    "nist": (nist, "sph", ("s16", "s16be")),
}
HAS_CHUNKS = ("wav", "wavex", "rifx", "rf64", "bw64", "w64", "aiff", "caf")


def chunk(container, name, data):
    if container == "w64":
        return name + W64_GUID + le(24 + len(data), 8) + data + pad(data, 8)
    if container == "caf":
        return name + be(len(data), 8) + data
    return name + (be if container in ("rifx", "aiff") else le)(len(data)) + data + pad(data)


def wrong_sizes(container, kind, channels, body):
    """(name, the file)"""
    make = CONTAINERS[container][0]
    frame, total = TYPES[kind][0] * channels, len(body)
    counts = {"none": 0, "one": frame, "tenth": total // 10 // frame * frame, "half": total // 2 // frame * frame,
              "less1": total - frame, "all": total, "more": total + 10 * frame, "signed": 0x7FFFFFF0, "open": 0xFFFFFFFF,
              "open64": -1, "wrapped": total % 4096}
    size = len(make(kind, channels, body, total, None, b""))
    for name, counted in counts.items():
        for outer, whole in (("right", None), ("fits", size - total + counted), ("zero", 8), ("open", 7), ("large", size + 5000)):
            yield f"size_{name}_{outer}", make(kind, channels, body, counted, whole, b"")


def seams(container, kind, channels, body):
    """Few samples are counted, and something else is where they end: samples like any bytes."""
    make = CONTAINERS[container][0]
    frame = TYPES[kind][0] * channels
    at = len(body) // 10 // frame // 8 * frame * 8
    things = {"zeros40": bytes(40), "zeros1000": bytes(1000), "id3": b"ID3\x04\0\0\0\0\x01\x00", "tag": b"TAG", "ape": b"APETAGEX",
              "lyrics": b"LYRICSBEGIN", "small": chunk(container, b"LIST", b"INFO" * 4), "letters": b"abcdefgh",
              "second": (b"data" if container != "aiff" else b"SSND") + le(len(body) - at - 8), "lastzeros": bytes(len(body) - at)}
    for name, what in things.items():
        other = body[:at] + what + body[at + len(what):]
        for outer, whole in (("right", None), ("fits", len(make(kind, channels, body[:at], at, None, b"")))):
            yield f"seam_{name}_{outer}", make(kind, channels, other, at, whole, b""), other


def endings(container, kind, channels, body, rng):
    """All samples are counted; something is behind them."""
    make = CONTAINERS[container][0]
    size = len(make(kind, channels, body, len(body), None, b""))
    things = {"zeros10": bytes(10), "zeros4000": bytes(4000), "zeros9000": bytes(9000), "noise3": rng.randbytes(3),
              "noise60": rng.randbytes(60), "noise5000": rng.randbytes(5000), "tag": b"TAG" + bytes(125)}
    if container in HAS_CHUNKS:
        things["list"] = chunk(container, b"LIST", b"INFOINAM" + bytes(30))
        things["lists"] = 2 * things["list"] + chunk(container, b"bext", rng.randbytes(600))
        things["odd"] = chunk(container, b"note", b"odd")
    for cut in (1, 2, 3, 500):
        yield f"end_cut{cut}", make(kind, channels, body, len(body), None, b"")[:-cut]
    for name, what in things.items():
        for outer, whole in (("right", None), ("less", size)):
            yield f"end_{name}_{outer}", make(kind, channels, body, len(body), whole, what)


# ---- compressed files, made by FFmpeg's encoders

ENCODED = {
    "mp3": ("mp3", ["-c:a", "libmp3lame", "-b:a", "64k"]),
    "mp3_bare": ("mp3", ["-c:a", "libmp3lame", "-b:a", "64k", "-write_xing", "0"]),
    "mp2": ("mp2", ["-c:a", "mp2", "-b:a", "96k"]),
    "mp3_in_wav": ("wav", ["-c:a", "libmp3lame", "-b:a", "64k"]),
    "adpcm_in_wav": ("wav", ["-c:a", "adpcm_ima_wav"]),
    "flac": ("flac", ["-c:a", "flac"]),
    "flac_in_ogg": ("oga", ["-c:a", "flac"]),
    "vorbis": ("ogg", ["-c:a", "libvorbis"]),
    "opus": ("opus", ["-c:a", "libopus"]),
}
CHECKED = ("flac", "flac_in_ogg", "vorbis", "opus")  # by checksums
APE_ITEM = le(86) + le(0) + b"Title\0" + b"x" * 86
APE_PARTS = [
    b"APETAGEX" + le(2000) + le(32 + len(APE_ITEM)) + le(1) + le(flags) + bytes(8)
    for flags in (0xA0000000, 0x80000000)
]
APE = APE_PARTS[0] + APE_ITEM + APE_PARTS[1]
ID3 = b"ID3\x04\0\0\0\0\x07\x68" + bytes(1000)


def pages_of(ogg):
    at, out = 0, []
    while at < len(ogg):
        count = ogg[at + 26]
        end = at + 27 + count + sum(ogg[at + 27 : at + 27 + count])
        out.append(ogg[at:end])
        at = end
    return out


def granule(page):
    return int.from_bytes(page[6:14], "little", signed=True)


def check_sum(page):  # RFC 3533, 6
    value = 0
    for byte in page[:22] + bytes(4) + page[26:]:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value & 0x80000000 else 0)) & 0xFFFFFFFF
    return value


def numbered(pages):
    """As a recorder writes them that begins in the middle of a stream."""
    out = [page[:18] + le(number) + page[22:] for number, page in enumerate(pages)]
    return b"".join(page[:22] + le(check_sum(page)) + page[26:] for page in out)


def encoded_variants(name, data, rng):
    """(name, the file, None or the least number of samples, of the whole's end, that are there)"""
    yield "whole", data, None
    half = len(data) // 2
    for length in (1, 40, 5000, 200_000):
        yield f"start_zeros{length}", bytes(length) + data, None
    yield "start_id3", ID3 + data, None
    yield "start_id3zeros", ID3 + bytes(3000) + data, None
    yield "start_ape", APE + data, None
    yield "start_noise", rng.randbytes(300) + data, None
    yield "start_zeroed", bytes(2000) + data[2000:], None
    for length in (1, 50, 300, 1000, 4000):
        yield f"start_cut{length}", data[length:], None
    for length in (40, 700, 5000):
        if "adpcm" not in name:  # its last samples are zeros, too
            yield f"middle_zeros{length}", data[:half] + bytes(length) + data[half:], None
        # No decoder detects samples with changed bits.
        if name in CHECKED or (length > 1000 and "adpcm" not in name):
            yield f"middle_zeroed{length}", data[:half] + bytes(length) + data[half + length:], None
    yield "middle_gone", data[:half] + data[half + 1000 :], None
    for length in (1, 20, 100, 1000, len(data) // 2):
        yield f"end_cut{length}", data[:-length], None
    for what, end in (("zeros40", bytes(40)), ("zeros5000", bytes(5000)), ("tag", b"TAG" + bytes(125)), ("ape", APE),
                      ("noise", rng.randbytes(500))):
        yield f"end_{what}", data + end, None
    if data.startswith(b"OggS"):
        pages = pages_of(data)
        first = next(i for i, page in enumerate(pages) if granule(page) > 0)
        for skipped in (1, 2, len(pages) - first - 2):
            begin = first + skipped
            least = granule(pages[-1]) - (granule(pages[begin - 1]) + 312 if name == "opus" else granule(pages[begin]))
            yield f"pages_gone{skipped}", b"".join(pages[:first] + pages[begin:]), least
            yield f"pages_later{skipped}", numbered(pages[:first] + pages[begin:]), least
        for dropped in (1, 2):
            yield f"pages_fewer{dropped}", b"".join(pages[:-dropped]), None
        yield "pages_without_one", b"".join(pages[: first + 1] + pages[first + 2 :]), None
        yield "pages_twice", data + data, None
    if name.startswith("mp") and "wav" not in name:
        at = [i for i in range(len(data) - 1) if data[i] == 0xFF and data[i + 1] & 0xE6 in (0xE2, 0xE4)]
        for number in (2, 5, 20):  # the first recording counts the others
            yield f"frames_later{number}", data[at[number]:], -(number + 2) * 1152
    if name.endswith("wav"):
        yield "size_tenth", data.replace(b"data" + le(len(data) - data.index(b"data") - 8), b"data" + le(1000)), None


# ---- the run


def run(program, folder, whole):
    """(status, warning, samples) of each file by name."""
    pipeline, out = folder / "odd.yaml", folder / "odd.npy"
    pipeline.write_text(PIPELINE.format(root=folder / "files", out=out, whole=whole))
    ended = subprocess.run([program, "run", str(pipeline), "--json", "--no-progress"], capture_output=True, text=True)
    if ended.returncode not in (0, 3):
        sys.exit(f"the run ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
    told = json.loads(subprocess.run([program, "inspect", str(out), "--json", "--files"], capture_output=True, text=True, check=True).stdout)
    remarks = {remark["path"]: remark["reason"] for remark in told["remarks"]}
    data = out.read_bytes()
    rows = array.array("f", data[10 + int.from_bytes(data[8:10], "little"):])
    return {f["path"]: (f["status"], remarks.get(f["path"], ""), rows[f["offset"]:f["offset"] + f["count"]]) for f in told["files"]}


def is_same(samples, expected, within):
    return len(samples) == len(expected) and all(abs(a - b) <= within for a, b in zip(samples, expected))


def is_end(samples, whole, least):
    """Whether they are the end of the whole; the first ones depend on what is not there."""
    least, settled = least if least > 0 else len(whole) + least, 8000
    return least <= len(samples) <= len(whole) and is_same(samples[settled:], whole[len(whole) - len(samples) + settled:], 1e-2)


def write_files(folder, rng):
    """Writes all files; by name the samples, or the file whose samples (or end) it should have."""
    expected = {}

    def add(kind, name, ending, data, samples):
        path = f"{kind}__{name}.{ending}"
        (folder / path).write_bytes(data)
        expected[path] = samples

    for container, (_, ending, kinds) in CONTAINERS.items():
        for kind in kinds:
            for channels in (1, 2):
                body = body_of(kind, channels, rng)
                samples = samples_of(body, kind, channels)
                prefix = f"{kind}x{channels}_"
                for name, data in wrong_sizes(container, kind, channels, body):
                    add(container, prefix + name, ending, data, samples)
                for name, data, other in seams(container, kind, channels, body):
                    add(container, prefix + name, ending, data, samples_of(other, kind, channels))
                for name, data in endings(container, kind, channels, body, rng):
                    add(container, prefix + name, ending, data, samples)
    if shutil.which("ffmpeg") is None:
        print("no ffmpeg: no MP3, FLAC and Ogg", file=sys.stderr)
        return expected
    for name, (ending, codec) in ENCODED.items():
        for channels in (1, 2):
            source = "aevalsrc=" + "|".join(f"0.5*sin(2*PI*(200+{300 + 50 * c}*t)*t)+0.02*sin({7000 + c}*t)" for c in range(channels))
            made = folder.parent / f"made.{ending}"
            subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "lavfi", "-i", f"{source}:s=48000:d=4", *codec, "-bitexact",
                            str(made)], check=True)
            for variant, data, least in encoded_variants(name, made.read_bytes(), rng):
                add(name, f"x{channels}_{variant}", ending, data, (f"{name}__x{channels}_whole.{ending}", least))
    return expected


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("melflow")
    arguments.add_argument("--whole", default="4MiB")
    arguments.add_argument("--keep", type=pathlib.Path, help="a folder for the silent ones")
    a = arguments.parse_args()
    table = collections.defaultdict(collections.Counter)
    silent = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "files").mkdir()
        expected = write_files(folder / "files", random.Random(1))
        got = run(a.melflow, folder, a.whole)
        for path, samples in expected.items():
            row = table[path.split("__")[0]]
            row["files"] += 1
            status, remark, rows = got.get(path, ("missing", "", []))
            whole, least = (got[samples[0]][2], samples[1]) if isinstance(samples, tuple) else (samples, None)
            within = 1e-3 if isinstance(samples, tuple) else 0  # FFmpeg decodes files that libsndfile cannot
            exact = is_end(rows, whole, least) if least is not None else is_same(rows, whole, within)
            if status == "ok" and exact:
                row["exact, with a warning" if remark else "exact"] += 1
            elif remark:
                row["part, with a warning" if status == "ok" else status] += 1
            else:
                row["silent"] += 1
                silent.append(f"{path}: {status}, {len(rows)} samples of {len(whole)}")
                if a.keep:
                    a.keep.mkdir(exist_ok=True)
                    shutil.copy(folder / "files" / path, a.keep)
    columns = ("files", "exact", "exact, with a warning", "part, with a warning", "failed", "skipped", "silent")
    print("| kind | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for kind, row in table.items():
        print(f"| {kind} | " + " | ".join(str(row[column]) for column in columns) + " |")
    total = sum(table.values(), collections.Counter())
    print("| all | " + " | ".join(str(total[column]) for column in columns) + " |")
    for line in silent:
        print("silent:", line)
    sys.exit(1 if silent else 0)


if __name__ == "__main__":
    main()
