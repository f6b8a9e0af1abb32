# Shortens compile times: headers that are compiled once, and files that are compiled together.
#
# Precompiled: headers that most files include and that no change of this repository affects, shared by targets.
#   melflow_precompile_headers(TARGET OWNER [HEADER...])   OWNER's headers, with HEADER in addition; TARGET is OWNER or
#                                                          a target with the same compiler options. GCC takes the level
#                                                          of optimisation from the header, whatever a target says; but
#                                                          a file's -O3 goes with a header's -O2
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without them, to find files that lack an include.
#
# <regex>, <random> and nlohmann/json.hpp are omitted: GCC instantiates the templates of their inline functions in every
# file again, which costs more than reading the headers where they are used.
set(MELFLOW_PRECOMPILED_HEADERS
  <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <filesystem> <functional> <map>
  <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <vector> <fmt/format.h> <fmt/ranges.h>)

function(melflow_precompile_headers target owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${MELFLOW_PRECOMPILED_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
  # ccache needs this to recognise precompiled headers.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endfunction()

# Compiles files together (CMake's unity builds): compile time is mostly spent on headers and their templates.
#   melflow_compile_rooms_together(TARGET)   the files of each folder, at most 16 at a time
#   melflow_compile_alone(SOURCE...)   files compiled separately in a release, and with -O3: loops over samples and rows,
#                                      so that inlining there does not depend on the neighbouring files
#   melflow_compile_tests_together(TARGET)   every few *_test.cpp, each of which is a namespace of its own
# Names in unnamed namespaces must therefore be unique within a room.
# -DMELFLOW_JOIN_FILES=OFF compiles every file separately: a change of one file then compiles no other.
option(MELFLOW_JOIN_FILES "Compile the files of a room together" ON)

function(melflow_compile_alone)
  if(NOT MELFLOW_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>")
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
  # GCC takes an included file for a header, in which such types would be an error.
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
