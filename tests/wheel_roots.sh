#!/usr/bin/env bash
# Installs the wheels of apps/python/wheel.sh in a bare Debian 12 and a bare Debian 13, which have Python
# and NumPy but no dependencies of melflow, and runs the program and the module there without a network, also with a
# plug-in that was built outside.
#
# In:  tests/wheel_roots.sh [FOLDER]     with the wheels; default: dist
# Out: build/wheel-roots/RELEASE, the systems, which are kept; exit status 0 when all is right, 77 with the reason where
#      no such systems can be made. Prints the time from the installation to the first rows.
set -euo pipefail
wheels=$(realpath "${1:-dist}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/support/debian_root.sh

fail() {
  echo "wheel_roots: $*" >&2
  exit 1
}
there='
  set -e
  rm -rf /env /job
  python3 -m venv --system-site-packages /env
  started=$(date +%s%N)
  /env/bin/pip install -q --no-index --disable-pip-version-check /wheel/*.whl
  mkdir /job
  cd /job
  cp /wheel/tones.yaml .
  /env/bin/melflow run -q tones.yaml
  echo "first rows $((($(date +%s%N) - started) / 1000000)) ms after pip was started"
  /env/bin/melflow --plugin /wheel/loudness.so stages loudness >/dev/null
  /env/bin/melflow validate demo --var DATA=. --var OUT=o.h5 >/dev/null # a pipeline that is shipped
  /env/bin/python - <<END
import melflow, numpy
rows = melflow.features(numpy.sin(numpy.arange(16000, dtype=numpy.float32) / 5), 16000, preset="whisper")
assert rows.shape[1] == 80 and numpy.isfinite(rows).all()
assert melflow.run("tones.yaml")["files"]["ok"] == 4
assert len(melflow.open("rows.h5")) > 0
melflow.load_plugin("/wheel/loudness.so")
nodes = {"files": {"stage": "file_list", "root": "/"}, "read": {"stage": "disk_read", "from": "files"},
         "decode": {"stage": "decode", "from": "read"}, "loud": {"stage": "loudness", "from": "decode"},
         "mel": {"stage": "mel", "from": "loud", "sample_rate": 16000, "n_mels": 40}, "rows": {"stage": "batches", "from": "mel"}}
assert len(melflow.Features({"version": 1, "graph": nodes})(numpy.ones(16000, numpy.float32) / 2, 16000)) > 0
END
'
for release in bookworm trixie; do
  root=build/wheel-roots/$release
  [[ -d $root ]] || make_root "$PWD/$root" "$release" python3-numpy,python3-venv
  rm -rf "$root/wheel"
  mkdir "$root/wheel"
  tag=$(chroot "$root" python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  found=("$wheels"/melflow-*-"$tag-$tag"-*.whl)
  [[ -e ${found[0]} ]] || found=("$wheels"/melflow-*-cp312-abi3-*.whl)
  [[ -e ${found[0]} ]] || fail "$wheels has no wheel for $tag; make it: bash apps/python/wheel.sh"
  cp "${found[0]}" tests/support/tones.yaml "$root/wheel"
  unzip -qo "${found[0]}" 'melflow/lib/*' -d "$root/wheel/open"
  c++ -std=c++20 -O1 -shared -fPIC -DFMT_HEADER_ONLY -I. -o "$root/wheel/loudness.so" apps/own_stage/loudness.cpp \
    "$root/wheel/open/melflow/lib/libmelflow.so.0"
  echo "-- $release: $(basename "${found[0]}")"
  "${apart[@]}" --net bash -euc 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" \
    env -i HOME=/root LANG=C.UTF-8 PATH=/usr/bin:/bin sh -c "$1"' "$root" "$there" || fail "$release: see above"
done
echo 'wheel_roots: all right'
