#!/usr/bin/env bash
# Builds the targets of tests/fuzz with clang, libFuzzer, AddressSanitizer and UBSan, and runs each.
#
# In:  perf/fuzz.sh [--runs N] [TARGET...]     default: 1000000 executions of each: config, tables, chunk, sound
#     sound needs ffmpeg, which makes the files that it begins with, and build/release (generated headers).
#      CXX: which clang++.
# Out: for each target its executions, coverage and time; build/fuzz/TARGET has its corpus, which the next
#      call goes on with, and what was found. Exit status 0 when nothing was.
set -euo pipefail

runs=1000000 targets=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --runs)
      [[ ${2:-} =~ ^[0-9]{1,12}$ ]] || { echo "--runs: '${2:-}' is no number" >&2; exit 2; }
      runs=$2
      shift 2
      ;;
    --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    config | tables | chunk | sound) targets+=("$1"); shift ;;
    *) echo "$1: no such option or target; --help lists them" >&2; exit 2 ;;
  esac
done
[[ ${#targets[@]} -gt 0 ]] || targets=(config tables chunk sound)

cd "$(dirname "${BASH_SOURCE[0]}")/.."
compiler=${CXX:-clang++}
command -v "$compiler" >/dev/null || { echo "perf/fuzz.sh: $compiler is not there (apt-get install clang)" >&2; exit 1; }

declare -A sources=(
  [config]="tests/unit/config_stages.cpp $(echo config/{document,load,overrides,text_check,variables}.cpp)
    $(echo pipeline/{cpu,facts,graph_builder,graph_checks,graph_draft,graph_expand,item,ledger,budget,memory,plan,plan_checks,plan_settings,problem,registry,schema,stage_abilities,text,value}.cpp)"
  [tables]="stages/corpus/csv.cpp stages/corpus/json_lines.cpp stages/corpus/glob.cpp pipeline/problem.cpp pipeline/text.cpp pipeline/value.cpp"
  [chunk]="stages/output/formats/chunk_codec.cpp"
  [sound]="$(echo stages/audio/decoders/{container_end,ffmpeg_decoder,flac_decoder,flac_frames,isolated_decoder,mp3_decoder,plain_decoder,sample_reader,sndfile_decoder,sound_file,sound_header,sound_input}.cpp) pipeline/text.cpp"
)
declare -A libraries=([config]="-lyaml-cpp" [tables]="" [chunk]="-ldeflate" [sound]="-lsndfile -lFLAC -lmpg123")

for target in "${targets[@]}"; do
  folder=build/fuzz/$target
  mkdir -p "$folder/corpus"
  # shellcheck disable=SC2086  # lists of words
  "$compiler" -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I. -Ibuild/release/generated \
    "tests/fuzz/${target}_fuzz.cpp" ${sources[$target]} ${libraries[$target]} -lfmt -lpthread -o "$folder/fuzz"
  extra=()
  [[ $target == config ]] && extra=(-dict=tests/fuzz/config.dict -max_len=20000) && cp config/pipelines/*.yaml "$folder/corpus"
  if [[ $target == sound ]]; then
    extra=(-max_len=8192)
    # libsndfile 1.2 loses memory of each Ogg file whose head it refuses.
    echo leak:vorbis_info_init >"$folder/leaks"
    export LSAN_OPTIONS=suppressions=$folder/leaks:print_suppressions=0
    for ending in flac mp3 ogg wav aiff au w64; do
      ffmpeg -v error -y -f lavfi -i "sine=440:r=8000:d=0.15" "$folder/corpus/seed.$ending" </dev/null
    done
  fi
  SECONDS=0
  "$folder/fuzz" -runs="$runs" -timeout=5 -seed=1 -print_final_stats=1 -artifact_prefix="$folder/" "${extra[@]}" \
    "$folder/corpus" >"$folder/log" 2>&1 || { tail -n 30 "$folder/log"; echo "$target: FOUND SOMETHING: $folder"; exit 1; }
  covered=$(grep -o 'cov: [0-9]*' "$folder/log" | tail -n 1)
  echo "$target: $(grep 'number_of_executed_units' "$folder/log" | grep -o '[0-9]*$') executions, $covered, $SECONDS s, nothing found"
done
