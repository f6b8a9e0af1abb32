# Looks for nvcc. In: MELFLOW_CUDA (AUTO, ON, OFF). Out: MELFLOW_HAS_CUDA, and the language CUDA enabled
# with it.
set(MELFLOW_HAS_CUDA OFF)
if(NOT MELFLOW_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "MELFLOW_CUDA is ${MELFLOW_CUDA}, must be AUTO, ON or OFF")
endif()
# A sanitizer sees nothing of a kernel, and its phases are tested on the host.
if(MELFLOW_CUDA STREQUAL "OFF" OR (MELFLOW_CUDA STREQUAL "AUTO" AND MELFLOW_SANITIZE))
  return()
endif()
find_program(MELFLOW_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
if(MELFLOW_NVCC OR CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER ${MELFLOW_NVCC})
  endif()
  enable_language(CUDA)
  set(MELFLOW_HAS_CUDA ON)
  # CMake learned only after nvcc what its option for C++20 is.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
elseif(MELFLOW_CUDA STREQUAL "ON")
  message(FATAL_ERROR "MELFLOW_CUDA is ON, but there is no nvcc in the path, in $CUDA_HOME/bin or in "
                      "/usr/local/cuda/bin, and CMAKE_CUDA_COMPILER names none")
endif()
message(STATUS "Kernels for CUDA devices: ${MELFLOW_HAS_CUDA} (MELFLOW_CUDA is ${MELFLOW_CUDA})")
