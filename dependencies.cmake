# The libraries that melflow links with, each with its Debian package: for melflow's own build and, installed with
# melflowConfig.cmake, for find_package(melflow).
#   melflow_find_public_dependencies()            those that users of melflow's headers need, too
#   melflow_find_package(DEBIAN PACKAGE [...])    find_package(PACKAGE ...)
#   melflow_find_module(DEBIAN NAME MODULE...)    PkgConfig::NAME, of the first module that pkg-config knows
# Missing ones are added to melflow_missing, by Debian package, so that one message lists them all.
macro(melflow_note_missing debian)
  if(NOT ${debian} IN_LIST melflow_missing)
    list(APPEND melflow_missing ${debian})
  endif()
endmacro()

macro(melflow_find_package debian package)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    melflow_note_missing(${debian})
  endif()
endmacro()

macro(melflow_find_module debian name)
  if(PkgConfig_FOUND)
    pkg_search_module(${name} QUIET IMPORTED_TARGET ${ARGN})
  endif()
  if(NOT ${name}_FOUND)
    melflow_note_missing(${debian})
  endif()
endmacro()

macro(melflow_find_public_dependencies)
  melflow_find_package(libc6-dev Threads)
  melflow_find_package(libtbb-dev TBB)
  melflow_find_package(libfmt-dev fmt)
endmacro()
