"""Names that a stranger chose, in every place where melflow takes, stores or shows them.

Names are drawn with line breaks, quotes, variables, escapes, marks of YAML and HTML, commands, codes of terminals, and bytes that
are not UTF-8. Corpora, lists, archives, outputs and jobs are made with them. Nothing may run, nothing may be written elsewhere,
no code may reach a terminal, and what is read back has the same names, or was refused in words.

In:  tests/python/hostile_names.py MELFLOW [--count N] [--seed N] [PLACE ...]
     Run by a Python with melflow and h5py. PLACE: some of PLACES below; none: all. N: names in each place.
Out: a line for each place: names, corpora, and how many of these were refused; each difference. Exit status 0 where there is none.
     The same seed gives the same names.
"""

import argparse
import concurrent.futures
import csv
import html.parser
import io
import itertools
import json
import os
import pathlib
import pty
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import wave
import zipfile

import h5py
import numpy as np

import corpus

PIECES = [
    "\n", "\r", "\r\n", "\t", " ", "  ", "\x01", "\x1b[2J", "\x1b]0;title\x07", "\x7f", "\x85", "\x9b31m", "\u2028", "\u2029", "\ufeff", "\u202e",
    "\uffff", "\udcff", "\udce9", "\udc80x", "é", "e\u0301", "日本", "🎵", "'", '"', "''", "\\", "\\\\", "\\n", "\\x2f", "\\u000a", "\\\"",
    "$", "$$", "${HOME}", "${HOME:-x}", "${MISSING}", "${0xE9}", "${", "$(touch PWNED)", "`touch PWNED`", ";touch PWNED;", "|touch PWNED|",
    "&touch PWNED&", "#", " #", ": ", ":", "- ", "-", "? ", "[", "]", "{", "}", "{}", "{name}", "{folder}", "{id}", "{source}", ",", "&a", "*a",
    "!!str ", "!x", "%YAML 1.2", "%2F", "%00", "@", "<<", "~", "null", "true", "12", "1e3", "---", "...", "=", "|", ">", "*", "**", "?", "(", ")",
    "(?i)", "(x)", "[a-z]", ".json:k", ".txt", ".cls", "..", ".", "<script>alert(1)</script>", "</td>", "<b a='", "&amp;", "&#x3c;", "<!--", "]]>",
    "train", "test", "val", "dev", "rest", "label", "path", "text", "--trust", "-rf", "os:system", "call: \"os:system\"", "plugins: [evil.so]",
    "\nplugins: [\"evil.so\"]\n#", "\nversion: 9\n", "\n---\n", "\"\n    call: \"os:system\"\n    arguments: {command: \"touch PWNED\"}\n    x: \"",
    "\n    stage: file_list\n    call: \"os:system\"\n    arguments: {command: \"touch PWNED\"}\n  d: {stage: discard, from: more}\n  more: #",
    "\", call: \"os:system\", arguments: {command: \"touch PWNED\"}, x: \"", "\r    call: os:system #", "\u2028call: \"os:system\"",
]
# Splits that are allowed, though they look like no names.
SPLITS = ["train", "test ${HOME}", "val: {#", "<b>\"'", "a..b", "$(touch PWNED)", "dev\\n", "<<", "~", "日本 &a *b"]
UNSEEN = ("Cc", "Cs", "Zl", "Zp")
CODES_OF_THE_BAR = re.compile(rb"\x1b\[(K|J|\d+A)|\r")
HEAD = """version: 1
graph:
  files: {{stage: file_list, {files}}}
  read: {{stage: disk_read, from: files}}
  decode: {{stage: decode, from: read}}
  mel: {{stage: mel, from: decode, sample_rate: 8000, n_fft: 256, hop: 128, n_mels: 8}}
"""
SINK = "  {name}: {{stage: {stage}, from: mel, path: {path}{more}}}\n"


class Different(Exception):
    """What is not as it has to be."""


