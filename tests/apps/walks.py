"""What the walks have in common: the program's arguments, corpora, and what is in a folder."""

import argparse
import os
import subprocess
import wave


def arguments(**more):
    """MELFLOW, LIBRARY, --jobs and these options with their defaults; paths are absolute."""
    parser = argparse.ArgumentParser()
    parser.add_argument("melflow", type=os.path.abspath)
    parser.add_argument("library", type=os.path.abspath)
    for name, default in {"jobs": 2, **more}.items():
        if default is False:
            parser.add_argument("--" + name, action="store_true")
        else:
            parser.add_argument("--" + name, default=default, type=type(default))
    return parser.parse_args()


def write_wav(path, samples, channels=1):
    """16 bits at 8 kHz; `samples`: bytes."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with wave.open(path, "wb") as f:
        f.setparams((channels, 2, 8000, 0, "NONE", ""))
        f.writeframes(samples)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def contents(folder):
    """name: bytes, of all files below."""
    paths = (os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)
    return {os.path.relpath(path, folder): read(path) for path in paths}


def difference(now, expected):
    """Of two such; "" where there is none."""
    if now.keys() != expected.keys():
        return "there are " + ", ".join(sorted(now))
    others = [name for name, data in now.items() if data != expected[name]]
    return "other bytes in " + ", ".join(others) if others else ""


def begin(command, folder, **environment):
    return subprocess.Popen(command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(command, folder, seconds, **environment):
    return subprocess.run(command, cwd=folder, env={**os.environ, **environment}, timeout=seconds,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)


def counts(log):
    """call: how often, of a log of fail_call.cpp."""
    with open(log) as f:
        return {call: int(n) for call, n in (line.split() for line in f)}
