// See cuda_runtime.h.
#pragma once

#include "tests/emulated/cuda_runtime.h"
