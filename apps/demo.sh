#!/usr/bin/env bash
# Goes from nothing to features: installs missing packages, builds melflow, fetches 2,831 real
# recordings and runs the demo.
#
# In:  apps/demo.sh [FOLDER]     default ./melflow-demo
# Out: FOLDER/audio/{en,es,fr,it,ru}/   the recordings: Debian's asterisk-core-sounds-*-wav
#      FOLDER/features.h5               80-band log-mel features with the language as label
#      FOLDER/spectrogram-*.svg         one picture for each language
# Running it again costs nothing: whatever exists already is used as it is.
set -euo pipefail

if [[ $# -gt 1 || ${1:-} == -* ]]; then
  sed -n '2,9s/^# \{0,1\}//p' "$0"
  [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
  exit 2
fi

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "${1:-melflow-demo}" || exit 1
folder=$(cd "${1:-melflow-demo}" && pwd)
cd "$repository"
melflow=$repository/build/release/bin/melflow
features=$folder/features.h5
languages=(en es fr it ru)

say() { printf '\n== %s\n' "$*"; }
die() {
  echo "demo: $*" >&2
  exit 1
}

say "What is needed to build"
bash apps/install_deps.sh
echo "is installed."
. apps/use_ccache.sh

say "Build"
cmake --preset release
cmake --build --preset release --target melflow

say "Recordings"
# Files are fetched beside their destination and renamed when complete, so an existing folder is complete.
missing=()
for language in "${languages[@]}"; do
  [[ -d $folder/audio/$language ]] || missing+=("$language")
done
if [[ ${#missing[@]} -gt 0 ]]; then
  packages=("${missing[@]/#/asterisk-core-sounds-}")
  bash tests/support/fetch_audio.sh "$folder/.fetch" "${packages[@]/%/-wav}"
  mkdir -p "$folder/audio"
  for language in "${missing[@]}"; do
    package=asterisk-core-sounds-$language-wav
    share=$folder/.fetch/$package/usr/share
    voices=("$share"/asterisk/sounds/"$language"_*)
    [[ ${#voices[@]} == 1 && -d ${voices[0]} ]] ||
      die "$package does not hold the one folder of recordings that was expected"
    cp "$share/doc/$package/copyright" "$folder/copyright-$language.txt"
    mv -T "${voices[0]}" "$folder/audio/$language"
  done
  rm -rf "$folder/.fetch"
fi
echo "$(find "$folder/audio" -name '*.wav' | wc -l) recordings in $folder/audio"

say "Features"
if [[ -e $features ]]; then
  "$melflow" inspect "$features" >/dev/null ||
    die "$features is there, but melflow cannot read it: move it away"
  echo "$features is complete: not computed again. Remove it to start over."
else
  status=0
  DATA=$folder/audio OUT=$features "$melflow" run config/pipelines/demo.yaml || status=$?
  # 3: done, but some recordings failed; they are listed in the report and in the file.
  [[ $status == 0 || $status == 3 ]] || exit "$status"
fi

say "What is in the file"
"$melflow" inspect "$features"

say "Pictures"
for language in "${languages[@]}"; do
  picture=$folder/spectrogram-$language.svg
  if [[ $picture -nt $features ]]; then
    echo "$picture"
  else
    "$melflow" show "$features" --file "$language/demo-congrats.wav" -o "$picture"
  fi
done

say "Read it from Python (apt install python3-h5py, or pip install h5py)"
cat <<PYTHON
import h5py
f = h5py.File("$features")
print(f[f.attrs["rows"]].shape, f["labels/name"].asstr()[:], f["files/path"].asstr()[:3])
PYTHON
