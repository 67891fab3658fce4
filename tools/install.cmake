# What `cmake --install` adds to the program: how to run it as a service, and what to read.
# Settings in use (sysconfdir) are the operator's and are never written here.
set(CMAKE_INSTALL_SYSTEMD_DIR lib/systemd/system CACHE STRING "where service units go, below the prefix")
configure_file(${CMAKE_CURRENT_LIST_DIR}/reprise.service.in ${CMAKE_BINARY_DIR}/reprise.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/reprise.service DESTINATION ${CMAKE_INSTALL_SYSTEMD_DIR})
install(FILES LICENSE README.md config/example.json config/REFERENCE.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
