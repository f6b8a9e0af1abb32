# The libraries that melflow is linked with, each with the Debian package that has it: for melflow's own build and,
# installed beside melflowConfig.cmake, for find_package(melflow).
#   melflow_find_public_dependencies()            those that what includes melflow's headers needs, too
#   melflow_find_package(DEBIAN PACKAGE [...])    find_package(PACKAGE ...)
#   melflow_find_module(DEBIAN NAME MODULE...)    PkgConfig::NAME, of the first module that pkg-config knows
# What is not there is added to melflow_missing, by its Debian name, so that all of it is said at once.
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
