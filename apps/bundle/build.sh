#!/usr/bin/env bash
# The bundle from nothing: installs what is missing, fetches CUDA 12 into build/cuda-12, builds, and
# packs the program, the GPU check and their libraries as one archive.
#
# In:  apps/bundle/build.sh, on Debian 12 with the network; as root or with sudo where packages miss.
# Out: build/bundle/melflow-bundle-VERSION-ARCHITECTURE.tar.gz
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bash apps/install_deps.sh --bundle
bash apps/bundle/fetch_cuda.sh build/cuda-12
cmake --preset bundle
cmake --build --preset bundle --target bundle
