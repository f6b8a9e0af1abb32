#!/usr/bin/env bash
# A user's own stage with the installed package: `melflow init --stage`, its build, its test, the program
# with that stage, and the plug-in, outside of this tree.
#
# In:  own_stage_test.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
build=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "own stage: $*" >&2
  exit 1
}
# says TEXT COMMAND...: the command succeeds and prints a line that matches.
says() {
  local text=$1
  shift
  "$@" >"$folder/said" || fail "$* failed"
  grep -q -- "$text" "$folder/said" || fail "$*: does not say '$text': $(<"$folder/said")"
}
# refused CODE TEXT COMMAND...: the command ends with that status and prints that text.
refused() {
  local code=$1 text=$2 status=0
  shift 2
  "$@" >"$folder/said" 2>&1 || status=$?
  [[ $status == "$code" ]] || fail "$*: status $status, not $code: $(<"$folder/said")"
  grep -qF -- "$text" "$folder/said" || fail "$*: does not say '$text': $(<"$folder/said")"
}

cmake --install "$build" --prefix "$folder/installed" >"$folder/log" || fail "$(tail -n 20 "$folder/log")"
melflow=$folder/installed/bin/melflow
cd "$folder"
sed -n 's/^\(public\|internal\) //p' "$source/apps/public_headers.txt" | sort >listed
(cd installed/include/melflow && find . -name '*.h' -printf '%P\n' | sort) | diff listed - >&2 || fail "these headers are not those of apps/public_headers.txt"

# ---- init --stage
refused 2 'Peak is not a name for a stage; allowed: small letters' "$melflow" init --stage Peak
refused 2 'there is a stage decode already' "$melflow" init --stage decode
mkdir there
refused 1 'there: this already exists; give the name of a new folder' "$melflow" init --stage peak_level there
refused 1 'gone/away: the folder cannot be made: No such file or directory' "$melflow" init --stage peak_level gone/away
says "  cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH=$folder/installed" "$melflow" init --stage peak_level mine
sed -n '/^  cd mine$/,/^  ctest /p' said >commands
if grep -rqi loudness mine; then fail "the name is not everywhere: $(grep -rli loudness mine)"; fi

# ---- the project, built by the commands that init printed
bash -e commands >log 2>&1 || fail "$(tail -n 30 log)"
grep -q '100% tests passed, 0 tests failed out of 1' log || fail "$(<log)"

# ---- a program with all verbs, and the stage in it
own=$folder/mine/build/melflow_peak_level
says '^peak_level ' "$own" stages
says 'min_db .*default -60' "$own" stages peak_level
refused 78 'peak_level.min_db: 3 is out of range. Did you mean '\''-3dB'\''? Allowed: -200 to 0 dB' \
  "$own" validate mine/peak_level.yaml --var DATA=. --var OUT=o.h5 --set peak_level.min_db=3
refused 78 "unknown stage 'peak_level'" "$melflow" validate mine/peak_level.yaml --var DATA=. --var OUT=o.h5
cat >tones.yaml <<'END'
version: 1
graph:
  tones: {stage: synthetic, kind: [tone, silence], count: 6}
  write: {stage: audio_write, from: tones, path: tones, by: [label]}
END
"$own" run tones.yaml -q
says '^6 files: 3 ok, 3 skipped, 0 failed' "$own" run mine/peak_level.yaml --var DATA=tones --var OUT=o.h5
grep -q 'level: skipped: has a level of -inf dB, below min_db -40' said || fail "$(<said)"
says 'peak_level: min_db=-40' "$own" inspect o.h5
# Files that come with melflow are found by such a program, too.
refused 78 'demo.yaml:13:11: the variable DATA is not set' "$own" run demo

# ---- the plug-in, which needs nothing but melflow and the compiler's libraries
plugin=mine/build/peak_level.so
readelf -d "$plugin" | grep -oP 'NEEDED.*\[\K[^]]*' | sort | tr '\n' ' ' >said
[[ $(<said) =~ ^libc\.so\.6\ (libgcc_s\.so\.1\ )?(libm\.so\.6\ )?libmelflow\.so\.0\ libstdc\+\+\.so\.6\ $ ]] || fail "needs $(<said)"
says "^peak_level .* ($plugin)$" "$melflow" --plugin "$plugin" stages
"$melflow" --plugin "$plugin" run -q mine/peak_level.yaml --var DATA=tones --var OUT=by_plugin.h5 2>said || fail "$(<said)"
says '"same": 3' "$melflow" verify by_plugin.h5 --recompute 100% --trust --json
"$melflow" compare o.h5 by_plugin.h5 >said || fail "$(<said)"
refused 78 "--plugin: $plugin: its stage 'peak_level' exists already, built in" "$own" --plugin "$plugin" stages
sed 's/\(MELFLOW_[0-9]*\.\)[0-9]/\1x/' "$plugin" >other.so
refused 78 '--plugin: other.so: was built for melflow 0.x, and this is 0.' "$melflow" --plugin other.so stages

