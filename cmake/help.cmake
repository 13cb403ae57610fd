# SPDX-License-Identifier: Apache-2.0
# overcap_embed_help(TARGET): builds src/cli/commands/*.md into TARGET as AllHelpTexts() (src/cli/help_texts.h).
# The same file is the script that does it: cmake -DFOLDER=... -DOUT=... -P help.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB pages ${FOLDER}/*.md)
  list(SORT pages)
  set(rows "")
  foreach(page IN LISTS pages)
    get_filename_component(name ${page} NAME_WE)
    file(READ ${page} text)
    string(APPEND rows "    {\"${name}\", R\"overcap_md(${text})overcap_md\"},\n")
  endforeach()
  file(WRITE ${OUT}.new
    "// Made from src/cli/commands/*.md.\n#include \"cli/help_texts.h\"\n\nnamespace overcap::cli {\nnamespace {\n"
    "constexpr HelpText kTexts[] = {\n${rows}};\n}  // namespace\n"
    "std::span<const HelpText> AllHelpTexts() { return kTexts; }\n}  // namespace overcap::cli\n")
  file(RENAME ${OUT}.new ${OUT})
  return()
endif()

set(OVERCAP_HELP_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(overcap_embed_help target)
  set(folder ${PROJECT_SOURCE_DIR}/src/cli/commands)
  set(out ${PROJECT_BINARY_DIR}/generated/help_texts.cc)
  file(GLOB pages CONFIGURE_DEPENDS ${folder}/*.md)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/generated)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUT=${out} -P ${OVERCAP_HELP_SCRIPT}
    DEPENDS ${pages} ${OVERCAP_HELP_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
