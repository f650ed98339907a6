# SPDX-License-Identifier: Apache-2.0
# The page of reports, report/page/, as an object of the command: page.html with the style sheet,
# the scripts and the modules of d3 (packaged by others) that it draws with, in one array of bytes.
# Included, this says how the source of the array is made; as a script (cmake -P), it makes it.

if(CMAKE_SCRIPT_MODE_FILE)
  # -D PAGE_DIR, D3 and SCRIPTS (files, separated by a comma), OUTPUT
  function(read_all variable)
    set(all "")
    foreach(file IN LISTS ARGN)
      file(READ ${file} text)
      string(APPEND all "${text}")
    endforeach()
    set(${variable} "${all}" PARENT_SCOPE)
  endfunction()

  string(REPLACE "," ";" D3 "${D3}")
  string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
  read_all(d3.js ${D3})
  read_all(d3.licence ${PAGE_DIR}/d3.licence)
  read_all(page.css ${PAGE_DIR}/page.css)
  read_all(page.js ${SCRIPTS})
  read_all(page ${PAGE_DIR}/page.html)
  foreach(part IN ITEMS page.css d3.licence d3.js page.js)
    string(REPLACE "@${part}@" "${${part}}" page "${page}")
  endforeach()
  file(WRITE ${OUTPUT}.html "${page}")
  file(READ ${OUTPUT}.html bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
    bytes "${bytes}")
  file(WRITE ${OUTPUT} "#include \"report/page/page.h\"\n"
    "const char duet__page_template[] = {\n${bytes}0};\n")
  return()
endif()

# each needs those before it; scales of dates, and what they need, are left out
set(DUET_D3 "")
foreach(module IN ITEMS array collection color format interpolate scale selection axis)
  find_file(D3_${module} d3-${module}.min.js NO_CACHE NO_DEFAULT_PATH
    PATHS /usr/share/nodejs /usr/share/javascript /usr/lib/node_modules
    PATH_SUFFIXES d3-${module}/dist d3-${module})
  if(NOT D3_${module})
    message(FATAL_ERROR "duet needs d3-${module}, with which its pages draw: ./setup.sh "
      "installs it")
  endif()
  list(APPEND DUET_D3 ${D3_${module}})
endforeach()

set(DUET_PAGE_TEMPLATE ${PROJECT_BINARY_DIR}/page_template.c)
set(page ${PROJECT_SOURCE_DIR}/report/page)
file(GLOB scripts CONFIGURE_DEPENDS ${page}/*.js)
list(JOIN scripts "," script_list)
list(JOIN DUET_D3 "," d3_list)
add_custom_command(OUTPUT ${DUET_PAGE_TEMPLATE}
  COMMAND ${CMAKE_COMMAND} -D PAGE_DIR=${page} -D D3=${d3_list} -D SCRIPTS=${script_list}
    -D OUTPUT=${DUET_PAGE_TEMPLATE} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${CMAKE_CURRENT_LIST_FILE} ${page}/page.html ${page}/page.css ${page}/d3.licence
    ${scripts} ${DUET_D3}
  COMMENT "Putting the page of reports together" VERBATIM)
