#!/usr/bin/env bash
# Makes a folder with the compiler, headers and runtime of CUDA 12.4; a bundle built with them runs
# with every driver from 525 on. Installs nothing.
#
# In:  apps/bundle/fetch_cuda.sh FOLDER; on Debian, with the network, apt-get, pip and unzip.
# Out: FOLDER/bin/nvcc and its files, in NVIDIA's layout. Does nothing where it exists already.
#      The compiler comes from Debian 13's package, of which only the programs are taken; headers and
#      runtime, a gigabyte there, come from the Python wheels of the same release.
set -euo pipefail
release=12.4

die() {
  echo "fetch_cuda: $*" >&2
  exit 1
}

[[ $# == 1 && $1 != -* ]] || die "usage: fetch_cuda.sh FOLDER"
folder=$1
is_release() { [[ $("$1/bin/nvcc" --version 2>/dev/null) == *"release $release"* ]]; }
if is_release "$folder"; then exit 0; fi
command -v unzip >/dev/null || die "there is no unzip"
python3 -m pip --version >/dev/null 2>&1 || die "there is no pip: apt-get install python3-pip"

part=$folder.part
rm -rf "$part" "$folder"
mkdir -p "$part"/{wheels,bin,nvvm/bin,include,lib}
part=$(cd "$part" && pwd)

# ---- the compiler

bash "$(dirname "${BASH_SOURCE[0]}")/../unpack_debian.sh" trixie non-free "$part/unpacked" nvidia-cuda-toolkit
compiler=$part/unpacked/usr
mv "$compiler"/bin/{cudafe++,fatbinary,nvlink,ptxas,cuobjdump} "$part/bin"
mv "$compiler"/lib/nvidia-cuda-toolkit/bin/{nvcc,crt} "$part/bin"
mv "$compiler/lib/nvidia-cuda-toolkit/bin/cicc" "$part/nvvm/bin"
mv "$compiler/lib/nvidia-cuda-toolkit/libdevice" "$part/nvvm"
mv "$compiler/share/doc/nvidia-cuda-toolkit/copyright" "$part/LICENCE"
cat >"$part/bin/nvcc.profile" <<'PROFILE'
TOP = $(_HERE_)/..
CICC_PATH = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(CICC_PATH):$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib"
PROFILE

# ---- Headers of that release. The runtime is compatible across CUDA 12, so it comes from a release
# ---- whose wheel has the static archive.

wheel() {  # NAME==VERSION SHA256: unpacked to $part/wheels
  rm -f "$part"/wheels/*.whl
  python3 -m pip download -q --no-deps --only-binary=:all: --platform manylinux2014_x86_64 -d "$part/wheels" \
    --require-hashes -r <(echo "$1 --hash=sha256:$2") || die "pip could not fetch $1"
  unzip -q -o "$part"/wheels/*.whl 'nvidia/*' -d "$part/wheels"
}
wheel nvidia-cuda-runtime-cu12==12.9.79 25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3
mv "$part"/wheels/nvidia/cuda_runtime/lib/lib{cudart_static.a,culibos.a,cudart.so.12} "$part/lib"
ln -s libcudart.so.12 "$part/lib/libcudart.so"  # lets CMake find the folder
ar crs "$part/lib/libcudadevrt.a"  # nvcc asks for it; an empty one is enough, nothing here needs its contents
rm -r "$part/wheels/nvidia"
wheel nvidia-cuda-runtime-cu12==12.4.127 64403288fa2136ee8e467cdc9c9427e0434110899d07c779f25b5c068934faa5
wheel nvidia-cuda-nvcc-cu12==12.4.131 e4c9a35435c3b0e36c6397c5696334c9ea6650e524736cbd1c5d345ea099bb04
wheel nvidia-nvtx-cu12==12.4.127 781e950d9b9f60d8241ccea575b32f5105a5baf4c2351cab5256a24869f12a1a
wheel nvidia-cuda-cccl-cu12==12.4.127.post1 2027fa5fc75fbee703bf24e8275a40a605cf94a3e8fef8a7187897d49b34facb
cp -r "$part/wheels/nvidia/cuda_cccl/include/nv" "$part/include"
cp -r "$part"/wheels/nvidia/{cuda_nvcc,cuda_runtime,nvtx}/include/. "$part/include"
mv "$part/wheels/nvidia/nvtx/lib/libnvToolsExt.so.1" "$part/lib"
ln -s libnvToolsExt.so.1 "$part/lib/libnvToolsExt.so"  # CMake 3.25 fails without it
ln -s lib "$part/lib64"

is_release "$part" || die "Debian's package is not CUDA $release any more"
rm -rf "$part/unpacked" "$part/wheels"
mv "$part" "$folder"
echo "fetch_cuda: CUDA $release in $folder"
