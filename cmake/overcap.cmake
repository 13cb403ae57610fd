# How every folder under src/ becomes one static library and, beside it, one test program.

# The sanitized builds read the headers of the standard library and of gtest once instead of hundreds of times. The release and
# debug builds do not: in the latter, where each file is compiled alone, it must include what it uses.
option(OVERCAP_PRECOMPILE "precompile the headers that nearly every file reads" OFF)

find_program(CCACHE ccache)
if(CCACHE)
  # Every clone of this project shares what was compiled in any other, wherever it lies.
  set(ccache_settings CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true)
  if(OVERCAP_PRECOMPILE)  # it keeps nothing that used precompiled headers unless it is told that it may
    list(APPEND ccache_settings CCACHE_SLOPPINESS=pch_defines,time_macros)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${ccache_settings} ${CCACHE})
endif()

add_library(overcap_flags INTERFACE)
# -Wno-restrict: g++ 12 reports std::string concatenation at -O2 (GCC bug 105651).
# Only the release build is held to its warnings: what sanitizers add makes g++ 12 see bounds overstepped that are not.
target_compile_options(overcap_flags INTERFACE -Wall -Wextra -Wshadow -Wno-restrict)
if(NOT OVERCAP_PRECOMPILE)
  target_compile_options(overcap_flags INTERFACE -Werror)
endif()
target_compile_definitions(overcap_flags INTERFACE OVERCAP_VERSION="${PROJECT_VERSION}" _FILE_OFFSET_BITS=64)
# -iquote, not -I: our "sys/random.h" must never stand in for the system's <sys/random.h>.
target_compile_options(overcap_flags INTERFACE "SHELL:-iquote ${PROJECT_SOURCE_DIR}/src")

# What nearly every file reads.
set(often <algorithm> <chrono> <deque> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <span>
    <sstream> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)

# overcap_precompile(TARGET MORE...): TARGET takes them from the first target that asked for the same ones.
function(overcap_precompile target)
  if(NOT OVERCAP_PRECOMPILE)
    return()
  endif()
  string(MD5 key "${ARGN}")
  get_property(first GLOBAL PROPERTY overcap_precompiled_${key})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${often} ${ARGN})
    set_property(GLOBAL PROPERTY overcap_precompiled_${key} ${target})
  endif()
endfunction()

