# What `cmake --install` and the Debian package (`cpack -G DEB` in the build folder) hold.
include(GNUInstallDirs)

# Completions come from the program itself, so that they never differ from its command table.
foreach(shell bash zsh)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/completion.${shell}
    COMMAND overcap completion ${shell} > ${PROJECT_BINARY_DIR}/completion.${shell}
    DEPENDS overcap VERBATIM)
endforeach()
add_custom_target(completions ALL DEPENDS ${PROJECT_BINARY_DIR}/completion.bash ${PROJECT_BINARY_DIR}/completion.zsh)

install(FILES ${PROJECT_BINARY_DIR}/completion.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME overcap)
install(FILES ${PROJECT_BINARY_DIR}/completion.zsh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _overcap)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/overcap RENAME copyright)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/overcap)
install(DIRECTORY docs/manual docs/formats DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/overcap FILES_MATCHING PATTERN "*.md")

set(CPACK_PACKAGE_NAME overcap)
set(CPACK_PACKAGE_VENDOR "Overcap")
set(CPACK_PACKAGE_CONTACT "The Overcap authors <overcap@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run any command on the GPUs you may use")
set(CPACK_PACKAGE_DESCRIPTION
  "Overcap queues commands for the GPUs of a machine, freezes their code at submit, keeps a log per rank and loses
 nothing when something crashes. One program; its engine starts by itself, per user, and needs no root.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
# The glibc it was built with: what the program may need at most.
execute_process(COMMAND getconf GNU_LIBC_VERSION OUTPUT_VARIABLE glibc OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE "glibc " "" glibc "${glibc}")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${glibc})")
include(CPack)
