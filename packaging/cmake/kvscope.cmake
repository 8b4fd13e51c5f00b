# SPDX-License-Identifier: GPL-3.0-or-later
# What every target of the project shares: warnings, sanitizers, ccache and the two helpers that declare a room and a test.

find_program(KVSCOPE_CCACHE ccache)
if(KVSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${KVSCOPE_CCACHE})
endif()

find_package(Threads REQUIRED)

add_library(kvscope_options INTERFACE)
target_include_directories(kvscope_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(kvscope_options INTERFACE -Wall -Wextra -Wpedantic -fno-math-errno -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: "literal" + std::string warns of an overlap that cannot be.
  target_compile_options(kvscope_options INTERFACE -Wno-restrict)
endif()
if(KVSCOPE_WERROR)
  target_compile_options(kvscope_options INTERFACE -Werror)
endif()
if(KVSCOPE_SANITIZE)
  target_compile_options(kvscope_options INTERFACE -fsanitize=${KVSCOPE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(kvscope_options INTERFACE -fsanitize=${KVSCOPE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code hides initialisations from the optimiser; clang and the other presets keep the warning.
    target_compile_options(kvscope_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(KVSCOPE_FUZZ)
  target_compile_options(kvscope_options INTERFACE -fsanitize=fuzzer-no-link) # coverage feedback from every room
endif()
target_link_libraries(kvscope_options INTERFACE Threads::Threads)

# kvscope_room(NAME SOURCES ... [PUBLIC libs] [PRIVATE libs]): one room of the house as a static library.
# The links are the include rules: a room that does not link another has no business including it (tests/arch checks).
function(kvscope_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC kvscope_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# kvscope_test(NAME LABELS ... SOURCES ... LIBS ... [TIMEOUT s]): one Qt Test program, registered with CTest.
# A test that is an engine test links no Qt beyond Qt Test itself and may run without an application object.
function(kvscope_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;SOURCES;LIBS;ENV" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES AUTOMOC ON RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE kvscope_options Qt6::Test ${ARG_LIBS})
  target_compile_definitions(${name} PRIVATE
    KVSCOPE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" KVSCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    KVSCOPE_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  if(NOT KVSCOPE_SANITIZE)
    target_compile_options(${name} PRIVATE -O1) # a test is compiled more often than it runs
  endif()
  # Nothing of ours is suppressed: the one entry of the file is about Qt Test's own watchdog thread.
  if(KVSCOPE_SANITIZE MATCHES "thread")
    list(APPEND ARG_ENV "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=${PROJECT_SOURCE_DIR}/tests/support/qt_test.tsan")
  endif()
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(threaded_tests ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(KVSCOPE_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()
  # One function may take all the time of its test: Qt Test's own limit (5 minutes) must not come first.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "QT_QPA_PLATFORM=offscreen;QTEST_FUNCTION_TIMEOUT=${ARG_TIMEOUT}000;${ARG_ENV}")
endfunction()
