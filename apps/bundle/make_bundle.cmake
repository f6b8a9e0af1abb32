# Makes a bundle: cmake -D PROGRAMS=... -D NAME=... -D SOURCE=... -D BINARY=... -D STRIP=... -D NEEDS=... \
#        -P make_bundle.cmake
#
# In:  built programs with an RPATH of $ORIGIN/../lib.
# Out: BINARY/NAME.tar.gz with the programs in NAME/libexec, their launchers in NAME/bin, NAME/share, the GPU check
#      in NAME/perf; in NAME/lib everything they load but NVIDIA's driver and glibc, which is in NAME/glibc for
#      machines with an older one. Fails where the archive exceeds the size limit.
cmake_minimum_required(VERSION 3.25)
set(most_mib 40)

set(folder ${BINARY}/bundle/${NAME})
file(REMOVE_RECURSE ${BINARY}/bundle)
file(MAKE_DIRECTORY ${folder}/bin ${folder}/lib ${folder}/licences)
set(glibc_names "^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec))\\.so")

find_program(CMAKE_OBJDUMP objdump REQUIRED)
set(CMAKE_GET_RUNTIME_DEPENDENCIES_PLATFORM linux+elf)
set(CMAKE_GET_RUNTIME_DEPENDENCIES_TOOL objdump)
set(CMAKE_GET_RUNTIME_DEPENDENCIES_COMMAND ${CMAKE_OBJDUMP})
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAMS}
  RESOLVED_DEPENDENCIES_VAR libraries UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^libcuda\\.so" "^libnvidia")
if(missing)
  message(FATAL_ERROR "bundle: these libraries were not found: ${missing}")
endif()

foreach(program ${PROGRAMS})
  file(COPY ${program} DESTINATION ${folder}/libexec)
  get_filename_component(name ${program} NAME)
  file(RPATH_SET FILE ${folder}/libexec/${name} NEW_RPATH "$ORIGIN/../lib")
  if(STRIP)
    execute_process(COMMAND ${STRIP} ${folder}/libexec/${name} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()

# glibc libraries that the driver may load, as older drivers do, though nothing here needs them.
set(of_glibc ${libraries})
list(FILTER of_glibc INCLUDE REGEX "/libc\\.so\\.6$")
get_filename_component(glibc_folder ${of_glibc} DIRECTORY)
foreach(name libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libutil.so.1)
  list(APPEND libraries ${glibc_folder}/${name})
endforeach()
list(REMOVE_DUPLICATES libraries)

# Copies each library under the name by which it is looked up.
foreach(library ${libraries})
  get_filename_component(name ${library} NAME)
  file(REAL_PATH ${library} real)
  set(place lib)
  if(name MATCHES "${glibc_names}")
    set(place glibc)
  endif()
  configure_file(${real} ${folder}/${place}/${name} COPYONLY)
  string(FIND ${real} ${BINARY}/ of_this_build)
  if(of_this_build EQUAL 0)
    file(RPATH_REMOVE FILE ${folder}/${place}/${name})  # otherwise the programs' RPATH does not apply to it
    if(STRIP)
      execute_process(COMMAND ${STRIP} ${folder}/${place}/${name} COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endif()
endforeach()

# Adds the glibc that the programs and their libraries need, and launchers that choose between it and the machine's own.
set(BUNDLE_GLIBC 0)
file(GLOB loaded ${folder}/libexec/* ${folder}/lib/*)
foreach(file ${loaded})
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${file} OUTPUT_VARIABLE about_file COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "GLIBC_2\\.[0-9]+" versions "${about_file}")
  foreach(version ${versions})
    string(REPLACE "GLIBC_2." "" minor ${version})
    if(minor GREATER BUNDLE_GLIBC)
      set(BUNDLE_GLIBC ${minor})
    endif()
  endforeach()
endforeach()
file(GLOB loader RELATIVE ${folder}/glibc ${folder}/glibc/ld-linux*)
set(BUNDLE_LOADER ${loader})
foreach(program ${PROGRAMS})
  get_filename_component(name ${program} NAME)
  configure_file(${SOURCE}/apps/bundle/start.sh.in ${folder}/bin/${name} @ONLY
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
set(gpl "")
set(BUNDLE_FFTW "")
if(EXISTS ${folder}/lib/libfftw3f.so.3)
  set(gpl --gpl)
  set(BUNDLE_FFTW "But FFTW is, and with it this bundle as a whole; the preset `bundle` makes one without it.")
endif()
execute_process(COMMAND python3 ${SOURCE}/apps/licences.py ${folder} --notices ${folder}/licences ${gpl}
  --compiled-in libhdf5-dev nlohmann-json3-dev libcli11-dev OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
configure_file(${SOURCE}/LICENSE ${folder}/licences/melflow.txt COPYONLY)
configure_file(${SOURCE}/apps/bundle/LICENCES.in ${folder}/LICENCES @ONLY)

file(COPY ${SOURCE}/config/pipelines DESTINATION ${folder}/share/melflow FILES_MATCHING PATTERN *.yaml)
file(COPY ${SOURCE}/perf/gpu.sh ${SOURCE}/perf/scaling.sh ${SOURCE}/perf/programs.sh DESTINATION ${folder}/perf)
file(COPY ${SOURCE}/perf/gpu DESTINATION ${folder}/perf FILES_MATCHING PATTERN *.sh PATTERN *.awk PATTERN *.yaml)
file(COPY ${SOURCE}/perf/rivals/torchaudio_gpu.py DESTINATION ${folder}/perf/rivals)

set(archive ${BINARY}/${NAME}.tar.gz)
execute_process(COMMAND ${CMAKE_COMMAND} -E tar czf ${archive} ${NAME}
  WORKING_DIRECTORY ${BINARY}/bundle COMMAND_ERROR_IS_FATAL ANY)
file(SIZE ${archive} bytes)
math(EXPR mib "${bytes} / 1048576")
list(LENGTH libraries count)
message(STATUS "${archive}: ${mib} MiB, ${count} libraries, glibc 2.${BUNDLE_GLIBC} or its own, ${NEEDS}")
if(mib GREATER_EQUAL most_mib)
  message(FATAL_ERROR "bundle: ${mib} MiB, allowed are ${most_mib}")
endif()
