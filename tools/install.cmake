# What `cmake --install` adds to the program: how to run it as a service, and what to read.
# Settings in use (sysconfdir) are the operator's and are never written here.
set(REPRISE_UNIT_DIR lib/systemd/system CACHE STRING "where the service unit goes, below the prefix")

# The unit names absolute paths and --prefix may still change them, so it is made while installing.
install(CODE "
  set(bindir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  set(docdir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")
  if(IS_ABSOLUTE \"${CMAKE_INSTALL_SYSCONFDIR}\")
    set(sysconfdir \"${CMAKE_INSTALL_SYSCONFDIR}\")
  elseif(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    set(sysconfdir /etc)
  else()
    set(sysconfdir \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_SYSCONFDIR}\")
  endif()
  configure_file(\"${CMAKE_CURRENT_LIST_DIR}/reprise.service.in\"
                 \"${CMAKE_BINARY_DIR}/reprise.service\" @ONLY)
")
install(FILES ${CMAKE_BINARY_DIR}/reprise.service DESTINATION ${REPRISE_UNIT_DIR})
install(FILES LICENSE README.md config/example.json config/REFERENCE.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY config/guides DESTINATION ${CMAKE_INSTALL_DOCDIR})
