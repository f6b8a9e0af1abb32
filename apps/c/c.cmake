# The C interface: in libmelflow.so all of it, and libmelflow_frontend.a, the front end alone. The reasons for this design
# are in docs/decisions/0037-c-interface.md.
add_library(melflow_c OBJECT c/functions.cpp c/settings.cpp c/core_front.cpp)
target_compile_definitions(melflow_c PRIVATE MELFLOW_VERSION_TEXT="${PROJECT_VERSION}")
target_link_libraries(melflow_c PUBLIC melflow_mel nlohmann_json::nlohmann_json PkgConfig::xxhash PRIVATE melflow_options)
# Is called once for a front end, and its templates are many.
set_source_files_properties(c/settings.cpp PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>")
# Names that would be unique in a process stay names of the archive.
set(own_names "$<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>" -ffunction-sections)
target_compile_options(melflow_c PRIVATE ${own_names})
target_compile_options(melflow_mel PRIVATE ${own_names})
target_sources(melflow_library PRIVATE $<TARGET_OBJECTS:melflow_c> c/pipeline_front.cpp)
target_link_libraries(melflow_library PRIVATE nlohmann_json::nlohmann_json)

if(SKBUILD)
  return()  # wheels have no files for development
endif()
# The objects of the graph's kernels, with the transform of our own in the place of FFTW's.
add_library(melflow_c_alone OBJECT c/alone.cpp)
target_link_libraries(melflow_c_alone PRIVATE melflow_c melflow_options)
target_compile_options(melflow_c_alone PRIVATE ${own_names})
set(objects $<TARGET_OBJECTS:melflow_c> $<TARGET_OBJECTS:melflow_c_alone> $<FILTER:$<TARGET_OBJECTS:melflow_mel>,EXCLUDE,real_fft_fftw>)
if(MELFLOW_HAS_FFTW)
  list(APPEND objects $<TARGET_OBJECTS:melflow_own_transform>)
endif()
# One object, whose only global names are those of melflow.h, with what they need. Groups (of templates) are resolved here:
# they would be dropped in favour of those in the program that links the library, whose names are others.
file(STRINGS c/names names)
list(TRANSFORM names PREPEND --undefined=)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS c/names)
set(frontend ${CMAKE_BINARY_DIR}/lib/libmelflow_frontend.a)
set(one ${CMAKE_CURRENT_BINARY_DIR}/frontend.o)
add_custom_command(OUTPUT ${frontend} VERBATIM COMMAND_EXPAND_LISTS
  DEPENDS ${objects} ${CMAKE_CURRENT_SOURCE_DIR}/c/names
  COMMAND ${CMAKE_LINKER} -r --force-group-allocation --gc-sections ${names} -o ${one} ${objects}
  COMMAND ${CMAKE_OBJCOPY} --strip-unneeded --keep-global-symbols=${CMAKE_CURRENT_SOURCE_DIR}/c/names ${one}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${frontend}
  COMMAND ${CMAKE_AR} crsD ${frontend} ${one})
add_custom_target(melflow_frontend_archive ALL DEPENDS ${frontend})
add_library(melflow_frontend STATIC IMPORTED GLOBAL)
set_target_properties(melflow_frontend PROPERTIES IMPORTED_LOCATION ${frontend}
  INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_CURRENT_SOURCE_DIR}/c INTERFACE_LINK_LIBRARIES "stdc++;m")
add_dependencies(melflow_frontend melflow_frontend_archive)

file(RELATIVE_PATH melflow_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(name melflow melflow-frontend)
  configure_file(c/${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
install(FILES ${frontend} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(FILES c/melflow.h c/melflow.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
