#!/usr/bin/env bash
# Builds the framework with another oneTBB than the system's, and runs its tests.
#
# In:  tests/with_onetbb.sh [VERSION]     of the package tbb-devel on PyPI; default 2022.3.0
# Out: build/onetbb/; exit status 0 when every test passed, 77 where that version cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1:-2022.3.0}
environment=$PWD/build/onetbb/$version
build=$PWD/build/onetbb/build-$version

python3 -m venv "$environment"
"$environment/bin/pip" install -q --disable-pip-version-check "tbb-devel==$version" || {
  echo "tests/with_onetbb.sh: skipped: tbb-devel $version cannot be had"
  exit 77
}
. apps/use_ccache.sh
cmake --preset release -B "$build" -DMELFLOW_CUDA=OFF -DTBB_DIR="$environment/lib/cmake/TBB" \
  -DCMAKE_BUILD_RPATH="$environment/lib"
cmake --build "$build" --target melflow_pipeline_tests
LD_LIBRARY_PATH=$environment/lib ctest --test-dir "$build" --output-on-failure --tests-regex '^pipeline\.'
ldd "$build/bin/melflow_pipeline_tests" | grep libtbb
