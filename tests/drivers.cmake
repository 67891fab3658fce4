# Programs that drive the proxy and link nothing of it. They are built once, without a sanitizer, in
# the release build; the sanitizers' builds take them from its tree (REPRISE_DRIVERS), and say by the
# environment which program is driven (tests/support/under_test.hpp).
set(REPRISE_DRIVERS "" CACHE PATH "a release build's tree, for the drivers of a sanitizer's tests")
if(REPRISE_SANITIZE AND NOT REPRISE_DRIVERS)
  message(FATAL_ERROR "-DREPRISE_DRIVERS=TREE must name a release build, as tools/build does; or -DREPRISE_TESTS=OFF")
endif()

# reprise_driver(NAME SOURCES ... LIBRARIES ...): made here from its sources, or taken from there.
function(reprise_driver name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(REPRISE_DRIVERS)
    file(RELATIVE_PATH place ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    add_executable(${name} IMPORTED)
    set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${REPRISE_DRIVERS}/${place}/${name})
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  # They wait for the program more than they compute: what counts is how soon they are built.
  target_compile_options(${name} PRIVATE -Og)
  if(REPRISE_PCH AND "CLI11::CLI11" IN_LIST arg_LIBRARIES)
    target_precompile_headers(${name} REUSE_FROM reprise_drivers)
  endif()
  reprise_batches(${name})
  target_compile_definitions(${name} PRIVATE REPRISE_PROGRAM="$<TARGET_FILE:reprise>")
  add_dependencies(${name} reprise)
  add_dependencies(drivers ${name})
endfunction()

if(NOT REPRISE_DRIVERS)
  add_custom_target(drivers)
endif()

# Which program the test is about.
function(reprise_about name)
  if(REPRISE_SANITIZE)
    set_property(TEST ${name} PROPERTY ENVIRONMENT
      REPRISE_SANITIZED=1 REPRISE_PROGRAM=$<TARGET_FILE:reprise>
      REPRISE_WALL_CLOCK_SHIM=$<TARGET_FILE:wall_clock_shim>)
  endif()
endfunction()
