#!/usr/bin/env bash
# Installs what is missing, checks the format, builds, and passes all the tests: as released, then
# under AddressSanitizer with UBSan, then under ThreadSanitizer. Stops at the first build or test
# that fails, so the last lines are always ctest's own.
#
# Compiling takes most of the time, so a test is built where it finds most. As released: the program,
# values to the last bit, memory. AddressSanitizer: every test of the libraries, so of all code that
# reads files of strangers; not the program, whose tests are of its output, nor the benchmarks, nor
# kernels, which run on a device (their phases, on the host, are in it). ThreadSanitizer: the framework
# and whole jobs, which is where threads meet. `--everything` builds and runs all tests as released, too,
# and those of a release in a bare system (tests/bare_root.sh).
#
# At the end the Python package is built and tested, beside the program as released. `cuda` compiles the kernels
# and tests what of them needs no device, or all where there is one.
#
# In:  tests/run.sh [--everything] [--repeat N] [--busy N] [PRESET...]     default: release asan tsan python
#      --repeat: all tests so many times over, whatever fails, and at the end what failed in which
#      round: that no test depends on timing. --busy: so many loops beside them that take a core each.
# Out: build/PRESET/, build/test-audio/ (real recordings, fetched once); exit status 0 when every
#      test passed. What a machine cannot test (no pseudo terminal, no io_uring) ctest lists as
#      skipped, and so it is with Python's packages.
set -euo pipefail

presets=() rounds=1 busy=0 everything=0
while [[ $# -gt 0 ]]; do
  case $1 in
    --everything) everything=1; shift ;;
    --repeat) rounds=$2; shift 2 ;;
    --busy) busy=$2; shift 2 ;;
    *) presets+=("$1"); shift ;;
  esac
done
[[ ${#presets[@]} -gt 0 ]] || presets=(release asan tsan python)

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repository"

bash apps/install_deps.sh --tests

export MELFLOW_TEST_AUDIO=$repository/build/test-audio
bash tests/support/fetch_audio.sh "$MELFLOW_TEST_AUDIO" \
  asterisk-core-sounds-en-wav asterisk-core-sounds-ru-wav alsa-utils

# Skipped, and said so, where clang-format 14 or doxygen is not there.
bash tests/check.sh format || [[ $? == 77 ]]
bash tests/check.sh reference || [[ $? == 77 ]]

if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  # Without these ccache keeps nothing that was compiled with a precompiled header.
  sloppiness=$(ccache --get-config sloppiness)
  export CCACHE_SLOPPINESS=${sloppiness:+$sloppiness, }pch_defines,time_macros
fi

loops=() red=()
trap '[[ ${#loops[@]} -eq 0 ]] || kill "${loops[@]}"' EXIT

run_tests() {
  local preset=$1 wrapper=() round
  # ThreadSanitizer of GCC 12 cannot place its shadow where the kernel randomises 32 bits of an
  # address; without randomisation it always can. Containers may forbid the switch: then as it is.
  if [[ $preset == tsan ]] && setarch "$(uname -m)" --addr-no-randomize true 2>/dev/null; then
    wrapper=(setarch "$(uname -m)" --addr-no-randomize)
  fi
  if [[ $rounds -eq 1 ]]; then
    "${wrapper[@]}" ctest --preset "$preset" "${tests[@]}"
    return
  fi
  for ((round = 1; round <= rounds; ++round)); do
    "${wrapper[@]}" ctest --preset "$preset" "${tests[@]}" && continue
    # "12:stage.decode" a line.
    red+=("$preset, round $round: $(cut -d: -f2 "build/$preset/Testing/Temporary/LastTestsFailed.log" | xargs)")
  done
}

for preset in "${presets[@]}"; do
  printf '\n== %s\n' "$preset"
  if [[ $preset == python ]]; then
    bash tests/python/run.sh || [[ $? == 77 ]]
    continue
  fi
  if [[ $preset == cuda ]] && ! command -v nvcc >/dev/null; then
    echo "tests: the kernels are skipped: nvcc is not there"
    continue
  fi
  cmake --preset "$preset"
  targets=() tests=()
  case $preset in
    release)
      if [[ $everything == 0 ]]; then
        targets=(--target melflow_release_tests)
        tests=(--label-regex '^release$')
      fi
      ;;
    asan) targets=(--target melflow_tests) ;;
    tsan)
      targets=(--target melflow_thread_tests)
      tests=(--label-regex '^thread$')
      ;;
    cuda)
      targets=(--target melflow_device_tests)
      tests=(--tests-regex '^device\.')
      ;;
  esac
  cmake --build --preset "$preset" "${targets[@]}"
  for ((i = ${#loops[@]}; i < busy; ++i)); do
    while :; do :; done &
    loops+=($!)
  done
  run_tests "$preset"
done

if [[ ${#red[@]} -gt 0 ]]; then
  printf '\n== failed\n'
  printf '%s\n' "${red[@]}"
  exit 1
fi
if [[ $everything == 1 ]]; then
  bash tests/bare_root.sh release || [[ $? == 77 ]]
fi