# The loader refuses the library of another minor version.
sed 's/\(MELFLOW_[0-9]*\.\)[0-9]/\1x/' "$own" >other_version
chmod +x other_version
refused 1 "version \`MELFLOW_0.x' not found" env LD_LIBRARY_PATH="$folder/installed/lib" ./other_version --version
# No symbol of the libraries inside may conflict with others of the same name; melflow_ are the functions of melflow.h.
nm -DC --defined-only "$folder"/installed/lib/libmelflow.so.0 | grep -v ' melflow::' | grep -vE ' (for|to) melflow::| A MELFLOW_| T melflow_.*@@MELFLOW_C_1$' >said || true
[[ ! -s said ]] || fail "the library shows more than melflow: $(head -n 3 said)"

# ---- the stage of docs/own-stage.md that makes several results per recording
sed -n '/^\/\/ halves:/,/^```/p' "$source/docs/own-stage.md" | sed '$d' >mine/halves.cpp
[[ $(wc -l <mine/halves.cpp) -le 40 ]] || fail "halves has $(wc -l <mine/halves.cpp) lines"
# With all public headers: they are there, and so is whatever they include.
sed -n 's/^public \(.*\)/#include "\1"/p' installed/include/melflow/public_headers.txt >mine/headers.cpp
[[ $(wc -l <mine/headers.cpp) -gt 20 ]] || fail "public headers: $(<mine/headers.cpp)"
echo 'melflow_add_program(melflow_halves halves.cpp headers.cpp)' >>mine/CMakeLists.txt
cmake --build mine/build >log 2>&1 || fail "$(tail -n 30 log)"
cat >halves.yaml <<'END'
version: 1
graph:
  tones: {stage: synthetic, kind: tone, count: 3, duration: 1s, rate: 16kHz}
  halves: {stage: halves, from: tones}
  mel: {stage: mel, from: halves, n_fft: 512, hop: 160, n_mels: 20}
  write: {stage: npy_write, from: mel, path: halves.npy}
END
says '^3 files: 3 ok' mine/build/melflow_halves run halves.yaml
for half in 0 1; do
  grep -aqF "{\"rows\": 51, \"number\": {\"halves\": $half}}" halves.index.npy || fail "no half $half"
done

# ---- the framework without YAML and audio
mkdir bare
cat >bare/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(bare LANGUAGES CXX)
find_package(melflow REQUIRED)
add_executable(bare word_count.cpp)
target_link_libraries(bare PRIVATE melflow::melflow)
END
cp "$source/docs/examples/word_count.cpp" bare
(cd bare && cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH="$folder/installed" && cmake --build build) >log 2>&1 ||
  fail "$(tail -n 30 log)"
mkdir texts
printf 'to be or not to be' >texts/a.txt
printf 'not\n' >texts/b.txt
printf 'a\0b' >texts/c.txt
status=0
bare/build/bare texts >counts 2>reasons || status=$?
[[ $status == 3 ]] || fail "word_count: status $status"
[[ $(tr -s ' \n' ' ' <counts) == ' 2 be 2 not 1 or 2 to ' ]] || fail "word_count: $(<counts)"
grep -qx 'texts/c.txt: is not a text' reasons || fail "word_count: $(<reasons)"

# ---- what 0.1 had
sed 's/find_package(melflow REQUIRED)/find_package(melflow REQUIRED COMPONENTS stages)/' mine/CMakeLists.txt >bare/CMakeLists.txt
refused 1 'it has no components since 0.2: write find_package(melflow REQUIRED), and' \
  cmake -S bare -B bare/other -G Ninja -DCMAKE_PREFIX_PATH="$folder/installed"

# ---- missing libraries: here, and where melflow is built; install_deps.sh has all of them
refused 1 '  apt-get install libfmt-dev' \
  cmake -S mine -B mine/other -G Ninja -DCMAKE_PREFIX_PATH="$folder/installed" -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON
for package in $(sed -n 's/^ *apt-get install //p' said); do
  grep -qw -- "$package" "$source/apps/install_deps.sh" || fail "install_deps.sh does not install $package"
done
refused 1 '  bash apps/install_deps.sh' env PKG_CONFIG_LIBDIR=/nowhere \
  cmake -S "$source" -B refused -G Ninja -DMELFLOW_CUDA=OFF
echo 'own stage: all right'
