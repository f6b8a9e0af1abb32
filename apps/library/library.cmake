# libmelflow.so.0 has the framework, the configuration, all stages, devices and the verbs, for the
# program, the Python module and other programs that link melflow. The reasons for this design are
# in docs/decisions/0025-shared-library.md.
set(objects)
foreach(archive melflow_pipeline melflow_mel melflow_config melflow_cuda_host melflow_cuda)
  if(TARGET ${archive})
    list(APPEND objects $<TARGET_OBJECTS:${archive}>)
  endif()
endforeach()
add_library(melflow_library SHARED ${objects})
add_library(melflow::melflow ALIAS melflow_library)
# The C++ interface is stable within one minor version: the loader refuses a program that was linked
# with another.
set(node MELFLOW_${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
configure_file(library/exports.map.in ${CMAKE_CURRENT_BINARY_DIR}/exports.map)
set_target_properties(melflow_library PROPERTIES
  OUTPUT_NAME melflow SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME melflow
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINKER_LANGUAGE CXX
  LINK_DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/exports.map)
target_link_options(melflow_library PRIVATE
  -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/exports.map
  -Wl,-Bsymbolic-functions)  # calls inside the library are direct, as in a program
target_include_directories(melflow_library INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/melflow>)
target_compile_features(melflow_library INTERFACE cxx_std_20)
target_link_libraries(melflow_library
  PUBLIC TBB::tbb fmt::fmt Threads::Threads
  PRIVATE melflow_program melflow_stages melflow_options)
if(MELFLOW_HDF5_ARCHIVE)
  target_sources(melflow_library PRIVATE library/standard_files.cpp)
  target_link_options(melflow_library PRIVATE -Wl,--wrap=stdin,--wrap=stdout,--wrap=stderr)
endif()