def sound():
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(range(200)) * 8)
    return out.getvalue()


SOUND = sound()


def is_utf8(name):
    return not any("\ud800" <= c <= "\udfff" for c in name)


class Names:
    """Draws names, of files if nothing else is said: without / and zero bytes, and not hidden."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0

    def one(self, begin="", end="", utf8=False, without=""):
        while True:
            name = begin + "".join(self.random.choice(PIECES) for _ in range(self.random.randint(1, 4))).replace("/", "\u2215")
            if name.startswith(".") or not begin and name.isascii() and name.isalnum():
                name = "n" + name
            if len(os.fsencode(name)) < 200 and not any(c in name for c in without) and (is_utf8(name) or not utf8):
                self.count += 1
                return f"{name}~{self.count}{end}"


def is_seen(text):
    """Whether a terminal only shows it."""
    return all(c == "\n" or (unicodedata.category(c) not in UNSEEN and c not in "\u200e\u200f\u061c" and not "\u202a" <= c <= "\u202e" and
                             not "\u2066" <= c <= "\u2069") for c in text)


def shown(name, kept=""):
    """As messages show a name; pages keep line feeds and tabs."""
    out = ""
    for c in name:
        if "\udc80" <= c <= "\udcff":
            out += f"\\x{ord(c) - 0xDC00:02x}"
        elif c in "\n\t" and c not in kept:
            out += "\\n" if c == "\n" else "\\t"
        else:
            out += c if c in kept or (c != "\n" and is_seen(c) and c not in "\ufeff\ufffe\uffff") else f"\\u{ord(c):04x}"
    return out


class Batch:
    """A folder in which the program runs, with what it may not touch beside it."""

    def __init__(self, program, folder, seed):
        self.program, self.names, self.refused = program, Names(seed), 0
        self.base = pathlib.Path(folder)
        self.work, self.victim = self.base / "work", self.base / "victim"
        for place in (self.work, self.victim, self.base / "home"):
            place.mkdir()
        for name in ("text", "feats.scp", "utt2spk", "recordings.csv"):
            (self.victim / name).write_text("precious")
        self.environment = {**os.environ, "HOME": str(self.base / "home"), "TMPDIR": str(self.base), "XDG_CACHE_HOME": str(self.base / "home")}

    def write(self, path, data=SOUND):
        path = self.work / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else os.fsencode(data))
        return path

    def run(self, *words, code=(0,), terminal=False):
        command = [self.program, *map(str, words)]
        if terminal:
            ours, theirs = pty.openpty()
            child = subprocess.Popen(command, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
            os.close(theirs)
            said = b""
            try:
                while data := os.read(ours, 1 << 16):
                    said += data
            except OSError:  # its other side is closed
                pass
            os.close(ours)
            status, out = child.wait(), CODES_OF_THE_BAR.sub(b"", said)
        else:
            ended = subprocess.run(command, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True)
            status, out = ended.returncode, ended.stdout + ended.stderr
        try:
            text = out.decode()
        except UnicodeDecodeError:
            raise Different(f"{words[0]} prints what is not UTF-8: {out[-500:]!r}") from None
        if not is_seen(text):
            raise Different(f"{words[0]} prints codes: {next(line for line in text.splitlines(True) if not is_seen(line))!r}")
        if status not in code:
            raise Different(f"{words[0]} ended with {status}: {text[-1000:]}")
        return status, text

    def look(self, *made):
        """Nothing else than what the program may write is there."""
        for place in self.victim.iterdir():
            if place.read_text() != "precious":
                raise Different(f"{place} was written")
        beside = {p.name for p in self.base.iterdir()} - {"work", "victim", "home"}
        there = {p.name for p in self.work.iterdir()} - set(made)
        if beside or there:
            raise Different(f"written: {sorted(beside | there)}")

    def pipeline(self, files, *sinks):
        self.write("p.yaml", HEAD.format(files=files) + "".join(
            SINK.format(name=f"to{i}", stage=stage, path=path, more=more) for i, (stage, path, more) in enumerate(sinks)))

    def rows(self, path):
        """path, label, split and texts of each recording, and what became of it."""
        with h5py.File(self.work / path) as file:
            texts = {name: [os.fsdecode(t) for t in file["columns"][name][:]] for name in file["columns"]} if "columns" in file else {}
            names = {of: [os.fsdecode(n) for n in file[of]["name"][:]] + [""] for of in ("labels", "splits")}
            columns = zip(file["files/path"][:], file["files/label"][:], file["files/split"][:], file["files/status"][:])
            return [(os.fsdecode(p), names["labels"][label], names["splits"][split], {k: v[i] for k, v in texts.items()}, status)
                    for i, (p, label, split, status) in enumerate(columns)]


def same(what, found, expected):
    if found != expected:
        first = next(((f, e) for f, e in itertools.zip_longest(found, expected) if f != e), None)
        raise Different(f"{what}: {len(found)} and {len(expected)}, the first that differ: {first!r}")


# ---- init

def members(names, **rules):
    """Paths in two folders, or for each of two splits in two folders."""
    begins = names.random.choice((("train", "test"), ("", "")))
    tops = [names.one(begin, **rules) for begin in begins]
    seconds = [names.one(**rules) for _ in range(2)] if names.random.random() < 0.7 else [""]
    return [f"{top}/{second}/{names.one(end='.wav', **rules)}".replace("//", "/") for top in tops for second in seconds]


def tar(batch, path, paths):
    with tarfile.open(path, "w", format=batch.names.random.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))) as file:
        for name in paths:
            info = tarfile.TarInfo(name)
            info.size = len(SOUND)
            file.addfile(info, io.BytesIO(SOUND))


def pack(batch, path, paths):
    with zipfile.ZipFile(path, "w") as file:
        for name in paths:
            file.writestr(zipfile.ZipInfo(name), SOUND)


ZIP = dict(utf8=True, without="\\")  # of which programs of another system make folders
CELLS = {"csv": dict(without="\r"), "tsv": dict(without="\t\r\n\""), "jsonl": dict(utf8=True)}


def of_folder(batch, base):
    out = members(batch.names)
    beside = "." + batch.names.one(end=".txt")
    for path in out:
        batch.write(f"{base}/{path}")
        batch.write(f"{base}/{path[:-4]}{batch.names.random.choice((beside, '.txt'))}", "a text")
    return base, out


def of_tar(batch, base):
    out = members(batch.names)
    batch.write(f"{base}/x", b"")
    tar(batch, batch.work / base / "a.tar", out)
    return f"{base}/a.tar", out


def of_zip(batch, base):
    out = members(batch.names, **ZIP)
    batch.write(f"{base}/x", b"")
    pack(batch, batch.work / base / "a.zip", out)
    return f"{base}/a.zip", out


def table(kind, columns, rows):
    out = io.StringIO(newline="")
    if kind == "jsonl":
        return "".join(json.dumps(dict(zip(columns, row))) + "\n" for row in rows)
    csv.writer(out, delimiter="\t" if kind == "tsv" else ",", quoting=csv.QUOTE_NONE if kind == "tsv" else csv.QUOTE_ALL,
               quotechar=None if kind == "tsv" else '"', lineterminator="\n").writerows([columns, *rows])
    return out.getvalue()


def of_table(batch, base):
    names, kind = batch.names, batch.names.random.choice(list(CELLS))
    rules = CELLS[kind]
    out = [names.one(end=".wav", **rules) for _ in range(3)]
    columns = [names.random.choice(("path", names.one(utf8=True, without="\t\r\n\""))), "label", names.one(utf8=True, without="\t\r\n\"")]
    for path in out:
        batch.write(f"{base}/{path}")
    name = names.one(end="." + kind)
    batch.write(f"{base}/{name}", table(kind, columns, [(path, str(i), "x") for i, path in enumerate(out)]))
    return names.random.choice((base, f"{base}/{name}")), out


def of_lines(batch, base):
    out = [batch.names.one("f", ".wav", without="\r\n") for _ in range(3)]
    for path in out:
        batch.write(f"{base}/{path}")
    name = batch.names.one(end=".txt")
    batch.write(f"{base}/{name}", "".join(path + "\n" for path in out))
    return f"{base}/{name}", out


def of_kaldi(batch, base):
    audio = batch.write("audio/a.wav")
    for begin in ("train", ""):
        batch.write(f"{base}/{batch.names.one(begin)}/wav.scp", f"u{begin} {audio}\n")
    return base, [str(audio)]


def of_nemo(batch, base):
    out = [batch.names.one(end=".wav", utf8=True) for _ in range(2)]
    begin, end = batch.names.one(), batch.names.one()
    for path, split in zip(out, ("train", "val")):
        batch.write(f"{base}/{path}")
        batch.write(f"{base}/{begin}{split}{end}.json", json.dumps({"audio_filepath": path, "duration": 0.2, "text": "x"}) + "\n")
    return base, out


KINDS = {of_folder: set(), of_tar: set(), of_zip: set(), of_lines: set(), of_table: {"refused"}, of_kaldi: {"refused"}, of_nemo: {"some"}}


def init(batch, _):
    """What it writes is valid, runs nothing, and lists the same files."""
    kind = batch.names.random.choice(list(KINDS))
    given, out = kind(batch, batch.names.one())
    before = [p.name for p in batch.work.iterdir()]
    status, said = batch.run("init", "--from", f"./{given}", "p.yaml", code=(0, 1) if "refused" in KINDS[kind] else (0,))
    if status == 1:
        batch.refused += 1
        return batch.look(*before)
    batch.run("validate", "p.yaml", "--var", "OUT=o.h5")
    batch.run("run", "p.yaml", "-q", "--var", "OUT=o.h5")
    rows = batch.rows("o.h5")
    found = sorted({row[0] for row in rows})
    if "some" in KINDS[kind] and found and "not used" in said:
        out = [path for path in out if path in found]
    same(f"the files of {kind.__name__} {given!r}", found, sorted(out))
    for path, label, split, _, _ in rows:
        if kind in (of_folder, of_tar, of_zip) and ((label and label not in path.split("/")) or (split and split != path.split("/")[0])):
            raise Different(f"{path!r} has the label {label!r} and the split {split!r}")
    return batch.look(*before, "p.yaml", "o.h5")


# ---- lists and archives

def listed(batch, count):
    names, kind = batch.names, batch.names.random.choice(["txt", *CELLS])
    rows = []
    while names.count < count:
        rules = CELLS.get(kind, dict(without="\r\n"))
        rows.append((names.one("f" if kind == "txt" else "", ".wav", **rules), names.one(utf8=True, without=rules.get("without", "")),
                     names.random.choice([s for s in SPLITS]), names.one(utf8=True, without=rules.get("without", ""))))
    for path, *_ in rows:
        batch.write(f"c/{path}")
    columns = ["path", "label", "split", "said"]
    batch.write(f"l.{kind}", "".join(row[0] + "\n" for row in rows) if kind == "txt" else table(kind, columns, rows))
    batch.pipeline(f"root: c, manifest: l.{kind}" + ("" if kind == "txt" else ", labels: manifest, columns: [said]"),
                   ("hdf5_write", "o.h5", ""))
    batch.run("run", "p.yaml", "-q")
    found = sorted((path, label, split, texts.get("said", "")) for path, label, split, texts, _ in batch.rows("o.h5"))
    same(f"the lines of a .{kind}", found, sorted(row if kind != "txt" else (row[0], "", "", "") for row in rows))
    batch.look("c", f"l.{kind}", "p.yaml", "o.h5")


def archive(batch, count):
    names, kind = batch.names, batch.names.random.choice(("tar", "zip"))
    paths = []
    while names.count < count:
        rules = ZIP if kind == "zip" else {}
        paths.append(f"{names.one(**rules)}/{names.one(end='.wav', **rules)}")
    (tar if kind == "tar" else pack)(batch, batch.work / f"c.{kind}", paths)
    batch.pipeline(f"root: c.{kind}, labels: top_dir", ("hdf5_write", "o.h5", ""))
    batch.run("run", "p.yaml", "-q")
    same("the members", sorted(row[:2] for row in batch.rows("o.h5")), sorted((path, path.split("/")[0]) for path in paths))
    batch.look(f"c.{kind}", "p.yaml", "o.h5")


# ---- outputs

def corpus_in(batch, count, root="c"):
    """Files by split and label, every tenth of which is no sound."""
    names, out = batch.names, []
    while names.count < count:
        label = names.one()
        for split in names.random.sample(SPLITS, 2):
            path = f"{split}/{label}/{names.one(end='.wav')}"
            batch.write(f"{root}/{path}", SOUND if names.random.random() < 0.9 else "no sound")
            out.append((path, label, split))
    return sorted(out)


def output(batch, count):
    """Every format has the names, and every verb shows them."""
    import melflow
    expected = corpus_in(batch, count)
    paths = ["o.h5", "array.npy", "k.ark"]
    batch.pipeline("root: c, labels: top_dir, splits: top_dir, columns: {where: '(?s)/(.*)/'}", ("hdf5_write", "o.h5", ""),
                   ("npy_write", "array.npy", ", split_files: false"), ("kaldi_write", "k.ark", ""), ("tar_write", "t.tar", ", split_files: false"))
    batch.run("run", "p.yaml", "-q", code=(0, 3))
    same("the HDF5 file", sorted(row[:3] for row in batch.rows("o.h5")), expected)
    for path in paths[:2]:  # not those that lie apart
        rows = melflow.open(batch.work / path)
        same(path, sorted((p, rows.label_names[label], rows.split_names[split]) for p, label, split in zip(rows.path, rows.label, rows.split)),
             expected)
    for path in paths:
        batch.run("verify", path)
        batch.run("inspect", path, "--files")
        told = json.loads(batch.run("inspect", path, "--files", "--json")[1])
        same("inspect", sorted(file["path"] for file in told["files"]), [p for p, *_ in expected])
    made = [p.name for p in batch.work.iterdir() if re.fullmatch(r"(o\.h5|array\.|k\.|t[.-]).*", p.name)]
    batch.look("c", "p.yaml", *made)


def is_name(name):
    """Whether that may be the name of a split or a column."""
    return 0 < len(name.encode("utf-8", "replace")) <= 100 and not name.startswith(".") and "/" not in name and shown(name) == name


def export(batch, _):
    """An output of a stranger: either it is refused, or the export has its names, and is in its folder."""
    import melflow
    names, formats = batch.names, ["tar", "shar", "kaldi"]
    for format, library in (("safetensors", "safetensors"), ("zarr", "zarr"), ("parquet", "pyarrow")):
        try:
            __import__(library)
            formats.append(format)
        except ImportError:
            pass
    for i in range(4):
        batch.write(f"c/{SPLITS[i % 2]}/label{i // 2}/{i}.wav")
    batch.pipeline("root: c, labels: parent_dir, splits: top_dir, columns: {a: '(.)'}",
                   ("npy_write", "o.npy", ", split_files: false"))
    batch.run("run", "p.yaml", "-q")
    path, document, index = batch.work / "o.npy", batch.work / "o.index.json", batch.work / "o.index.npy"
    about, records = json.loads(document.read_text()), np.load(index)
    is_hostile = names.random.random() < 0.5
    outside = [str(batch.victim), f"../../{batch.victim.name}", "..", ".", "", "a/b", f"x/../../../{batch.victim.name}/y"]
    plain = [name for name in SPLITS if name not in about["splits"]]
    splits = [names.random.choice([*outside, names.one(utf8=True)]) if is_hostile else names.random.choice(plain) for _ in range(1)]
    column = names.random.choice([*outside, names.one(utf8=True)]) if names.random.random() < 0.3 else names.random.choice(["a", *plain])
    about["splits"][0] = splits[0]
    about["labels"] = [names.one(utf8=True) for _ in about["labels"]]
    about["columns"] = {column: [names.one(utf8=True) for _ in records]}
    wide = np.dtype([(n, "S400" if n == "path" else records.dtype[n].str, *([records.dtype[n].shape] if records.dtype[n].shape else []))
                     for n in records.dtype.names])
    changed = np.zeros(records.shape, wide)
    for field in records.dtype.names:
        changed[field] = records[field]
    paths = [names.random.choice(("", "/", "../", "a/../../", f"{batch.victim}/")) + names.one() for _ in records]
    changed["path"] = [os.fsencode(p) for p in paths]
    np.save(index, changed)
    document.write_text(json.dumps(about))
    corpus.rehash(str(path))
    is_allowed = is_name(splits[0]) and is_name(column)
    before = [p.name for p in batch.work.iterdir()]
    for format in formats:
        folder = batch.work / f"out_{format}"
        try:
            melflow.export(path, folder, format)
        except melflow.RunError as error:
            if is_allowed:
                raise Different(f"export {format} refuses {splits} {column!r}: {error}") from None
            batch.refused += format == formats[0]
            continue
        if not is_allowed:
            raise Different(f"export {format} takes {splits} {column!r}")
        with open(folder / "recordings.csv", encoding="utf-8", errors="surrogateescape", newline="") as table:
            listed = list(csv.DictReader(table))
        same(f"recordings.csv of {format}", [row["path"] for row in listed], paths)
        same(f"texts of {format}", [row.get(column, row.get(column + "_")) for row in listed], about["columns"][column])
    batch.look(*before, *(f"out_{format}" for format in formats))
    if not is_allowed:
        for verb in ("verify", "inspect", "repair"):
            batch.run(verb, "o.npy", code=(1,))
        batch.look(*before)


def job(batch, count):
    """A corpus whose folder has such a name, too, in parts: as in one run."""
    root = batch.names.one(utf8=True)
    expected = corpus_in(batch, count, root)
    batch.pipeline('root: "${DATA}", labels: parent_dir, splits: top_dir, columns: {text: \'([^/]*)/[^/]*$$\'}', ("hdf5_write", "o.h5", ""))
    batch.run("plan", "p.yaml", "--var", f"DATA={root}", "-o", "job", "--part", "8KiB")
    batch.run("work", "job", "-q", code=(0, 3))
    batch.run("status", "job", code=(0, 3))
    batch.run("merge", "job", "-q", code=(0, 3))
    os.rename(batch.work / "o.h5", batch.work / "job.h5")
    batch.run("run", "p.yaml", "--var", f"DATA={root}", "-q", code=(0, 3))
    same("the job", batch.rows("job.h5"), batch.rows("o.h5"))
    same("its names", sorted(row[0] for row in batch.rows("o.h5")), sorted(path for path, *_ in expected))
    batch.look(root, "p.yaml", "job", "job.h5", "o.h5")


# ---- what is shown

class Page(html.parser.HTMLParser):
    """The cells of the tables, and all tags with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add((tag, *(name for name, _ in attributes)))
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data):
        if self.cells and self.lasttag == "td":
            self.cells[-1] += data

    def handle_comment(self, data):
        self.tags.add(("comment", data))


