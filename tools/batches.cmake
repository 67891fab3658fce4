# reprise_batches(TARGET): compiles the target's files together, up to 8 of one folder at a time, for a sanitizer up to 16, and
# up to 32 with REPRISE_ONCE. Headers are then read, and templates made, once for all of them: of the proxy's library that
# is half of the compiler's time (a fifth less again with 16, and some more with 32), and with 8 a changed line is still
# tried soon. To be called in the folder that makes the target.
#
# Names in anonymous namespaces are shared by a folder's files therefore: a second helper of the same name does not
# compile, and is either the same helper, which then belongs into a header, or wants a name of its own.
#
# -DREPRISE_BATCHES=OFF compiles file by file: so a file is found that lives on another one's includes.
option(REPRISE_BATCHES "compile some files of a folder together" ON)

function(reprise_batches target)
  if(NOT REPRISE_BATCHES)
    return()
  endif()
  set(size 8)
  if(REPRISE_ONCE)
    set(size 32)
  elseif(REPRISE_SANITIZE)
    set(size 16)
  endif()
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
  # To GCC a batch's files are headers, whose types should not be made of local names. And it inlines as it would in
  # each of them: by its own measure (10,000) a batch is too large for that, and a first request took 4 % more.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage;--param=large-unit-insns=80000>)
endfunction()
