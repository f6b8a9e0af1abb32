# The files that `cmake --install` puts in place. The component `runtime` is the program with all
# that it needs; `development` is a package for find_package(melflow):
#   melflow::melflow                      the library; programs that include its headers also need oneTBB and fmt
#   melflow_add_program(NAME SOURCE...)   the whole program with further stages in it
#   melflow_add_plugin(NAME SOURCE...)    a shared library with further stages
set(MELFLOW_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/melflow)

file(RELATIVE_PATH library ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(melflow PROPERTIES INSTALL_RPATH "$ORIGIN/${library}" BUILD_RPATH_USE_ORIGIN ON)
install(TARGETS melflow RUNTIME COMPONENT runtime)
install(TARGETS melflow_library EXPORT melflow LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/config/pipelines/ DESTINATION ${CMAKE_INSTALL_DATADIR}/melflow/pipelines
  COMPONENT runtime FILES_MATCHING PATTERN *.yaml)
install(DIRECTORY own_stage/ DESTINATION ${CMAKE_INSTALL_DATADIR}/melflow/own_stage COMPONENT runtime)

install(EXPORT melflow NAMESPACE melflow:: FILE melflowTargets.cmake DESTINATION ${MELFLOW_PACKAGE_DIR}
  COMPONENT development)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS public_headers.txt)
file(STRINGS public_headers.txt headers REGEX "^(public|internal) ")
foreach(header ${headers})
  string(REGEX REPLACE "^[a-z]+ " "" header ${header})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/melflow/${folder}
    COMPONENT development)
endforeach()
install(FILES public_headers.txt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/melflow COMPONENT development)

configure_package_config_file(melflowConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/melflowConfig.cmake
  INSTALL_DESTINATION ${MELFLOW_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/melflowConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/melflowConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/melflowConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/dependencies.cmake melflow_add_program.cmake main.cpp DESTINATION ${MELFLOW_PACKAGE_DIR}
  COMPONENT development)
