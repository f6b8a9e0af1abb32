#!/usr/bin/env bash
# What can be said of the source without running it.
#
# In:  tests/check.sh format           whether clang-format 14 would write every C++ file as it is
#      tests/check.sh tidy [REGEX]     what clang-tidy 14 says of everything that is compiled, or of
#                                      files whose path matches; minutes to an hour
#      tests/check.sh reference        what Doxygen says of the public headers; writes the reference of
#                                      the C++ API, build/reference/html/index.html
# Out: what is to be changed; exit status 0 when that is nothing, 1 when it is something, 77 when the
#      tool is not there (apt install clang-format-14 clang-tidy-14 doxygen), 2 for a wrong argument.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# find_tool NAME: NAME-14, or NAME where that is 14; others are of another opinion.
find_tool() {
  local name
  for name in "$1-14" "$1"; do
    if [[ $("$name" --version 2>/dev/null) == *" version 14."* ]]; then
      echo "$name"
      return
    fi
  done
  echo "check: skipped, there is no $1 14: apt install $1-14" >&2
  return 77
}

format() {
  local tool
  tool=$(find_tool clang-format) || exit
  find apps config cuda perf pipeline stages tests -regex '.*\.\(h\|cpp\|cu\|cuh\)' -print0 |
    xargs -0 "$tool" --dry-run --Werror || exit 1
}

# Headers are not precompiled, since clang cannot read GCC's, and files not joined, since only what is
# no header is checked.
tidy() {
  local tool
  tool=$(find_tool clang-tidy) || exit
  cmake --preset dev -B build/tidy -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON -D MELFLOW_JOIN_FILES=OFF \
    -D MELFLOW_CUDA=OFF -D CMAKE_CXX_COMPILER_LAUNCHER= >/dev/null
  "run-$tool" -quiet -p build/tidy -clang-tidy-binary "$(command -v "$tool")" \
    -extra-arg=-Wno-unknown-warning-option "${1:-.*}" || exit 1
}

reference() {
  if ! command -v doxygen >/dev/null; then
    echo "check: skipped, there is no doxygen: apt install doxygen" >&2
    exit 77
  fi
  mkdir -p build/reference
  doxygen docs/Doxyfile || exit 1
}

case ${1-} in
  format) format ;;
  reference) reference ;;
  tidy) tidy "${2-}" ;;
  *)
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