# Files of a folder that are compiled as one: a third of the time, for most of it goes to the headers that all of them
# read. 1: each alone, as suits who changes one file again and again.
set(OVERCAP_BATCH 12 CACHE STRING "how many files to compile as one; 1: each alone")
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# overcap_batch(OUT NAME SOURCES...): what to compile for these; see batch.py.
function(overcap_batch out name)
  set(${out} ${ARGN} PARENT_SCOPE)
  if(OVERCAP_BATCH LESS 2 OR NOT ARGN)
    return()
  endif()
  set(units ${PROJECT_BINARY_DIR}/units)
  list(JOIN ARGN "\n" lines)
  file(MAKE_DIRECTORY ${units})
  file(WRITE ${units}/${name}.list "${lines}")
  execute_process(COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/batch.py ${PROJECT_SOURCE_DIR}/src ${units} ${name} ${OVERCAP_BATCH}
    INPUT_FILE ${units}/${name}.list OUTPUT_VARIABLE words OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" words "${words}")
  set(${out} ${words} PARENT_SCOPE)
  # Which names are local to a file, and so who may stand beside whom, is read anew whenever one changes.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/batch.py)
endfunction()

# overcap_test_sources(OUT NAME SOURCES...): as overcap_batch; where the tests' data and the program lie is told to those that
# name them only: what else is compiled is the same in every clone.
function(overcap_test_sources out name)
  set(plain ${ARGN})
  set(placed)
  set(own)  # compiled with options of its own
  foreach(source ${ARGN})
    get_property(options SOURCE ${source} PROPERTY COMPILE_OPTIONS)
    file(STRINGS ${source} lines REGEX "OVERCAP_(TEST_DATA|BINARY|FAKE_NVML)" LIMIT_COUNT 1)
    if(lines)
      list(APPEND placed ${source})
    elseif(options)
      list(APPEND own ${source})
    endif()
  endforeach()
  list(REMOVE_ITEM plain ${placed} ${own})
  overcap_batch(plain ${name} ${plain})
  overcap_batch(placed ${name}_placed ${placed})
  if(placed)
    set_property(SOURCE ${placed} APPEND PROPERTY COMPILE_DEFINITIONS
      "OVERCAP_TEST_DATA=\"${PROJECT_SOURCE_DIR}/tests/data\"" "OVERCAP_BINARY=\"${PROJECT_BINARY_DIR}/overcap\"")
  endif()
  set(${out} ${plain} ${placed} ${own} PARENT_SCOPE)
endfunction()

# overcap_library_first(TARGET LIBRARIES...): of a template or an inline function that tests and libraries both use, the linker keeps
# what it reads first. That is to be the library's, as it is tested and optimised, not the slow one of the tests.
function(overcap_library_first target)
  foreach(library ${ARGN})
    target_link_options(${target} PRIVATE -Wl,--whole-archive $<TARGET_FILE:${library}> -Wl,--no-whole-archive)
  endforeach()
endfunction()

# overcap_harden(TARGET): what is shipped runs at a random address and ends at an overwritten stack or a copy past the end of a buffer.
function(overcap_harden target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-fPIE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>)
endfunction()

# overcap_build_facts(TARGET): gives it BuildFact() (cli/version_text.h): which packages of the distribution the libraries inside came from.
function(overcap_build_facts target)
  find_program(DPKG_QUERY dpkg-query)
  string(REGEX MATCH "^[0-9]+" compiler "${CMAKE_CXX_COMPILER_VERSION}")
  set(lines "  if (name == \"yaml-cpp version\") return \"${yaml-cpp_VERSION}\";\n")
  foreach(pair "OpenSSL:libssl-dev" "yaml-cpp:libyaml-cpp-dev" "zstd:libzstd-dev" "lz4:liblz4-dev" "zlib:zlib1g-dev" "nlohmann json:nlohmann-json3-dev"
      "tl expected:libexpected-dev" "libstdc++:libstdc++-${compiler}-dev")
    string(REGEX MATCH "^(.*):(.*)$" whole "${pair}")
    set(name "${CMAKE_MATCH_1}")
    set(package "${CMAKE_MATCH_2}")
    if(DPKG_QUERY)
      execute_process(COMMAND ${DPKG_QUERY} -W "-f=\${Version}" ${package} OUTPUT_VARIABLE version ERROR_QUIET RESULT_VARIABLE status)
      if(status EQUAL 0 AND version)
        string(APPEND lines "  if (name == \"${name}\") return \"${package} ${version}\";\n")
      endif()
    endif()
  endforeach()
  set(file ${PROJECT_BINARY_DIR}/generated/build_facts.cc)
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT "#include \"cli/version_text.h\"\n\nstd::string_view overcap::cli::BuildFact(std::string_view name) {\n${lines}  return \"\";\n}\n")
  target_sources(${target} PRIVATE ${file})
endfunction()

# overcap_library(NAME [DEPS ...]): src/NAME/**.cc without tests -> library `overcap_NAME`;
# src/NAME/**_test.cc -> program `NAME_test`. NAME may be a path such as clusters/local.
function(overcap_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;TEST_DEPS" ${ARGN})
  string(REPLACE "/" "_" id ${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test\\.cc|/testing/.*)$")
  list(FILTER tests INCLUDE REGEX "(_test\\.cc|/testing/.*\\.cc)$")
  if(sources)
    overcap_batch(sources ${id} ${sources})
    add_library(overcap_${id} STATIC ${sources})
    target_link_libraries(overcap_${id} PUBLIC overcap_flags ${ARG_DEPS})
    overcap_harden(overcap_${id})
    overcap_precompile(overcap_${id})
  else()
    add_library(overcap_${id} INTERFACE)
    target_link_libraries(overcap_${id} INTERFACE overcap_flags ${ARG_DEPS})
  endif()
  if(OVERCAP_TESTS AND tests)
    overcap_test_sources(tests ${id}_test ${tests})
    add_executable(${id}_test ${tests})
    target_link_libraries(${id}_test PRIVATE overcap_${id} ${ARG_TEST_DEPS} GTest::gtest_main rapidcheck)
    # Tests are compiled more often than they run: without optimisation in half the time, sanitized ones above all.
    target_compile_options(${id}_test PRIVATE -O0)
    if(sources)
      overcap_library_first(${id}_test overcap_${id})
    endif()
    overcap_precompile(${id}_test <gtest/gtest.h>)
    set_target_properties(${id}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/unit)
    add_test(NAME ${id} COMMAND ${id}_test)
  endif()
endfunction()
