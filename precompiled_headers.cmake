# What most files include and no change of this repository touches, compiled once for several targets.
#   melflow_precompile_headers(TARGET OWNER [HEADER...])   OWNER's headers, which have HEADER besides; TARGET is a target
#                                                          whose options of the compiler are OWNER's, or OWNER itself
# Tests and builds with sanitizers have them. As released the libraries are built without, so that a file that lacks an
# include is found; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON does the same for all.
#
# <regex>, <random> and nlohmann/json.hpp are left out: GCC instantiates what their inline functions need in every file
# again, which costs more than reading them where they are used.
set(MELFLOW_PRECOMPILED_HEADERS
  <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <filesystem> <functional> <map>
  <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <vector> <fmt/format.h> <fmt/ranges.h>)

function(melflow_precompile_headers target owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${MELFLOW_PRECOMPILED_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
  # What ccache needs to see that a header was precompiled.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endfunction()
