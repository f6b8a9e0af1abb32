#!/usr/bin/env python3
"""Which rivals this Python has, and what they decode with.

In:   versions.py MODULE...
Out:  a line for each that can be imported, module=version: the version of the distribution and of the
      decoding library. Nothing without h5py, numpy and soundfile, which all rivals take.
"""
import importlib
import importlib.metadata
import sys

try:
    import h5py  # noqa: F401
    import soundfile
except ImportError as missing:
    sys.exit(f"versions: {sys.executable}: {missing}")

DECODES_WITH = {
    "av": lambda av: f" (FFmpeg {av.ffmpeg_version_info})",
    "soundfile": lambda _: f" (libsndfile {soundfile.__libsndfile_version__})",
    "torchcodec": lambda torchcodec: f" (FFmpeg {torchcodec.ffmpeg_major_version})",
}


def main():
    for name in sys.argv[1:]:
        try:
            module = importlib.import_module(name.replace("-", "_"))
        except (ImportError, OSError, RuntimeError) as error:  # torchcodec's where there is no FFmpeg
            print(f"versions: {name}: {error}", file=sys.stderr)
            continue
        decodes = DECODES_WITH.get(name, lambda _: "")(module)
        print(f"{name}={importlib.metadata.version(name)}{decodes}")


if __name__ == "__main__":
    main()
