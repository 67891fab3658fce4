# reprise_batches(TARGET SIZE): compiles the target's files together, up to SIZE of one folder at a time. Headers are
# then read, and templates made, once for all of them. To be called in the
# folder that makes the target.
#
# Names in anonymous namespaces are shared by a folder's files therefore: a second helper of the same name does not
# compile, and is either the same helper, which then belongs into a header, or wants a name of its own.
function(reprise_batches target size)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source ${sources})
    get_filename_component(source ${source} ABSOLUTE)
    cmake_path(GET source PARENT_PATH folder)
    file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${folder})
    string(REPLACE "/" "_" folder ${folder})
    list(APPEND folders ${folder})
    list(APPEND in_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    # Batches of like size: of 17 files 9 and 8, not 16 and 1.
    list(LENGTH in_${folder} files)
    math(EXPR batches "(${files} + ${size} - 1) / ${size}")
    set(i 0)
    foreach(source ${in_${folder}})
      math(EXPR batch "${i} * ${batches} / ${files}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${batch})
      math(EXPR i "${i} + 1")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # To GCC a batch's files are headers, whose types should not be made of local names. Of that, and of shadows, a
  # release build warns, which compiles file by file.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# What is shipped is compiled file by file in a release build: there a changed line is to be tried soon, and the
# optimiser is to see what it always saw. Sanitizers' builds are made from nothing, or after many changes.
function(reprise_sanitized_batches target)
  if(REPRISE_SANITIZE)
    reprise_batches(${target} 16)
  endif()
endfunction()
