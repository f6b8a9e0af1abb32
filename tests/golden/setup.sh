#!/usr/bin/env bash
# Makes the Python environment of make_golden.py, make_presets.py, make_recipes.py and make_filterbanks.py, from a
# bare Debian 12. Only needed to recompute the expected numbers: the tests read the JSON files and
# need no Python.
#
# In:  setup.sh DIR
# Out: DIR, a virtual environment with librosa, soundfile, kaldi-native-fbank, transformers
#      (requirements.txt), speechbrain, NeMo, hifi-gan, lhotse, openai-whisper and, from Debian, torch 1.13 and torchaudio 0.13.1;
#      DIR/openai-whisper/mel_filters.npz, from that package.
#
# Then:
#   tests/support/fetch_audio.sh AUDIO asterisk-core-sounds-en-wav asterisk-core-sounds-ru-wav \
#     alsa-utils
#   DIR/bin/python tests/golden/make_golden.py AUDIO
#   DIR/bin/python tests/golden/make_real.py AUDIO
#   DIR/bin/python tests/golden/make_presets.py
#   DIR/bin/python tests/golden/make_recipes.py
#   DIR/bin/python tests/golden/make_pcen.py
#   DIR/bin/python tests/golden/make_lengths.py
#   DIR/bin/python tests/golden/make_trim.py
#   DIR/bin/python tests/golden/make_synthetic.py
#   DIR/bin/python tests/golden/make_filterbanks.py DIR/openai-whisper/mel_filters.npz
set -euo pipefail

if (($# != 1)); then
  echo "usage: setup.sh DIR" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

sudo=()
((EUID == 0)) || sudo=(sudo)
if ! /usr/bin/python3 -c 'import ensurepip, torchaudio' 2>/dev/null; then
  "${sudo[@]}" apt-get update
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    python3-venv python3-torchaudio
fi

# Debian's own interpreter, because its torchaudio is built for no other.
/usr/bin/python3 -m venv --system-site-packages "$1"
"$1/bin/pip" install --requirement "$here/requirements.txt"
# Their other requirements, such as PyPI's torch, are for parts that the scripts do not use.
"$1/bin/pip" install --no-deps speechbrain==0.5.16 nemo_toolkit==2.7.3 hifi-gan==0.0.2 lhotse==1.33.0 \
  openai-whisper==20250625
# The parts of lhotse and openai-whisper that make_recipes.py imports need these, too.
"$1/bin/pip" install --no-deps click==8.5.1 cytoolz==1.2.0 intervaltree==3.2.1 lilcom==1.8.2 \
  sortedcontainers==2.4.0 tabulate==0.10.0 toolz==1.2.0 more-itertools==11.2.1 tiktoken==0.14.0

# The filters as published with the package.
whisper=openai_whisper-20250625
mkdir -p "$1/openai-whisper"
"$1/bin/pip" download --no-deps --no-binary :all: --dest "$1/openai-whisper" openai-whisper==20250625
tar -xzf "$1/openai-whisper/$whisper.tar.gz" -C "$1/openai-whisper" --strip-components=3 \
  "$whisper/whisper/assets/mel_filters.npz"

"$1/bin/python" -c 'import kaldi_native_fbank, lhotse, librosa, torchaudio, transformers, whisper
print("librosa", librosa.__version__, "torchaudio", torchaudio.__version__)
assert torchaudio.__version__.startswith("0.13.1")'
