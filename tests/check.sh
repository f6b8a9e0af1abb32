#!/usr/bin/env bash
# Checks the source without running it.
#
# In:  tests/check.sh format           whether clang-format 14 would leave every C++ file unchanged
#      tests/check.sh tidy [REGEX]     runs clang-tidy 14 on everything that is compiled, or on files
#                                      whose path matches; minutes to an hour
#      tests/check.sh changed [COMMIT] compiles by itself, with warnings as errors, each file that differs from COMMIT or
#                                      includes a header that does, and runs clang-tidy 14 on the files that differ.
#                                      Default: where HEAD left origin/main, or HEAD's first parent if HEAD is there
#      tests/check.sh rooms            which folder ("room") of pipeline/ or stages/ includes one that it may not
#      tests/check.sh names            types of one name that are defined in several files: undefined behaviour in
#                                      one program, of which neither compiler nor linker says anything
#      tests/check.sh headers          that apps/public_headers.txt has what its headers include, and that the examples of
#                                      stages and graphs, and docs/own-stage.md, name none but public ones
#      tests/check.sh reference        Doxygen's warnings about the public headers; writes the reference of
#                                      the C++ API, build/reference/html/index.html
# Out: the necessary changes; exit status 0 when there are none, 1 when there are some, 77 when the tool is
#      missing (apt install clang-format-14 clang-tidy-14 doxygen) or the commit unknown, 2 for a wrong argument.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# find_tool NAME: prints NAME-14, or NAME if that is version 14; other versions judge differently.
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
  # clang-format leaves long comment lines as they are.
  ! LC_ALL=C.UTF-8 grep -rnE --include=*.{h,cpp,cu,cuh} '^ *//' apps config cuda perf pipeline stages tests |
    grep -E '^[^:]*:[0-9]+:.{101}' || exit 1
}

# This preset compiles every file by itself and without precompiled headers, which clang cannot read.
configure() {
  cmake --preset dev -B build/tidy -D MELFLOW_CUDA=OFF -D CMAKE_CXX_COMPILER_LAUNCHER= >/dev/null
}

# run_tidy REGEX: runs clang-tidy on the compiled files whose path matches.
run_tidy() {
  local tool
  tool=$(find_tool clang-tidy) || exit
  "run-$tool" -quiet -p build/tidy -clang-tidy-binary "$(command -v "$tool")" \
    -extra-arg=-Wno-unknown-warning-option "$1" || exit 1
}

tidy() {
  find_tool clang-tidy >/dev/null || exit
  configure
  run_tidy "${1:-.*}"
}

# landed_before [COMMIT]: prints the commit with which `changed` compares.
landed_before() {
  local base
  if [[ -n ${1-} ]]; then
    git rev-parse --verify --quiet "$1^{commit}" && return
    echo "check: there is no commit $1" >&2
    return 2
  fi
  if base=$(git merge-base HEAD origin/main 2>/dev/null); then
    [[ $base == "$(git rev-parse HEAD)" ]] || { echo "$base"; return; }
    git rev-parse --verify --quiet 'HEAD^' && return
  fi
  echo "check: skipped, no earlier commit is known: tests/check.sh changed COMMIT" >&2
  return 77
}

