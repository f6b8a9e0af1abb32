"""Wrong inputs of a first day and what the program says of each.

Usage: messages.py MELFLOW            compares with messages.txt, which is beside this file
       messages.py MELFLOW --write    writes it; read what has changed: a message says what is
                                      wrong, where, what is allowed and what to do
wrong_pipelines.py, wrong_habits.py and wrong_commands.py have the inputs.
In messages.txt each case is what was typed, or the lines written in place of others, and behind it
what was printed and the exit status, of pipelines only where it is not 78. Nothing of it depends on
the machine.
"""

import difflib
import os
import pathlib
import subprocess
import sys
import tempfile
import wave

from wrong_commands import COMMANDS
from wrong_habits import HABITS
from wrong_pipelines import EDITS, PIPELINE


def fill(folder):
    (folder / "a.yaml").write_text(PIPELINE)
    (folder / "data.yaml").write_text(PIPELINE.replace("clips", "${DATA}"))
    (folder / "old.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    (folder / "old.npy").write_bytes(b"\x93NUMPY\x01\x00" + bytes(100))
    (folder / "base.yaml").write_text(PIPELINE)
    (folder / "semicolons.csv").write_text("path;label\nclips/fine.wav;dog\n")
    (folder / "short.csv").write_text("path,label\nclips/fine.wav\n")
    (folder / "some.csv").write_text("path,label\nclips/fine.wav,dog\nclips/fine.wav\n")
    (folder / "pipes.csv").write_text("path|text\nclips/fine.wav|yes\n")
    (folder / "quotes.csv").write_text('path,text\nclips/fine.wav,"Yes," she said\n')
    (folder / "latin.csv").write_bytes(b"path,label\nclips/fine.wav,caf\xe9\n")
    (folder / "packed.txt").write_bytes(b"\x1f\x8b\x08\0\0")
    (folder / "wide.csv").write_text("path,text\nclips/fine.wav,\"one\ntwo\"\n")
    (folder / "urls.txt").write_text("https://example.org/a.wav\n")
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


def block(before, after):
    kept = before.split("\n")
    lines = after.rstrip("\n").split("\n")
    return "".join(f"> {line}\n" for line in lines if line not in kept or after == line)


def everything(program):
    out = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        fill(folder)
        for before, after in EDITS + HABITS:
            assert PIPELINE.count(before) == 1, before
            (folder / "p.yaml").write_text(PIPELINE.replace(before, after))
            said = say(program, folder, ["validate", "p.yaml"])
            out.append(block(before, after) + said.removesuffix("  [78]\n"))
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