def report(batch, count):
    """The page has the names as text, and no other tags than one without them has."""
    batch.write("c/good.wav")
    batch.write("c/bad.wav", "no sound")
    batch.pipeline("root: c", ("hdf5_write", "o.h5", ", overwrite: true"))
    batch.run("run", "p.yaml", "-q", "--report", "r.html", code=(3,))
    plain = Page((batch.work / "r.html").read_text(encoding="utf-8"))
    names = [batch.names.one(end=".wav") for _ in range(count)]
    for name in names:
        batch.write(f"c/{name}", "no sound")
    batch.run("run", "p.yaml", "-q", "--report", "r.html", "--json=r.json", code=(3,))
    page = Page((batch.work / "r.html").read_text(encoding="utf-8"))
    json.loads((batch.work / "r.json").read_text(encoding="utf-8"))
    # Charts of what happened meanwhile are not on every page.
    if other := {tag for tag in page.tags - plain.tags if tag[0] not in ("line", "path", "svg", "text")}:
        raise Different(f"tags: {sorted(other)}")
    cells = {cell.rstrip("\n") for cell in page.cells}
    same("names on the page", [name for name in names if shown(name, "\n\t") not in cells], [])
    batch.look("c", "p.yaml", "o.h5", "r.html", "r.json")


def terminal(batch, count):
    """With its bar, on a terminal; run() looks at what is printed."""
    corpus_in(batch, count)
    batch.pipeline("root: c, labels: parent_dir, splits: top_dir", ("hdf5_write", "o.h5", ""))
    batch.run("run", "p.yaml", "-v", code=(0, 3), terminal=True)
    for words in (("run", "p.yaml"), ("update", "p.yaml", "--dry-run"), ("inspect", "o.h5", "--files"), ("inspect", "o.h5", "--json", "--files"),
                  ("show", "o.h5", "--file", batch.names.one(), "-o", "a.svg"), ("init", "--from", "./c", "q.yaml")):
        batch.run(*words, code=(0, 1, 3), terminal=True)
    batch.look("c", "p.yaml", "o.h5", "q.yaml")


