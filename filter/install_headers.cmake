# Copies the headers of `from` to `to`, by way of `made`: there "filter/x.hpp" is turned into
# <reprise/filter/x.hpp>.
file(REMOVE_RECURSE "${made}")
file(GLOB headers "${from}/*.hpp")
if(NOT squid)
  list(FILTER headers EXCLUDE REGEX "/squid_[a-z]+\\.hpp$")
endif()
foreach(header IN LISTS headers)
  get_filename_component(name "${header}" NAME)
  file(READ "${header}" text)
  string(REGEX REPLACE "#include \"filter/([a-z0-9_]+\\.hpp)\"" "#include <reprise/filter/\\1>"
         text "${text}")
  file(WRITE "${made}/${name}" "${text}")
endforeach()
file(INSTALL "${made}/" DESTINATION "${to}")
