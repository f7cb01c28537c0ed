# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# What the folders of small programs share: examples, bench, tests, fuzz.

# rddp_programs(KIND LIBRARY...): each KIND/*.c becomes the program KIND_NAME, built as KIND/NAME; what they share lies in
# KIND/lib/*.c. Their names are left in KIND_programs.
function(rddp_programs kind)
    file(RELATIVE_PATH here ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    file(GLOB sources CONFIGURE_DEPENDS ${kind}/*.c)
    file(GLOB shared CONFIGURE_DEPENDS ${kind}/lib/*.c)
    set(programs)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        add_executable(${kind}_${name} ${source} ${shared})
        set_target_properties(${kind}_${name} PROPERTIES OUTPUT_NAME ${name}
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${here}/${kind})
        target_link_libraries(${kind}_${name} PRIVATE ${ARGN})
        list(APPEND programs ${name})
    endforeach()
    set(${kind}_programs ${programs} PARENT_SCOPE)
endfunction()

# rddp_test(NAME LABEL SECONDS COMMAND...): the test LABEL.NAME. Exit 0 is passed, 77 is "cannot run here". SECONDS limits
# it on a machine that does nothing else; a busy one gets three times that, a build with sanitizers six times.
# It finds the sources, the build and the command in RDDP_SOURCE_DIR, RDDP_BUILD_DIR and RDDP_TOOL; `rddp` is in its PATH.
function(rddp_test name label seconds)
    if(RDDP_SANITIZE)
        set(slower 6)
    else()
        set(slower 3)
    endif()
    add_test(NAME ${label}.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    math(EXPR seconds "${slower} * ${seconds}")
    set_tests_properties(${label}.${name} PROPERTIES LABELS ${label} TIMEOUT ${seconds} SKIP_RETURN_CODE 77
        ENVIRONMENT "RDDP_SOURCE_DIR=${PROJECT_SOURCE_DIR};RDDP_BUILD_DIR=${PROJECT_BINARY_DIR};RDDP_TOOL=${PROJECT_BINARY_DIR}/rddp"
        ENVIRONMENT_MODIFICATION PATH=path_list_prepend:${PROJECT_BINARY_DIR})
endfunction()
