#!/usr/bin/env bash
# Makes the Python environment of make_golden.py, from a bare Debian 12. Only needed to make the
# expected numbers anew: the tests read mel_golden.json and need no Python.
#
# In:  setup.sh DIR
# Out: DIR, a virtual environment with librosa, soundfile (requirements.txt) and, from Debian,
#      torch 1.13 and torchaudio 0.13.1.
#
# Then:
#   tests/support/fetch_audio.sh AUDIO asterisk-core-sounds-en-wav asterisk-core-sounds-ru-wav \
#     alsa-utils
#   DIR/bin/python tests/golden/make_golden.py AUDIO
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

# Debian's own interpreter: its torchaudio is built for no other.
/usr/bin/python3 -m venv --system-site-packages "$1"
"$1/bin/pip" install --requirement "$here/requirements.txt"
"$1/bin/python" -c 'import librosa, torchaudio
print("librosa", librosa.__version__, "torchaudio", torchaudio.__version__)
assert torchaudio.__version__.startswith("0.13.1")'
