# SPDX-License-Identifier: Apache-2.0
# SimGrid without ns-3. Debian's SimGrid is linked with ns-3, another simulator of networks, which
# duet does not use: opening its libraries takes five times as long as opening SimGrid, and their
# licence (GPL-2) is none that Apache-2.0 may be combined with. The module "simgrid" therefore has
# libraries of the same names, which define what SimGrid refers to and do nothing, and has the
# loader look there first.

# Sets `out` to C definitions of the symbols in the file `wanted`, one a line, that `library`
# defines: functions that return 0, objects full of zeros.
function(duet_define_nothing out library wanted)
  execute_process(
    COMMAND ${CMAKE_NM} --dynamic --defined-only ${library}
    COMMAND grep --word-regexp --fixed-strings --file=${wanted}
    OUTPUT_VARIABLE lines)
  string(REGEX MATCHALL "[A-Za-z] [^ \n]+" lines "${lines}")
  set(code "")
  set(number 0)
  foreach(line IN LISTS lines)
    string(SUBSTRING "${line}" 2 -1 symbol)
    set(name nothing_${number})
    math(EXPR number "${number} + 1")
    if(line MATCHES "^[TWi] ")
      string(APPEND code "long ${name}(void) __asm__(\"${symbol}\");\n"
        "long ${name}(void)\n{\n    return 0;\n}\n")
    else()
      string(APPEND code "long ${name}[512] __asm__(\"${symbol}\") = {0};\n")
    endif()
  endforeach()
  set(${out} "${code}" PARENT_SCOPE)
endfunction()

# duet_simgrid_alone(TARGET): the module TARGET finds such libraries in simgrid/ beside it. Nothing
# is done where SimGrid comes without ns-3.
function(duet_simgrid_alone target)
  find_library(whole simgrid HINTS ${SIMGRID_LIBDIR} NO_CACHE)
  if(NOT whole OR NOT CMAKE_READELF OR NOT CMAKE_NM)
    return()
  endif()
  execute_process(COMMAND ${CMAKE_READELF} --dynamic ${whole} OUTPUT_VARIABLE dynamic)
  string(REGEX MATCHALL "libns3[-A-Za-z0-9.]*" names "${dynamic}")
  if(NOT names)
    return()
  endif()
  set(place ${PROJECT_BINARY_DIR}/CMakeFiles/simgrid_alone)
  file(MAKE_DIRECTORY ${place})
  execute_process(COMMAND ${CMAKE_NM} --dynamic --undefined-only --just-symbols ${whole}
    OUTPUT_FILE ${place}/wanted)
  get_filename_component(folder ${whole} DIRECTORY)
  foreach(name IN LISTS names)
    duet_define_nothing(code ${folder}/${name} ${place}/wanted)
    file(CONFIGURE OUTPUT ${place}/${name}.c @ONLY
      CONTENT "/* Made by cmake/simgrid_alone.cmake. */\ntypedef int duet_nothing;\n${code}")
    set(library duet_${name})
    add_library(${library} SHARED ${place}/${name}.c)
    target_link_options(${library} PRIVATE -nostdlib -Wl,-soname,${name})
    set_target_properties(${library} PROPERTIES
      PREFIX "" SUFFIX "" OUTPUT_NAME ${name} NO_SONAME ON
      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules/simgrid)
    add_dependencies(${target} ${library})
    install(TARGETS ${library}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/duet/simgrid COMPONENT library)
  endforeach()
  # an RPATH holds for what SimGrid needs, too; the newer RUNPATH does not
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${target} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/simgrid")
endfunction()
