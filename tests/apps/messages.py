"""Wrong inputs of a first day and what the program says of each.

Usage: messages.py MELFLOW            compares with messages.txt, which is beside this file
       messages.py MELFLOW --write    writes it; read what has changed: a message says what is
                                      wrong, where, what is allowed and what to do
messages.txt has the inputs, too: a case begins with a command line ("$ melflow ...") or with "OLD": "NEW", Python's
texts, of which NEW is written in place of OLD ("": of all) in PIPELINE; behind it is what was printed and the exit
status, of pipelines only where it is not 78. A new case is its first line, and --write.
Nothing of it depends on the machine.
"""

import ast
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


def fill(folder):
    (folder / "a.yaml").write_text(PIPELINE)
    (folder / "data.yaml").write_text(PIPELINE.replace("clips", "${DATA}"))
    (folder / "old.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    (folder / "old.npy").write_bytes(b"\x93NUMPY\x01\x00" + bytes(100))
    (folder / "semicolons.csv").write_text("path;label\nclips/fine.wav;dog\n")
    (folder / "some.csv").write_text("path,label\nclips/fine.wav,dog\nclips/fine.wav\n")
    (folder / "quotes.csv").write_text('path,text\nclips/fine.wav,"Yes," she said\n')
    (folder / "latin.csv").write_bytes(b"path,label\nclips/fine.wav,caf\xe9\n")
    (folder / "packed.txt").write_bytes(b"\x1f\x8b\x08\0\0")
    (folder / "wide.csv").write_text("path,text\nclips/fine.wav,\"one\ntwo\"\n")
    (folder / "urls.txt").write_text("https://example.org/a.wav\n")
    (folder / "some_urls.txt").write_text("clips/fine.wav\ns3://bucket/a.wav\nfile:///a.wav\n")
    (folder / "x.tar.bz2").write_bytes(b"BZh91AY&SY" + bytes(20))
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


def said_of(program, folder, case):
    if case.startswith("$ melflow"):
        (folder / "out.h5").unlink(missing_ok=True)
        return say(program, folder, case.split()[2:])
    [(before, after)] = ast.literal_eval("{" + case + "}").items()
    assert PIPELINE.count(before or PIPELINE) == 1, before
    (folder / "p.yaml").write_text(PIPELINE.replace(before or PIPELINE, after))
    return say(program, folder, ["validate", "p.yaml"]).removesuffix("  [78]\n")


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    stored = pathlib.Path(__file__).with_name("messages.txt")
    before = stored.read_text()
    cases = [line for line in before.splitlines() if line.startswith(("$", '"', "'"))]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        fill(folder)
        now = "\n".join(f"{case}\n{said_of(program, folder, case)}" for case in cases)
    if "--write" in sys.argv:
        stored.write_text(now)
        return 0
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), now.splitlines(True),
                                               "messages.txt", "now"))
    return 0 if before == now else 1


if __name__ == "__main__":
    sys.exit(main())
