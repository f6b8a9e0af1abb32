#!/usr/bin/env bash
# Builds the targets of tests/fuzz with clang, libFuzzer, AddressSanitizer and UBSan, and runs each of them.
#
# In:  tests/long/fuzz.sh [--runs N] [--seconds N] [--at-once N] [TARGET...]     default: 1000000 executions of each, however long
#     that takes, one target after the other; --seconds alone: as many executions as there is time for
#     config, tables: YAML, tables and patterns; archive; kaldi, lhotse, nemo, json: lists; sound: recordings;
#     npy, chunk, cache, journal, undo: files that melflow writes; rows: blocks in any order; c_calls: calls of melflow.h.
#     sound needs ffmpeg, which makes its seeds; npy needs melflow in build/release, which makes outputs.
#     tests/fuzz/corpora/TARGET has inputs of earlier runs, which each run begins with, a line of base64 for each.
#     CXX: the clang++ to use, such as "ccache clang++".
# Out: for each target its executions, coverage and time; build/fuzz/TARGET has its corpus, which the next
#      call continues, and the findings. Exit status 0 when there are none.
set -euo pipefail

all=(config tables archive kaldi lhotse nemo json sound npy chunk cache journal undo rows c_calls)
limits=() targets=() at_once=1
while [[ $# -gt 0 ]]; do
  case $1 in
    --runs | --seconds | --at-once)
      [[ ${2:-} =~ ^[0-9]{1,12}$ ]] || { echo "$1: '${2:-}' is no number" >&2; exit 2; }
      case $1 in
        --runs) limits+=("-runs=$2") ;;
        --seconds) limits+=("-max_total_time=$2") ;;
        *) at_once=$2 ;;
      esac
      shift 2
      ;;
    --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *)
      [[ " ${all[*]} " == *" $1 "* ]] || { echo "$1: no such option or target; --help lists them" >&2; exit 2; }
      targets+=("$1")
      shift
      ;;
  esac
done
[[ ${#targets[@]} -gt 0 ]] || targets=("${all[@]}")
[[ ${#limits[@]} -gt 0 ]] || limits=(-runs=1000000)

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
compiler=${CXX:-clang++}
command -v "${compiler##* }" >/dev/null || { echo "tests/long/fuzz.sh: $compiler is not there (apt-get install clang)" >&2; exit 1; }
command -v make >/dev/null || { echo "tests/long/fuzz.sh: make is not there (apt-get install make)" >&2; exit 1; }

MELFLOW_FUZZ_FOLDER=$(mktemp -d -p /dev/shm melflow_fuzz.XXXXXX)
export MELFLOW_FUZZ_FOLDER
trap 'rm -rf "$MELFLOW_FUZZ_FOLDER"' EXIT

# Recordings and outputs that serve as seeds; each target generates its other seeds itself.
seeds_of_sound() {
  for ending in flac mp3 ogg wav aiff au w64; do
    ffmpeg -v error -y -f lavfi -i "sine=440:r=8000:d=0.15" "$1/seed.$ending" </dev/null
  done
}
unpack() {
  local line n=0
  while read -r line; do base64 -d <<<"$line" >"$2/kept_$((n += 1))"; done <"$1"
}
seeds_of_npy() {
  local outputs=$1/../outputs options
  mkdir -p "$outputs"
  for options in dtype=float32 dtype=float16 statistics=all; do
    build/release/bin/melflow run tests/fuzz/outputs.yaml --no-progress --set "write.path=$outputs/${options#*=}.npy" \
      --set "write.$options" >/dev/null 2>&1
  done
  export MELFLOW_FUZZ_OUTPUTS=$outputs
}

fuzz() {
  local target=$1 folder=build/fuzz/$1 extra=(-max_len=16384) begin=$SECONDS covered
  [[ ! -e tests/fuzz/corpora/$target ]] || unpack "tests/fuzz/corpora/$target" "$folder/corpus"
  case $target in
    config) extra=(-dict=tests/fuzz/config.dict -max_len=20000) && cp config/pipelines/*.yaml "$folder/corpus" ;;
    kaldi | lhotse | nemo | json) extra=(-dict=tests/fuzz/lists.dict -max_len=8192) ;;
    sound)
      extra=(-max_len=8192)
      # libsndfile 1.2 leaks memory for each Ogg file whose header it refuses.
      echo leak:vorbis_info_init >"$folder/leaks"
      export LSAN_OPTIONS=suppressions=$folder/leaks:print_suppressions=0
      seeds_of_sound "$folder/corpus"
      ;;
    npy) seeds_of_npy "$folder/corpus" ;;
  esac
  MELFLOW_FUZZ_SEEDS=$folder/corpus "$folder/fuzz" -runs=0 >"$folder/log" 2>&1 || { tail -n 30 "$folder/log"; return 1; }
  "$folder/fuzz" "${limits[@]}" -timeout=120 -seed=1 -print_final_stats=1 -artifact_prefix="$folder/" "${extra[@]}" \
    "$folder/corpus" >"$folder/log" 2>&1 || { tail -n 30 "$folder/log"; echo "$target: FOUND SOMETHING: $folder"; return 1; }
  covered=$(grep -o 'cov: [0-9]*' "$folder/log" | tail -n 1)
  echo "$target: $(grep 'number_of_executed_units' "$folder/log" | grep -o '[0-9]*$') executions, $covered, $((SECONDS - begin)) s, nothing found"
}

programs=("${targets[@]/#/build/fuzz/}")
programs=("${programs[@]/%//fuzz}")
make -s -j "${JOBS:-2}" -f tests/fuzz/Makefile CXX="$compiler" "${programs[@]}"
status=0 running=()
for target in "${targets[@]}"; do
  mkdir -p "build/fuzz/$target/corpus"
  while [[ $(jobs -rp | wc -l) -ge $at_once ]]; do wait -n || true; done
  fuzz "$target" &
  running+=($!)
done
for one in "${running[@]}"; do wait "$one" || status=1; done
exit $status
