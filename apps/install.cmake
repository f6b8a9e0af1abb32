# What `cmake --install` puts where: the program, its pipelines, and a package for find_package(melflow) with
#   melflow::pipeline   the framework
#   melflow::mel        samples to rows on the processor
#   melflow::cuda_host  devices, as stages see them (and melflow::cuda, the kernels, in a build that has them)
#   melflow::stages     all stages, as objects: they register themselves in whatever they are linked into
#   melflow::config     YAML to plans
set(MELFLOW_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/melflow)

install(TARGETS melflow RUNTIME)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/config/pipelines/ DESTINATION ${CMAKE_INSTALL_DATADIR}/melflow/pipelines
  FILES_MATCHING PATTERN *.yaml)
install(FILES ${PROJECT_SOURCE_DIR}/tests/golden/presets.json parity/parity_reference.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/melflow/parity)

set(rooms melflow_pipeline melflow_mel melflow_stages melflow_config melflow_cuda_host)
if(TARGET melflow_cuda)
  list(APPEND rooms melflow_cuda)
endif()
foreach(room ${rooms})
  string(REPLACE melflow_ "" name ${room})
  set_target_properties(${room} PROPERTIES EXPORT_NAME ${name})
endforeach()
foreach(room pipeline stages cuda config)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${room}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/melflow/${room}
    FILES_MATCHING PATTERN *.h)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/generated/stages/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/melflow/stages)

# melflow_options only carries what this build was compiled with (warnings, sanitizers).
install(TARGETS ${rooms} melflow_options EXPORT melflow
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/melflow)
install(EXPORT melflow NAMESPACE melflow:: FILE melflowTargets.cmake DESTINATION ${MELFLOW_PACKAGE_DIR})
configure_package_config_file(melflowConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/melflowConfig.cmake
  INSTALL_DESTINATION ${MELFLOW_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/melflowConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/melflowConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/melflowConfigVersion.cmake
  DESTINATION ${MELFLOW_PACKAGE_DIR})
