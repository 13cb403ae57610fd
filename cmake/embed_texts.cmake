# SPDX-License-Identifier: Apache-2.0
# overcap_embed_texts(TARGET HEADER NAMESPACE STRUCT FUNCTION PATTERN): builds the files that fit PATTERN into TARGET
# as `std::span<const STRUCT> FUNCTION()` of {file name without its ending, text}; HEADER declares both. A first line
# that begins with #! is left out.
# The same file is the script that does it: cmake -DPATTERN=... -DOUT=... ... -P embed_texts.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB pages ${PATTERN})
  list(SORT pages)
  set(rows "")
  foreach(page IN LISTS pages)
    get_filename_component(name ${page} NAME_WLE)
    file(READ ${page} text)
    string(REGEX REPLACE "^#![^\n]*\n" "" text "${text}")
    string(APPEND rows "    {\"${name}\", R\"overcap_text(${text})overcap_text\"},\n")
  endforeach()
  file(WRITE ${OUT}.new
    "// Made from ${PATTERN}.\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\nnamespace {\n"
    "constexpr ${STRUCT} kTexts[] = {\n${rows}};\n}  // namespace\n"
    "std::span<const ${STRUCT}> ${FUNCTION}() { return kTexts; }\n}  // namespace ${NAMESPACE}\n")
  file(RENAME ${OUT}.new ${OUT})
  return()
endif()

set(OVERCAP_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(overcap_embed_texts target header namespace struct function pattern)
  get_filename_component(name ${header} NAME_WE)
  set(out ${PROJECT_BINARY_DIR}/generated/${name}.cc)
  file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${pattern})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DPATTERN=${PROJECT_SOURCE_DIR}/${pattern} -DOUT=${out} -DHEADER=${header}
      -DNAMESPACE=${namespace} -DSTRUCT=${struct} -DFUNCTION=${function} -P ${OVERCAP_EMBED_SCRIPT}
    DEPENDS ${pages} ${OVERCAP_EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
