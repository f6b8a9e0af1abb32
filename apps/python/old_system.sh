#!/usr/bin/env bash
# Makes what wheels for older systems are built with: GCC 12 that links with the C library of Debian 11 (glibc 2.31), and
# melflow's libraries compiled by it from Debian 12's sources, so that decoded bits are those of Debian 12. Nothing is
# installed, and nothing but a few generators of HDF5 runs in an emulator.
#
# In:  apps/python/old_system.sh [ARCHITECTURE]    x86_64 or aarch64; default: that of this machine, which is x86-64 for
#      another one. On Debian 12, with the network.
# Out: build/old-system/ARCHITECTURE, which is kept; what is there already is not made again:
#        toolchain.cmake     for CMake; CMAKE_PREFIX_PATH is libraries/
#        root/               the C library and GCC
#        libraries/          the libraries; sources.tsv: file or package, source package, version, of each;
#                            share/doc/SOURCE/copyright
#        python3.11/ python3.13/   Python's headers, in include/
#        run                 runs a program of that system: run PROGRAM [ARGUMENT...]
#
# What GCC 12's libstdc++ has and Debian 11's lacks is linked in from the archive, as Red Hat's toolsets do.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
state=$here/../../build/old-system
architecture=${1:-$(uname -m)}
case $architecture in
  x86_64) debian=amd64 ;;
  aarch64) debian=arm64 ;;
  *)
    echo "usage: old_system.sh [x86_64 | aarch64]" >&2
    exit 2
    ;;
esac
machine=$architecture-linux-gnu
mkdir -p "$state/$architecture/made"
state=$(cd "$state" && pwd)
sources=$state/sources
state=$state/$architecture
root=$state/root
libraries=$state/libraries
export TMPDIR=$state/tmp
mkdir -p "$TMPDIR"

# once NAME COMMAND...: runs it where that has not been done; shows its output where it fails.
once() {
  local name=$1
  shift
  [[ -e $state/made/$name ]] && return
  echo "old_system: $name for $architecture"
  # A subshell of its own: in a condition, `set -e` has no effect.
  (set -e && "$@") >"$state/$name.log" 2>&1 &
  if ! wait $!; then
    tail -n 40 "$state/$name.log" >&2
    exit 1
  fi
  touch "$state/made/$name"
}
unpack() { bash "$here/../unpack_debian.sh" "$@"; }

