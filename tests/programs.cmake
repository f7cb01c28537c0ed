# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The folders of small programs share these functions: examples, bench, tests, fuzz.

# rddp_programs(KIND LIBRARY...) makes each KIND/NAME.c the target KIND_NAME, built as the program KIND/NAME. Every program
# also contains KIND/lib/*.c. The function sets KIND_programs to the list of names.
function(rddp_programs kind)
    file(RELATIVE_PATH here ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    file(GLOB sources CONFIGURE_DEPENDS ${kind}/*.c)
    file(GLOB shared CONFIGURE_DEPENDS ${kind}/lib/*.c)
    rddp_without_programs(sources)
    rddp_without_programs(shared HELPER)
    set(libraries ${ARGN})
    if(shared)
        add_library(${kind}_lib OBJECT ${shared})
        target_link_libraries(${kind}_lib PRIVATE ${ARGN})
        list(PREPEND libraries ${kind}_lib)
    endif()
    set(programs)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        add_executable(${kind}_${name} ${source})
        set_target_properties(${kind}_${name} PROPERTIES OUTPUT_NAME ${name}
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${here}/${kind})
        target_link_libraries(${kind}_${name} PRIVATE ${libraries})
        list(APPEND programs ${name})
    endforeach()
    set(${kind}_programs ${programs} PARENT_SCOPE)
endfunction()

# rddp_test(NAME LABEL SECONDS COMMAND...) adds the test LABEL.NAME. Exit code 0 means passed, 77 means "cannot run here".
# SECONDS is enough on an idle machine. The time-out is three times SECONDS for busy machines, six times with sanitizers and
# in an emulator.
# A processor has two places: tests that mostly wait take one, tests that compute take two, and all do with sanitizers.
# (`make` runs ctest with as many places as there are.) Tests with more SECONDS begin first.
# The environment names the sources, the build and the command in RDDP_SOURCE_DIR, RDDP_BUILD_DIR and RDDP_TOOL, and PATH
# contains `rddp`.
function(rddp_test name label seconds)
    set(places 1)
    if(RDDP_SANITIZE OR label MATCHES "^(sim|lint|cross|fuzz-replay)$")
        set(places 2)
    endif()
    if(RDDP_SANITIZE OR CMAKE_CROSSCOMPILING)
        set(slower 6)
    else()
        set(slower 3)
    endif()
    add_test(NAME ${label}.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    set_tests_properties(${label}.${name} PROPERTIES PROCESSORS ${places} COST ${seconds})
    math(EXPR seconds "${slower} * ${seconds}")
    set_tests_properties(${label}.${name} PROPERTIES LABELS ${label} TIMEOUT ${seconds} SKIP_RETURN_CODE 77
        ENVIRONMENT "RDDP_SOURCE_DIR=${PROJECT_SOURCE_DIR};RDDP_BUILD_DIR=${PROJECT_BINARY_DIR};RDDP_TOOL=${PROJECT_BINARY_DIR}/rddp"
        ENVIRONMENT_MODIFICATION PATH=path_list_prepend:${PROJECT_BINARY_DIR})
endfunction()
