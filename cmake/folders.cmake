# SPDX-License-Identifier: Apache-2.0
# Targets out of folders. Sources are found, not listed; *_test.c and *_test.cpp are tests, and
# testing*.c is what tests share. A folder without sources gives no target, and whoever wants it
# links what there is.

if(IS_ABSOLUTE ${CMAKE_INSTALL_DATADIR})
  set(DUET_INSTALLED_DATA ${CMAKE_INSTALL_DATADIR}/duet)
else()
  set(DUET_INSTALLED_DATA ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/duet)
endif()

# The CUDA runtime registers no exit handler (backends/cuda/exit.c). libduet stays loaded.
set(DUET_CUDA_EXIT $<$<BOOL:${DUET_HAVE_CUDA}>:-Wl,--wrap=atexit,-u,__wrap_atexit,-z,nodelete>)

# Every folder library linked so far, in one group whose order does not matter.
set(DUET_FOLDERS "" CACHE INTERNAL "")

# duet_folder(NAME [AS name] [EXCLUDE file...] [EXCLUDE_MATCHING regex] [ONLY regex] [ADD file...]
#             [LINK library...])
# Static library duet_NAME (with _ for /), or as it is to be called, of the sources below NAME/.
# What is excluded can be added again.
function(duet_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "AS;EXCLUDE_MATCHING;ONLY" "EXCLUDE;ADD;LINK")
  file(GLOB_RECURSE sources RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/${name}/*.c ${PROJECT_SOURCE_DIR}/${name}/*.cpp
    ${PROJECT_SOURCE_DIR}/${name}/*.cu)
  if(NOT DUET_HAVE_CUDA)
    list(FILTER sources EXCLUDE REGEX "\\.cu$")
  endif()
  list(FILTER sources EXCLUDE REGEX "(_test|/testing[^/]*)\\.(c|cpp|cu)$")
  list(REMOVE_ITEM sources "" ${arg_EXCLUDE})
  if(DEFINED arg_EXCLUDE_MATCHING)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE_MATCHING}")
  endif()
  if(DEFINED arg_ONLY)
    list(FILTER sources INCLUDE REGEX "${arg_ONLY}")
  endif()
  list(APPEND sources ${arg_ADD})
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" target duet_${name})
  if(DEFINED arg_AS)
    set(target duet_${arg_AS})
  endif()
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC
    ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE duet_flags ${arg_LINK})
  # what the public headers declare is visible from outside (they say so), and nothing else
  set_target_properties(${target} PROPERTIES
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
  set(DUET_FOLDERS ${DUET_FOLDERS} ${target} CACHE INTERNAL "")
endfunction()

# Links `target` with every folder there is. Only what it uses gets into it. With LTO, it is
# optimised as a whole. With MODULES, what can be a module is opened when it is needed, and is not
# inside the target; what uses MPI never is, as SimGrid has functions of the same names.
function(duet_link_folders target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LTO;MODULES" "" "")
  set(folders ${DUET_FOLDERS})
  if(arg_MODULES)
    list(REMOVE_ITEM folders "" ${DUET_IN_MODULES})
    list(TRANSFORM DUET_MODULES PREPEND duet_opened_ OUTPUT_VARIABLE opened)
    list(APPEND folders ${opened})
  else()
    list(TRANSFORM DUET_LACKING PREPEND duet_opened_ OUTPUT_VARIABLE opened)
    list(APPEND folders duet_opened_mpi ${opened})
    list(REMOVE_DUPLICATES folders)
  endif()
  duet_lto_link(${target} ${arg_LTO})
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE duet_flags)
  list(JOIN folders "," folders)
  target_link_libraries(${target} PRIVATE "$<LINK_GROUP:RESCAN,${folders}>")
  # the list: policies of users, in shared objects, call the library that is inside the program
  target_link_options(${target} PRIVATE ${DUET_CUDA_EXIT}
    -Wl,--as-needed -Wl,--dynamic-list=${PROJECT_SOURCE_DIR}/cmake/policies.list)
  # not nvcc, which knows other options
  if(DUET_HAVE_SIMGRID OR DUET_HAVE_CUDA)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
endfunction()

# duet_library(FOLDER... USES FOLDER...): libduet.so of these folders, and of those files of others
# that they use. What can be a module is opened when it is needed.
function(duet_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "USES")
  set(objects "")
  set(libraries "")
  list(TRANSFORM arg_USES PREPEND duet_)
  list(REMOVE_ITEM arg_UNPARSED_ARGUMENTS "" ${DUET_MODULES})
  list(TRANSFORM DUET_MODULES PREPEND duet_opened_ OUTPUT_VARIABLE opened)
  foreach(folder IN LISTS arg_UNPARSED_ARGUMENTS)
    string(REPLACE "/" "_" folder ${folder})
    if(TARGET duet_${folder})
      list(APPEND objects $<TARGET_OBJECTS:duet_${folder}>)
      list(APPEND libraries $<TARGET_PROPERTY:duet_${folder},LINK_LIBRARIES>)
    endif()
  endforeach()
  if(NOT objects)
    return()
  endif()
  set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  add_library(duet_shared SHARED ${objects})
  duet_lto_link(duet_shared ON)
  target_include_directories(duet_shared INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(duet_shared PRIVATE ${opened} ${arg_USES} ${libraries})
  target_link_options(duet_shared PRIVATE ${DUET_CUDA_EXIT}
    -Wl,--version-script=${exports} -Wl,-Bsymbolic-functions -Wl,--as-needed)
  if(NOT DUET_SANITIZE)
    target_link_options(duet_shared PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(duet_shared PROPERTIES
    OUTPUT_NAME duet
    LINKER_LANGUAGE C
    LINK_DEPENDS ${exports}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR})
endfunction()

# duet_quark(FOLDER): libduet-quark, QUARK's interface, which programs see as they see libduet.
function(duet_quark folder)
  if(NOT TARGET duet_shared)
    return()
  endif()
  add_library(duet_quark SHARED ${PROJECT_SOURCE_DIR}/${folder}/quark.c)
  target_include_directories(duet_quark PRIVATE ${PROJECT_SOURCE_DIR} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${folder}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/duet/quark>)
  target_compile_definitions(duet_quark PRIVATE _GNU_SOURCE) # dladdr is no part of POSIX
  target_link_libraries(duet_quark PRIVATE
    duet_flags duet_shared PkgConfig::GLIB Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(duet_quark PROPERTIES
    OUTPUT_NAME duet-quark VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
endfunction()

# duet_command(FILE): the `duet` command, whose main is in FILE. The target is duet_command.
function(duet_command main)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${main})
    return()
  endif()
  add_executable(duet_command ${main})
  duet_link_folders(duet_command LTO MODULES)
  target_link_libraries(duet_command PRIVATE PkgConfig::GLIB)
  set_target_properties(duet_command PROPERTIES OUTPUT_NAME duet)
endfunction()

# duet_fortran(): the module of Fortran, which its programs link. Nothing without a compiler.
function(duet_fortran)
  if(DUET_HAVE_FORTRAN AND TARGET duet_shared)
    add_library(duet_fortran STATIC ${PROJECT_SOURCE_DIR}/core/include/duet/duet.f90)
    set_target_properties(duet_fortran PROPERTIES
      Fortran_MODULE_DIRECTORY ${PROJECT_BINARY_DIR}/modules/fortran)
    target_include_directories(duet_fortran INTERFACE ${PROJECT_BINARY_DIR}/modules/fortran)
    target_link_libraries(duet_fortran PRIVATE duet_flags INTERFACE duet_shared)
  endif()
endfunction()

# duet_programs(FOLDER [PUBLIC_API] [EXCLUDE name...]): one program a file, FOLDER/NAME in the
# build, FOLDER/NAME_cpp of one in C++, FOLDER/NAME_f90 of one in Fortran. With PUBLIC_API they see
# what an application sees: the public headers and libduet.
function(duet_programs folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PUBLIC_API" "" "EXCLUDE")
  file(GLOB sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/${folder}/*.c ${PROJECT_SOURCE_DIR}/${folder}/*.cpp
    ${PROJECT_SOURCE_DIR}/${folder}/*.f90)
  if(NOT TARGET duet_fortran)
    list(FILTER sources EXCLUDE REGEX "\\.f90$")
  endif()
  foreach(name IN LISTS arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "/${name}\\.c$")
  endforeach()
  list(FILTER sources EXCLUDE REGEX "_test\\.(c|cpp)$")
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    if(source MATCHES "\\.(cpp|f90)$")
      string(APPEND name _${CMAKE_MATCH_1}) # beside the same program in C
    endif()
    set(target ${folder}-${name})
    if(arg_PUBLIC_API)
      if(NOT TARGET duet_shared)
        continue()
      endif()
      file(STRINGS ${source} blas REGEX "<(lapacke|cblas)[.]h>|subroutine openblas_")
      if(blas AND NOT DUET_HAVE_BLAS)
        continue()
      endif()
      file(STRINGS ${source} opencl REGEX "<CL/cl[.]h>")
      if(opencl AND NOT DUET_HAVE_OPENCL)
        continue()
      endif()
      add_executable(${target} ${source})
      target_link_libraries(${target} PRIVATE duet_flags duet_shared Threads::Threads m)
      if(opencl)
        target_link_libraries(${target} PRIVATE OpenCL::OpenCL)
      endif()
      if(source MATCHES "\\.f90$")
        target_link_libraries(${target} PRIVATE duet_fortran)
        set_target_properties(${target} PROPERTIES
          Fortran_MODULE_DIRECTORY ${PROJECT_BINARY_DIR}/modules/${target})
      endif()
      if(blas)
        target_link_libraries(${target} PRIVATE duet_blas)
      endif()
    else()
      add_executable(${target} ${source})
      duet_link_folders(${target})
      target_link_libraries(${target} PRIVATE Threads::Threads m)
    endif()
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
  endforeach()
endfunction()

# duet_cuda_programs(FOLDER): the same for FOLDER/*.cu, which see the public headers, libduet and
# the CUDA runtime. None where there is no CUDA.
function(duet_cuda_programs folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cu)
  if(NOT DUET_HAVE_CUDA OR NOT TARGET duet_shared)
    return()
  endif()
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    set(target ${folder}-${name})
    add_executable(${target} ${source})
    target_link_libraries(${target} PRIVATE
      duet_flags duet_shared CUDA::cudart_static Threads::Threads ${CMAKE_DL_LIBS} m)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX
      OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
  endforeach()
endfunction()

# duet_policies(FOLDER): one shared object a file, FOLDER/NAME.so in the build, for --policy. They
# see the public headers; what they call is in the program that loads them.
function(duet_policies folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    set(target policy-${name})
    add_library(${target} MODULE ${source})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/core/include)
    target_link_libraries(${target} PRIVATE duet_flags)
    set_target_properties(${target} PROPERTIES
      PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
  endforeach()
endfunction()
