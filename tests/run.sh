#!/usr/bin/env bash
# Installs missing packages, builds, and runs tests: of the program as released and of the Python package, with
# `--all` also those needed for a change to the code. Stops at the first build or test that fails, so that the last
# lines are always ctest's own.
#
# Compiling takes most of the time, so each test is built where it finds most:
#   release     the program as released: its verbs, values to the last bit, memory; the framework
#   long        kills, faults, power failures and full disks at many places; whole jobs; kernels and the GPU check on
#               the emulated device; the bundle
#   python      the Python package, built and tested with the program that is in it
#   asan        with AddressSanitizer and UBSan: the tests of the libraries' parts, so all code that reads untrusted
#               files; not the program, whose tests are about its output
#   tsan        with ThreadSanitizer: the framework, where threads interact
#   format      the source's format, includes between rooms and the reference of the public interface
#   everything  all tests of `release` and `asan` as released
#   cuda        compiles the kernels for devices, and runs the tests that need none, or all if there is one
#   whole       whole-asan and whole-tsan: whole jobs, and kernels, launcher and slots on the emulated device, with
#               AddressSanitizer and UBSan, and with ThreadSanitizer (after a change to cuda/ or to what stages share)
#
# In:  tests/run.sh [--all] [--repeat N] [--busy N] [PART...]     default: release python; --all: format release long
#      asan tsan python
#      --repeat: runs all tests N times, whatever fails, and reports at the end what failed in which round, to
#      show that no test depends on timing. --busy: runs N busy loops beside them, each of which takes a core.
# Out: build/PRESET/, build/test-audio/ (real recordings, fetched once); exit status 0 when every
#      test passed. Tests for which this machine lacks something (a pseudo terminal, io_uring, Python
#      packages) are listed as skipped by ctest.
set -euo pipefail

parts=() rounds=1 busy=0 all=0
while [[ $# -gt 0 ]]; do
  case $1 in
    --all) all=1; shift ;;
    --repeat) rounds=$2; shift 2 ;;
    --busy) busy=$2; shift 2 ;;
    release | long | python | asan | tsan | format | everything | cuda | whole-asan | whole-tsan) parts+=("$1"); shift ;;
    whole) parts+=(whole-asan whole-tsan); shift ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "tests/run.sh: there is no $1; --help has all options and parts" >&2; exit 2 ;;
  esac
done
if [[ $all == 1 ]]; then
  parts+=(format release long asan tsan python)
elif [[ ${#parts[@]} -eq 0 ]]; then
  parts=(release python)
fi

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repository"

bash apps/install_deps.sh --tests

export MELFLOW_TEST_AUDIO=$repository/build/test-audio
bash tests/support/fetch_audio.sh "$MELFLOW_TEST_AUDIO" \
  asterisk-core-sounds-en-wav asterisk-core-sounds-ru-wav alsa-utils

. apps/use_ccache.sh

loops=() red=()
trap '[[ ${#loops[@]} -eq 0 ]] || kill "${loops[@]}"' EXIT
run_tests() {
  local preset=$1 wrapper=() round
  # GCC 12's ThreadSanitizer cannot place its shadow memory where the kernel randomises 32 bits of an address; without
  # randomisation it always can. Containers may forbid this; then it runs as it is.
  if [[ $preset == tsan ]] && setarch "$(uname -m)" --addr-no-randomize true 2>/dev/null; then
    wrapper=(setarch "$(uname -m)" --addr-no-randomize)
  fi
  if [[ $rounds -eq 1 ]]; then
    "${wrapper[@]}" ctest --preset "$preset" "${tests[@]}"
    return
  fi
  for ((round = 1; round <= rounds; ++round)); do
    "${wrapper[@]}" ctest --preset "$preset" "${tests[@]}" && continue
    # Each line is like "12:stage.decode".
    red+=("$preset, round $round: $(cut -d: -f2 "build/$preset/Testing/Temporary/LastTestsFailed.log" | xargs)")
  done
}

for part in "${parts[@]}"; do
  printf '\n== %s\n' "$part"
  preset=$part targets=() tests=()
  case $part in
    format) # skipped with a message where clang-format 14 or doxygen is missing
      bash tests/check.sh format || [[ $? == 77 ]]
      bash tests/check.sh rooms
      bash tests/check.sh names
      bash tests/check.sh headers
      bash tests/check.sh reference || [[ $? == 77 ]]
      continue
      ;;
    python)
      bash tests/python/run.sh || [[ $? == 77 ]]
      continue
      ;;
    release)
      targets=(--target melflow_release_tests)
      tests=(--label-regex '^release$' --label-exclude '^long$')
      ;;
    long)
      preset=release
      targets=(--target melflow_long_tests)
      tests=(--label-regex '^long$')
      ;;
    everything) preset=release ;;
    asan)
      targets=(--target melflow_part_tests)
      tests=(--label-exclude '^whole$')
      ;;
    tsan)
      targets=(--target melflow_thread_tests)
      tests=(--label-regex '^thread$')
      ;;
    whole-*)
      preset=${part#whole-}
      targets=(--target melflow_whole_tests)
      tests=(--label-regex '^whole$')
      ;;
    cuda)
      if ! command -v nvcc >/dev/null; then
        echo "tests: the kernels are skipped: nvcc is not there"
        continue
      fi
      targets=(--target melflow_device_tests)
      tests=(--tests-regex '^device\.')
      ;;
  esac
  cmake --preset "$preset"
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
printf '\nAll tests of %s passed.\n' "${parts[*]}"
[[ $all == 1 ]] || echo 'bash tests/run.sh --all adds tests under AddressSanitizer and ThreadSanitizer, walks over kills, faults and full disks, and the format.'