make_root() {
  local link target tool gcc=$root/usr/lib/gcc/$machine/12
  unpack --arch $debian bullseye main "$root" libc6 libc6-dev linux-libc-dev libcrypt1 libcrypt-dev libgcc-s1 libstdc++6
  if [[ $architecture == "$(uname -m)" ]]; then
    unpack bookworm main "$root" {g++,gcc,cpp}-12 lib{gcc,stdc++}-12-dev
  else
    unpack bookworm main "$root" {g++,gcc,cpp}-12-${machine/_/-} lib{gcc,stdc++}-12-dev-$debian-cross binutils-${machine/_/-}
    unpack bookworm main "$state/emulator" qemu-user-static
    gcc=$root/usr/lib/gcc-cross/$machine/12
    for tool in "$root/usr/bin/$machine"-{ar,as,ld.bfd,nm,objcopy,objdump,ranlib,readelf,strip}; do
      mv "$tool" "$tool.bin"
      printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec "%s" "$@"\n' "$root/usr/lib/$(uname -m)-linux-gnu" "$tool.bin" >"$tool"
      chmod +x "$tool"
    done
  fi
  find "$root" -type l -lname '/*' | while read -r link; do
    target=$(readlink "$link")
    [[ $target == "$root"/* ]] || ln -sfn "$(realpath -sm --relative-to="$(dirname "$link")" "$root$target")" "$link"
  done
  rm -f "$gcc/libstdc++.so"
  echo "INPUT(/usr/lib/$machine/libstdc++.so.6 -l:libstdc++.a)" >"$gcc/libstdc++.so"
}
once root make_root

cc=$root/usr/bin/$machine-gcc-12 cxx=$root/usr/bin/$machine-g++-12
emulator=()
[[ $architecture == "$(uname -m)" ]] || emulator=("$state/emulator/usr/bin/qemu-$architecture-static" -L "$root")
printf '#!/bin/sh\nexec %s "$@"\n' "${emulator[*]:-env}" >"$state/run"
chmod +x "$state/run"
cat >"$state/toolchain.cmake" <<END
set(CMAKE_SYSROOT "$root")
set(CMAKE_C_COMPILER "$cc")
set(CMAKE_CXX_COMPILER "$cxx")
set(CMAKE_PREFIX_PATH "$libraries")
set(CMAKE_FIND_ROOT_PATH "$libraries" "$root")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_\${kind}_LINKER_FLAGS_INIT "-Wl,--exclude-libs,libstdc++.a -Wl,-rpath-link,$libraries/lib")
endforeach()
set(ENV{PKG_CONFIG_LIBDIR} "$libraries/lib/pkgconfig:$libraries/share/pkgconfig")
END
if [[ ${#emulator[@]} -gt 0 ]]; then
  cat >>"$state/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $architecture)
set(CMAKE_CROSSCOMPILING_EMULATOR "${emulator[0]};-L;$root")
END
fi

packages=(zlib libpng1.6 libogg flac opus libvorbis lame mpg123 libsndfile libsoxr re2 xxhash libdeflate yaml-cpp fmtlib onetbb
  liburing hdf5)
[[ -d $sources/${packages[-1]} ]] ||
  once sources unpack --source bookworm main "$sources" "${packages[@]}"

export PKG_CONFIG_LIBDIR=$libraries/lib/pkgconfig
hardened="-O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIC"
# Nobody is to find the parts of libstdc++ in these.
linked="-s -Wl,-z,relro,-z,now -Wl,--exclude-libs,libstdc++.a"
jobs=${JOBS:-$(nproc)}

# Writes what is in sources.tsv of a library: the names of its files, its source package and version.
account() { # SOURCE NAME...
  local source=$1 version name
  shift
  version=$(dpkg-parsechangelog -l "$sources/$source/debian/changelog" -S Version)
  for name in "$@"; do
    printf '%s\t%s\t%s\n' "$name" "$source" "$version" >>"$libraries/sources.tsv"
  done
  install -D -m 644 "$sources/$source/debian/copyright" "$libraries/share/doc/$source/copyright"
}

with_cmake() { # SOURCE OPTION...
  local source=$1
  shift
  mkdir -p "$state/build/$source"
  cd "$state/build/$source" # where HDF5's tests look for their files
  cmake -G Ninja -S "$sources/$source" -B "$state/build/$source" --toolchain "$state/toolchain.cmake" \
    -DCMAKE_INSTALL_PREFIX="$libraries" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=ON -DBUILD_TESTING=OFF \
    -DCMAKE_BUILD_TYPE=None -DCMAKE_{C,CXX}_FLAGS="$hardened" -DCMAKE_SHARED_LINKER_FLAGS="$linked" -DCMAKE_INSTALL_RPATH='$ORIGIN' "$@"
  cmake --build "$state/build/$source" -j "$jobs" --target install
}

with_configure() { # SOURCE OPTION...
  local source=$1
  shift
  mkdir -p "$state/build/$source"
  cd "$state/build/$source"
  "$sources/$source/configure" --host=$machine --prefix="$libraries" --disable-static CC="$cc --sysroot=$root" CXX="$cxx --sysroot=$root" \
    AUTOMAKE=: ACLOCAL=: AUTOCONF=: AUTOHEADER=: CFLAGS="$hardened" CXXFLAGS="$hardened" LDFLAGS="$linked -L$libraries/lib" CPPFLAGS="-I$libraries/include" "$@"
  make -j "$jobs" install
}

with_make() { # SOURCE OPTION...
  local source=$1
  shift
  rm -rf "$state/build/$source"
  mkdir -p "$state/build"
  cp -r "$sources/$source" "$state/build/$source"
  # Flags in the environment, so that makefiles can add theirs.
  CFLAGS=$hardened CXXFLAGS="$hardened -O3 -std=c++17 -pthread" LDFLAGS="$linked -pthread" \
    make -C "$state/build/$source" -j "$jobs" CC="$cc --sysroot=$root" CXX="$cxx --sysroot=$root" "$@"
}

# library SOURCE HOW...: builds it, with accounts of the shared libraries that it brings.
library() {
  local source=$1 before after
  shift
  before=$(cd "$libraries/lib" 2>/dev/null && ls || true)
  "$@"
  after=$(cd "$libraries/lib" && ls)
  # shellcheck disable=SC2046
  account "$source" $(comm -13 <(echo "$before") <(echo "$after") | grep -E '\.so\.')
  rm -rf "$state/build/$source"
}

make_zlib() {
  mkdir -p "$state/build"
  cp -r "$sources/zlib" "$state/build/"
  cd "$state/build/zlib"
  CHOST=$machine CC="$cc --sysroot=$root" CFLAGS="$hardened" LDFLAGS="$linked" ./configure --prefix="$libraries"
  make -j "$jobs" install
  rm "$libraries/lib/libz.a"
}
make_xxhash() {
  local dispatch=0
  [[ $architecture == x86_64 ]] && dispatch=1
  with_make xxhash DISPATCH=$dispatch PREFIX="$libraries" LIBDIR="$libraries/lib" install
  rm "$libraries/lib/libxxhash.a"
}
make_re2() {
  # Its tables are made of Unicode's, which Debian has in a package of its own.
  unpack bookworm main "$state/unicode" unicode-data
  sed -i "s|^_UNICODE_DIR = .*|_UNICODE_DIR = \"$state/unicode/usr/share/unicode\"|" "$sources/re2/re2/unicode.py"
  with_make re2 REBUILD_TABLES=1 prefix="$libraries" libdir="$libraries/lib" shared-install
}
make_libdeflate() {
  with_make libdeflate PREFIX="$libraries" LIBDIR="$libraries/lib" install
  rm "$libraries/lib/libdeflate.a"
}
make_liburing() {
  cp -r "$sources/liburing" "$state/build/"
  cd "$state/build/liburing"
  ./configure --prefix="$libraries" --libdir="$libraries/lib" --libdevdir="$libraries/lib" --includedir="$libraries/include" \
    --mandir="$state/build/man" --cc="$cc --sysroot=$root" --cxx="$cxx --sysroot=$root"
  make -C src -j "$jobs" CFLAGS="$hardened" LDFLAGS="$linked"
  make install
  rm "$libraries/lib/liburing.a"
}
make_hdf5() {
  with_cmake hdf5 -DBUILD_SHARED_LIBS=OFF -DHDF5_BUILD_{TOOLS,EXAMPLES,FORTRAN,CPP_LIB}=OFF -DHDF5_BUILD_HL_LIB=ON \
    -DHDF5_ENABLE_Z_LIB_SUPPORT=ON -DHDF5_ENABLE_SZIP_SUPPORT=OFF -DDEFAULT_API_VERSION=v18 -DHDF5_INSTALL_LIB_DIR=lib
  account hdf5 libhdf5-dev
  rm -rf "$state/build/hdf5"
}
mkdir -p "$libraries/lib"
once zlib library zlib make_zlib
once libpng library libpng1.6 with_configure libpng1.6
once libogg library libogg with_configure libogg
once flac library flac with_cmake flac -DBUILD_{CXXLIBS,PROGRAMS,EXAMPLES,DOCS}=OFF -DINSTALL_{MANPAGES,CMAKE_CONFIG_MODULE}=OFF
once opus library opus with_configure opus --enable-custom-modes --disable-doc --disable-extra-programs
once libvorbis library libvorbis with_configure libvorbis --disable-docs --disable-examples
once lame library lame with_configure lame --disable-frontend --disable-gtktest
once mpg123 library mpg123 with_configure mpg123 --enable-lfs-alias --disable-components --enable-libmpg123
once libsndfile library libsndfile with_cmake libsndfile -DBUILD_PROGRAMS=OFF -DBUILD_EXAMPLES=OFF -DENABLE_CPACK=OFF
# Without OpenMP: melflow's threads are oneTBB's, and libgomp need not be carried.
once libsoxr library libsoxr with_cmake libsoxr -DWITH_OPENMP=OFF -DBUILD_TESTS=OFF -DBUILD_EXAMPLES=OFF -DWITH_LSR_BINDINGS=OFF
once re2 library re2 make_re2
once xxhash library xxhash make_xxhash
once libdeflate library libdeflate make_libdeflate
once yaml-cpp library yaml-cpp with_cmake yaml-cpp -DYAML_BUILD_SHARED_LIBS=ON -DYAML_CPP_BUILD_{TESTS,TOOLS}=OFF
once fmt library fmtlib with_cmake fmtlib -DFMT_DOC=OFF -DFMT_TEST=OFF
# Without its allocator, which oneTBB loads only where it finds it. With link-time optimisation the archive of libstdc++
# would come before the shared library.
once onetbb library onetbb with_cmake onetbb -DTBB_ENABLE_IPO=OFF -DTBB_TEST=OFF -DTBBMALLOC_BUILD=OFF -DTBB_DISABLE_HWLOC_AUTOMATIC_SEARCH=ON
once liburing library liburing make_liburing
once hdf5 make_hdf5

# Packages whose code is compiled in as it is: headers, and the part of GCC's library that is linked from its archive.
make_headers() {
  local package place source version
  unpack --arch $debian bookworm main "$state/headers" nlohmann-json3-dev libcli11-dev gcc-12-base lib{avformat,avcodec,avutil}-dev
  cp -r "$state/headers/usr/include/." "$libraries/include/"
  cp -r "$state/headers/usr/share/cmake" "$libraries/share/"
  # FFmpeg's headers suffice, as its libraries are loaded where they are installed.
  for package in libavformat libavcodec libavutil; do
    sed "/^Requires/d;/^Libs/d;s|^includedir=.*|includedir=$libraries/include/$machine|" \
      "$state/headers/usr/lib/$machine/pkgconfig/$package.pc" >"$libraries/lib/pkgconfig/$package.pc"
  done
  for package in nlohmann-json3-dev libcli11-dev libstdc++-12-dev; do
    place=$state/headers/usr/share/doc/${package/libstdc++-12-dev/gcc-12-base}
    read -r source version < <(zcat "$place"/changelog.Debian.gz | sed -n '1s/^\([^ ]*\) (\([^)]*\)).*/\1 \2/p')
    printf '%s\t%s\t%s\n' "$package" "$source" "$version" >>"$libraries/sources.tsv"
    install -D -m 644 "$place/copyright" "$libraries/share/doc/$source/copyright"
  done
}
once headers make_headers
make_python_headers() {
  unpack --arch $debian bookworm main "$state/python3.11" libpython3.11-dev
  unpack --arch $debian trixie main "$state/python3.13" libpython3.13-dev
}
once python make_python_headers
