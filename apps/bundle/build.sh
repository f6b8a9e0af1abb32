#!/usr/bin/env bash
# Builds the bundle from nothing: installs missing packages, fetches CUDA 12 into build/cuda-12,
# builds, and packs the program, the GPU check and their libraries into one archive.
#
# In:  apps/bundle/build.sh, on Debian 12 with the network; as root, or with sudo where packages are missing.
# Out: build/bundle/melflow-bundle-VERSION-ARCHITECTURE.tar.gz
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bash apps/install_deps.sh --bundle
bash apps/bundle/fetch_cuda.sh build/cuda-12
cmake --preset bundle
cmake --build --preset bundle --target bundle
