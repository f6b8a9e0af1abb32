# What makes compiling shorter: headers that are compiled once, and files that are compiled together.
#
# What most files include and no change of this repository touches, compiled once for several targets.
#   melflow_precompile_headers(TARGET OWNER [HEADER...])   OWNER's headers, which have HEADER besides; TARGET is a target
#                                                          whose options of the compiler are OWNER's, or OWNER itself
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without, so that a file that lacks an include is found.
#
# <regex>, <random> and nlohmann/json.hpp are omitted: GCC instantiates what their inline functions need in every file
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

# Compiles files together (CMake's unity builds): most of the time of compiling goes into headers and what they instantiate.
#   melflow_compile_rooms_together(TARGET)   the files of each folder, at most 16 at a time
#   melflow_compile_alone(SOURCE...)   what is compiled by itself in a release: loops over samples and rows, so that what is
#                                      inlined there does not depend on which files are neighbours
#   melflow_compile_tests_together(TARGET)   every few *_test.cpp, each of which is a namespace of its own
# What stands in two files of a room needs two names, or is one piece.
# -DMELFLOW_JOIN_FILES=OFF compiles every file by itself: a change of one file then compiles no other.
option(MELFLOW_JOIN_FILES "Compile the files of a room together" ON)

function(melflow_compile_alone)
  if(NOT MELFLOW_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

function(melflow_compile_rooms_together target)
  if(NOT MELFLOW_JOIN_FILES)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^$]*[.]cpp$")
  get_target_property(folder ${target} SOURCE_DIR)
  foreach(source ${sources})
    get_filename_component(room ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${room}" room)
    get_source_file_property(alone ${folder}/${source} TARGET_DIRECTORY ${target} SKIP_UNITY_BUILD_INCLUSION)
    if(alone)
      continue()
    endif()
    list(APPEND files_of_${room} ${source})
    list(LENGTH files_of_${room} count)
    math(EXPR group "(${count} - 1) / 16")
    set_property(SOURCE ${folder}/${source} TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP "${room}_${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes a file that is included for a header, in which such types would be a mistake.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

function(melflow_compile_tests_together target)
  if(NOT MELFLOW_JOIN_FILES)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