changed() {
  local base differ=() headers compiled=() alone=() source
  base=$(landed_before "${1-}") || exit
  mapfile -t differ < <(git diff --name-only --diff-filter=d "$base" -- '*.cpp' '*.h')
  headers=$(printf '%s\n' "${differ[@]}" | sed -n '/\.h$/p')
  configure
  # The compiled files, and those of them that are to be compiled by themselves.
  mapfile -t compiled < <(sed -n "s|^  \"file\": \"$PWD/\(.*\)\".*|\1|p" build/tidy/compile_commands.json | sort -u)
  mapfile -t alone < <(
    comm -12 <(printf '%s\n' "${compiled[@]}") <(
      {
        printf '%s\n' "${differ[@]}"
        [[ -z $headers ]] || sed 's/.*/#include "&"/' <<<"$headers" | git grep -lFf - -- '*.cpp' || true
      } | sort -u))
  echo "check: ${#alone[@]} files by themselves"
  [[ ${#alone[@]} -gt 0 ]] || return 0
  # For ninja, FILE^ is the output made from FILE.
  printf '%s^\0' "${alone[@]/#/$PWD/}" | xargs -0 ninja -C build/tidy -k 0 || exit 1
  mapfile -t alone < <(comm -12 <(printf '%s\n' "${compiled[@]}") <(printf '%s\n' "${differ[@]/%.h/.cpp}" | sort -u))
  [[ ${#alone[@]} -gt 0 ]] || return 0
  source=$(printf '|%s' "${alone[@]//./\\.}")
  run_tidy "/(${source#|})\$"
}

# A table in the README.md of each folder lists its rooms: | `ROOM/` | what belongs there | `ROOM`, ... |. Each may include
# rooms above it in the table, so that there are no circles. `./` are the files that lie in no room.
rooms() {
  local top found=0
  for top in pipeline stages; do
    find "$top" -name '*.h' -o -name '*.cpp' | sort | xargs grep -HnE '^#include "' | awk -F '[|]' -v top="$top" '
      function room(path, part, n) { n = split(path, part, "/"); return part[1] != top ? part[1] : n == 2 ? "." : part[2] }
      function report(text) { print "check: " text; found = 1 }
      NR == FNR && NF == 5 && split($2, name, "`") == 3 && sub("/$", "", name[2]) {
        for (i = split($4, word, "`") - 1; i > 0; i -= 2) {
          if (!(word[i] in above) && word[i] != "cuda" && word[i] != "config") report(FILENAME ": " word[i] " is not above " name[2] ", which may include it")
          may[name[2], word[i]]
        }
        above[name[2]]; may[name[2], name[2]]
      }
      NR == FNR { next }
      split($0, line, /:|"/) && !((room(line[1]), room(line[4])) in may) && room(line[4]) != "pipeline" {
        report($0 ": by the table in " top "/README.md, " room(line[1]) " may not include " room(line[4]))
      }
      END { exit found }' "$top/README.md" - >&2 || found=1
  done
  # The front end alone is a library for programs without the framework. The table of front ends is data, and part of it.
  if grep -HnE '^#include "' stages/features/mel/*.{h,cpp} stages/front_ends.{h,cpp} | grep -v '"stages/features/mel/\|"stages/front_ends.h"' >&2; then
    echo 'check: stages/features/mel includes nothing of the repository but itself and stages/front_ends.h' >&2
    found=1
  fi
  return $found
}

# Relies on the format: what is in a namespace begins in the first column, as does the end of an unnamed one.
names() {
  local double
  double=$(
    find apps config cuda pipeline stages -regex '.*\.\(h\|cpp\|cu\|cuh\)' -not -path 'apps/own_stage/*' -print0 | sort -z |
      xargs -0 awk '
        FNR == 1 { space = ""; hidden = 0 }
        /^namespace \{/ { hidden = 1 }
        /^\}  \/\/ namespace$/ { hidden = 0 }
        /^namespace [a-z_:]+ \{/ { space = space "::" $2 }
        /^\}  \/\/ namespace ./ { sub("::" $4 "$", "", space) }
        !hidden && /^(class|struct|union|enum( class)?) (\[\[.*\]\] )?[A-Za-z_0-9]+( |$)/ && !/^[^{]*;$/ {
          name = $0
          sub(/^(class|struct|union|enum class|enum) (\[\[.*\]\] )?/, "", name)
          sub(/[^A-Za-z_0-9].*/, "", name)
          print space "::" name, FILENAME ":" FNR
        }' | sort | awk '{ at[$1] = at[$1] " " $2; count[$1]++ } END { for (n in at) if (count[n] > 1) print n at[n] }'
  )
  [[ -z $double ]] || { printf 'check: a type of the same name in several files: %s\n' "$double" >&2; return 1; }
}

headers() {
  local listed=apps/public_headers.txt found
  found=$(
    sed -n 's/^\(public\|internal\) \(.*\)/\1 \2/p' "$listed" | sort -k2 | awk '
      { kind[$2] = $1 }
      END {
        for (file in kind) {
          while ((status = (getline line < file)) > 0)
            if (line ~ /^#include "/) {
              split(line, part, "\"")
              if (!(part[2] in kind)) print file " includes " part[2] ", which is not in the list"
              includes[file, part[2]]
            }
          if (status < 0) print file " is in the list, and cannot be read"
          if (kind[file] == "public") reached[file]
        }
        do {
          more = 0
          for (pair in includes) {
            split(pair, of, SUBSEP)
            if ((of[1] in reached) && !(of[2] in reached)) { reached[of[2]]; more = 1 }
          }
        } while (more)
        for (file in kind) if (!(file in reached)) print file " is internal, and no public header includes it"
      }'
    grep -noE '"?(apps|config|cuda|pipeline|stages)/[a-z0-9_/]+\.h\>' apps/main.cpp apps/own_stage/*.cpp docs/examples/*.cpp docs/own-stage.md |
      while IFS=: read -r file line header; do
        grep -qx "public ${header#\"}" "$listed" || echo "$file:$line: ${header#\"} is no public header"
      done
  )
  [[ -z $found ]] || { sort <<<"$found" | sed "s|^|check: $listed: |" >&2; return 1; }
}

reference() {
  if ! command -v doxygen >/dev/null; then
    echo "check: skipped, there is no doxygen: apt install doxygen" >&2
    exit 77
  fi
  mkdir -p build/reference
  { cat docs/Doxyfile; sed -n 's/^public /INPUT += /p' apps/public_headers.txt; } | doxygen - || exit 1
}

case ${1-} in
  format) format ;;
  rooms) rooms ;;
  names) names ;;
  headers) headers ;;
  reference) reference ;;
  tidy) tidy "${2-}" ;;
  changed) changed "${2-}" ;;
  *)
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
