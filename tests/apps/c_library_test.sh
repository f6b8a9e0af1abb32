#!/usr/bin/env bash
# melflow.h from an installed melflow: the names, size and needs of both libraries, the examples with GCC and clang, and the
# same rows by both.
#
# In:  c_library_test.sh BUILD_FOLDER SOURCE_FOLDER
set -euo pipefail
build=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "c library: $*" >&2
  exit 1
}
same() { cmp "$1" "$2" || fail "$3"; }

cmake --install "$build" --prefix "$folder/installed" >"$folder/log" || fail "$(tail -n 20 "$folder/log")"
cd "$folder"
libraries=$(dirname "$(find installed -name libmelflow_frontend.a)")
archive=$libraries/libmelflow_frontend.a shared=$libraries/libmelflow.so
export PKG_CONFIG_PATH=$PWD/$libraries/pkgconfig LD_LIBRARY_PATH=$PWD/$libraries
LC_ALL=C sort "$source/apps/c/names" >names

# ---- names: those of melflow.h in both libraries, and no other in the archive
grep -oE '\bmelflow_[a-z0-9_]+\(' installed/include/melflow.h | tr -d '(' | LC_ALL=C sort -u >declared
same names declared 'apps/c/names has other functions than melflow.h'
nm -g --defined-only "$archive" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort >of_archive
same names of_archive 'the archive has other global names than those of melflow.h'
nm -D --defined-only --with-symbol-versions "$shared" | sed -n 's/.* \(melflow_.*\)@@MELFLOW_C_1$/\1/p' | LC_ALL=C sort >of_shared
same names of_shared 'libmelflow.so has other C functions than those of melflow.h'

# ---- size, and what a program with the archive needs
nm -u "$archive" | grep -iE 'fftw|soxr|hdf5|H5|yaml|tbb|sndfile' && fail 'the archive needs another library'
read -ra alone <<<"$(pkg-config --cflags --libs melflow-frontend)"
read -ra all <<<"$(pkg-config --cflags --libs melflow)"
cc=${CC:-cc} cxx=${CXX:-c++}
$cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$source/apps/c/examples/stream.c" "${alone[@]}" -o stream
strip -o stripped stream
size=$(stat -c %s stripped)
((size <= 1 << 20)) || fail "a stripped program with the archive has $size bytes, more than 1 MiB"
needs=$(readelf -d stream | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p' | sed 's/\.so.*//' | sort | tr '\n' ' ')
[[ $needs =~ ^(ld-linux-[a-z0-9-]+ )?libc\ (libgcc_s\ )?(libm\ )?(libpthread\ )?libstdc\+\+\ $ ]] || fail "a program with the archive needs $needs"
$cc -std=c99 -Wall -Wextra -Wpedantic -Werror "$source/apps/c/examples/rows.c" "${all[@]}" -o rows

# ---- the examples: a WAV at once by one library, its samples in pieces by the other
python3 "$source/tests/apps/c_libraries.py" --write tone
./rows wenet tone.wav >at_once
./stream <tone.raw >in_pieces
[[ $(wc -l <at_once) == 98 && $(head -n 1 at_once | wc -w) == 80 ]] || fail "rows.c prints $(wc at_once)"
same at_once in_pieces 'the examples give other rows in pieces than at once'
[[ $(./rows none tone.wav 2>&1) == "none: 'none' is no preset; \`melflow presets\` lists them" ]] || fail "$(./rows none tone.wav 2>&1)"
[[ $(./rows wenet names 2>&1) == names:* ]] || fail "$(./rows wenet names 2>&1)"
head -c 31000 tone.wav >cut.wav
[[ $(./rows wenet cut.wav 2>&1 >/dev/null) == cut.wav:\ decode:* ]] || fail "$(./rows wenet cut.wav 2>&1 >/dev/null)"
cat >wrapped.cpp <<'END'
#include <melflow.hpp>
#include <cstdio>
int main() try {
  const melflow::c::Front front("kaldi", 16000);
  const std::vector<float> samples(16000, 0.1F);
  melflow::c::Stream stream(front);
  std::vector<float> rows = stream.push(samples.data(), samples.size());
  const std::vector<float> rest = stream.finish();
  rows.insert(rows.end(), rest.begin(), rest.end());
  if (rows != front.rows(samples.data(), samples.size())) return 1;
  melflow::c::Front("none");
} catch (const melflow::c::Error& e) {
  std::puts(e.what());
  return e.status == MELFLOW_BAD_SETTINGS ? 0 : 1;
}
END
for compiler in "$cxx" clang++; do
  [[ -n $(type -P "$compiler") ]] || { echo "c library: skipped: $compiler is not installed"; continue; }
  "$compiler" -std=c++17 -Wall -Wextra -Werror wrapped.cpp "${alone[@]}" -o wrapped
  [[ $(./wrapped) == "'none' is no preset"* ]] || fail "melflow.hpp with $compiler: $(./wrapped)"
done
python3 "$source/apps/c/examples/rows.py" "$shared" hifigan >by_ctypes
if [[ -n $(type -P rustc) ]] && rustc --version >/dev/null 2>&1; then
  rustc -O "$source/apps/c/examples/rows.rs" -L "$libraries" -l static=melflow_frontend -l stdc++ -o rust_rows
  ./rust_rows hifigan | tr -d '[],' >by_rust
  python3 "$source/tests/apps/c_libraries.py" --same by_ctypes by_rust || fail 'Rust gives other rows than ctypes'
else
  echo 'c library: skipped: rustc is not installed'
fi

# ---- every preset: both libraries, at once and in pieces
"$cxx" -shared -o libfrontend.so -Wl,--whole-archive "$archive" -Wl,--no-whole-archive -lm
python3 "$source/tests/apps/c_libraries.py" "$shared" ./libfrontend.so
