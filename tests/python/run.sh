#!/usr/bin/env bash
# Builds the Python package as users do, into a separate environment, and tests it. The program in it writes the rows
# for comparison.
#
# In:  tests/python/run.sh [--more]     PYTHON: which Python; default: python3. --more: also the tests of exports, types,
#      the notebook, models, corpora of other packages and object stores, whose packages are installed.
# Out: build/python-env/; exit status 0 when every test passed, 77 where Python, its headers or its
#      packages are not available.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$repository"
python=${PYTHON:-python3}
environment=build/python-env

skip() {
  echo "tests/python: skipped: $*"
  exit 77
}

"$python" -c 'import os, sysconfig
raise SystemExit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
  skip "$python has no headers (apt-get install python3-dev)"
"$python" -m venv --system-site-packages "$environment" >/dev/null 2>&1 ||
  skip "$python makes no environments (apt-get install python3-venv)"
"$environment/bin/pip" install -q --disable-pip-version-check nanobind scikit-build-core numpy h5py xxhash ||
  skip "nanobind, scikit-build-core, numpy, h5py or xxhash cannot be had"
# Optional: without these, their tests are skipped. Most of them are wanted by --more alone, as they are large.
more=(distributed fastapi)
if [[ ${1:-} == --more ]]; then
  more+=(pyarrow zarr xarray safetensors datasets kaldiio kaldi_native_io webdataset "lhotse urllib3" "moto[server,s3] s3fs aiohttp" mypy
    "nbclient ipykernel" prometheus_client "onnxruntime onnx" "--no-deps silero-vad")
fi
for package in "${more[@]}"; do
  # shellcheck disable=SC2086
  "$environment/bin/pip" install -q --disable-pip-version-check $package || echo "tests/python: $package cannot be had"
done
# The output of pip (without -v) where libraries are missing.
if PKG_CONFIG_LIBDIR=/nowhere "$environment/bin/pip" install --disable-pip-version-check --no-build-isolation --no-deps \
  --config-settings=build-dir=build/python-refused . >build/python-refused.log 2>&1 ||
  ! grep -q '  bash apps/install_deps.sh --python$' build/python-refused.log; then
  cat build/python-refused.log
  echo "tests/python: pip does not say how to install what is missing" >&2
  exit 1
fi
# CMake's default compiler names let a compiler cache reuse the program's objects.
CC=${CC:-cc} CXX=${CXX:-c++} "$environment/bin/pip" install -q --disable-pip-version-check --no-build-isolation .

cd tests/python
python=../../$environment/bin/python
program=$("$python" -c 'import melflow.program; print(melflow.program.path())')
for test in *_test.py; do
  echo "-- $test"
  # A script in the background passes on that Ctrl-C is ignored, which tests send.
  env --default-signal=INT MELFLOW_PROGRAM="$program" "$python" -W error::ResourceWarning -m unittest -q "${test%.py}"
done
