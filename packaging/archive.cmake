# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The static libraries as they are installed: one object each, whose inner names are local, so that a program may have a
# tcp_connect() of its own. What is visible in the shared library is visible here.

# rddp_archive(TARGET NAME OBJECT-LIBRARY...): builds libNAME.a when TARGET is asked for, and installs it.
function(rddp_archive target name)
    set(objects)
    foreach(library IN LISTS ARGN)
        list(APPEND objects $<TARGET_OBJECTS:${library}>)
    endforeach()
    set(archive ${PROJECT_BINARY_DIR}/lib${name}.a)
    set(object ${PROJECT_BINARY_DIR}/${name}.o)
    separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)
        list(APPEND flags -flinker-output=nolto-rel) # a program without LTO can use it, too
    endif()
    add_custom_command(OUTPUT ${archive} DEPENDS ${ARGN} ${objects} ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
        COMMAND_EXPAND_LISTS VERBATIM
        COMMAND ${CMAKE_C_COMPILER} ${flags} -r -nostdlib -o ${object} ${objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${object}
        COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
        COMMAND ${CMAKE_AR} qcs ${archive} ${object}
        COMMAND ${CMAKE_COMMAND} -E rm -f ${object})
    add_custom_target(${target} ALL DEPENDS ${archive})
    install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
