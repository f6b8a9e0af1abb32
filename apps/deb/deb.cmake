# `cpack -G DEB` in a build folder makes two packages: melflow_VERSION_ARCHITECTURE.deb has the program with its
# library, pipelines, manual page and bash completion; melflow-dev_... has what find_package(melflow) needs.
# dpkg-shlibdeps (package dpkg-dev) finds the dependencies of the first.
set(manual ${CMAKE_CURRENT_BINARY_DIR}/melflow.1.gz)
# Built together with the program, so that whoever has built the program can install it.
add_custom_command(TARGET melflow POST_BUILD BYPRODUCTS ${manual}
  COMMAND bash -c "bash '${CMAKE_CURRENT_LIST_DIR}/man.sh' '$<TARGET_FILE:melflow>' | gzip -n9 > '${manual}'" VERBATIM)
install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/completion.bash RENAME melflow
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/melflow COMPONENT runtime)

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME melflow)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME melflow-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "melflow (= ${PROJECT_VERSION}), libtbb-dev, libfmt-dev")
set(CPACK_DEBIAN_PACKAGE_SECTION sound)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "the maintainers of melflow")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
include(CPack)