# How many names a batch has, about; those without a number have some of their own.
PLACES = {"init": (init, 0), "list": (listed, 100), "archive": (archive, 100), "output": (output, 60), "export": (export, 0), "job": (job, 60),
          "report": (report, 25), "terminal": (terminal, 40)}


def one_batch(program, place, seed):
    """Names drawn, whether it was refused, and what is different."""
    make, count = PLACES[place]
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(program, folder, f"{seed}:{place}")
        try:
            make(batch, count)
        except Different as error:
            return batch.names.count, batch.refused, f"{place} with --seed {seed}: {error}"
        return batch.names.count, batch.refused, ""


def differences(program, place, count, seed, jobs=1):
    """Yields what is different, and at the end a line on how many were tried. Batch i has the seed SEED+i."""
    names = batches = refused = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = set()
        for number in itertools.count(seed):
            if names < count:
                waiting.add(pool.submit(one_batch, program, place, number))
            if not waiting:
                break
            if names >= count or len(waiting) >= 2 * jobs:
                ended, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                for one in ended:
                    drawn, was_refused, why = one.result()
                    names, batches, refused = names + drawn, batches + 1, refused + was_refused
                    if why:
                        yield why
    yield f"{place}: {names} names in {batches} corpora, {refused} of them refused"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("melflow", type=os.path.abspath)
    arguments.add_argument("places", nargs="*", metavar="PLACE")
    arguments.add_argument("--count", type=int, default=10_000)
    arguments.add_argument("--seed", type=int, default=1)
    a = arguments.parse_intermixed_args()
    if unknown := set(a.places) - set(PLACES):
        arguments.error(f"{', '.join(unknown)}: the places are {', '.join(PLACES)}")
    has_any = False
    for place in a.places or PLACES:
        *found, total = differences(a.melflow, place, a.count, a.seed, os.cpu_count())
        for line in found:
            print(ascii(line), flush=True)
        print(total, f"{len(found)} differ", sep="; ", flush=True)
        has_any = has_any or bool(found)
    sys.exit(has_any)


if __name__ == "__main__":
    main()
