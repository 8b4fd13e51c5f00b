# SPDX-License-Identifier: GPL-3.0-or-later
# What every target of the project shares: warnings, sanitizers, ccache and the two helpers that declare a room and a test.

find_program(KVSCOPE_CCACHE ccache)
if(KVSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${KVSCOPE_CCACHE})
  if(KVSCOPE_PCH) # ccache looks away from a file that a precompiled header is part of, unless told not to
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${KVSCOPE_CCACHE})
  endif()
endif()

find_package(Threads REQUIRED)

add_library(kvscope_options INTERFACE)
target_include_directories(kvscope_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(kvscope_options INTERFACE -fPIC -Wall -Wextra -Wpedantic -fno-math-errno -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: "literal" + std::string warns of an overlap, or of a size, that cannot be.
  target_compile_options(kvscope_options INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
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

# Two thirds of the time of compiling a file here go into reading Qt's and the library's headers, so the presets that are
# built whole in CI read them once (KVSCOPE_PCH). The others do without, so that a file which forgot an include is found:
# by tsan in CI for what has no window, by dev and tidy for the rest.
# kvscope_precompile(NAME [LIBS libs] [OPTIONS options] HEADERS ...): a target that does nothing but carry such headers. Who
# uses it has the same options and definitions.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(KVSCOPE_PCH_OPTIONS -fpch-preprocess) # for ccache: which header it was stays in what the preprocessor writes
else()
  set(KVSCOPE_PCH_OPTIONS "SHELL:-Xclang -fno-pch-timestamp") # for ccache: the same headers, the same file
endif()
function(kvscope_precompile name)
  cmake_parse_arguments(ARG "" "" "LIBS;OPTIONS;HEADERS" ${ARGN})
  set(source ${CMAKE_BINARY_DIR}/precompiled/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Nothing but the headers.\n")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE kvscope_options ${ARG_LIBS})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS} ${KVSCOPE_PCH_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()
function(kvscope_use_precompiled name carrier)
  if(KVSCOPE_PCH AND carrier)
    target_precompile_headers(${name} REUSE_FROM ${carrier})
    target_compile_options(${name} PRIVATE ${KVSCOPE_PCH_OPTIONS})
  endif()
endfunction()
# Every file pays for what is in such a header whether it uses it or not: g++ instantiates at the end of each file what the
# inline functions of the header call (0.7 s for nlohmann/json, 6 s for CLI11, 0.5 s for all of QtCore). So only what most
# files use is here.
set(KVSCOPE_STD_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem>
  <fstream> <functional> <limits> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread> <unordered_map>
  <utility> <variant> <vector> <tl/expected.hpp>)
set(KVSCOPE_CLI_HEADERS ${KVSCOPE_STD_HEADERS} <nlohmann/json.hpp> <CLI/CLI.hpp>)
set(KVSCOPE_CORE_HEADERS ${KVSCOPE_STD_HEADERS} <QCoreApplication> <QDateTime> <QObject> <QString> <QStringList> <QTimer> <QVariant>)
set(KVSCOPE_WIDGET_HEADERS ${KVSCOPE_CORE_HEADERS} <QApplication> <QBoxLayout> <QKeyEvent> <QLabel> <QMenu> <QPainter>
  <QPointer> <QScrollBar> <QWidget>)

# kvscope_room(NAME SOURCES ... [PUBLIC libs] [PRIVATE libs]): one room of the house as a static library.
# The links are the include rules: a room that does not link another has no business including it (tests/arch checks).
function(kvscope_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC kvscope_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
  kvscope_use_precompiled(${name} "${KVSCOPE_PRECOMPILED}") # set by the folder
  set_target_properties(${name} PROPERTIES KVSCOPE_HEADERS "${KVSCOPE_PRECOMPILED}")
endfunction()

# kvscope_test(NAME LABELS ... SOURCES ... LIBS ... [TIMEOUT s]): one Qt Test program, registered with CTest.
# A test that is an engine test links no Qt beyond Qt Test itself and may run without an application object.
# Each source NAME.cpp that says #include "NAME.moc" gets it straight from moc: a scan of the target would take longer
# than the compiler.
function(kvscope_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LABELS;SOURCES;LIBS;ENV" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  foreach(source IN LISTS ARG_SOURCES)
    get_filename_component(stem ${source} NAME_WE)
    get_filename_component(path ${source} ABSOLUTE)
    file(STRINGS ${path} includes_moc REGEX "^#include \"${stem}.moc\"")
    if(includes_moc)
      set(moc ${CMAKE_CURRENT_BINARY_DIR}/${name}.moc.d/${stem}.moc)
      add_custom_command(OUTPUT ${moc} COMMAND Qt6::moc -o ${moc} ${path} DEPENDS ${path} VERBATIM)
      target_sources(${name} PRIVATE ${moc})
      target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${name}.moc.d)
      file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name}.moc.d)
    endif()
  endforeach()
  target_link_libraries(${name} PRIVATE kvscope_options Qt6::Test ${ARG_LIBS})
  target_compile_definitions(${name} PRIVATE
    KVSCOPE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data" KVSCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    KVSCOPE_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  if(NOT KVSCOPE_SANITIZE)
    target_compile_options(${name} PRIVATE -O1) # a test is compiled more often than it runs
  endif()
  # Without <QTest>: what it declares depends on the folder of each test.
  set(headers kvscope_test_headers)
  foreach(lib IN LISTS ARG_LIBS)
    if(TARGET ${lib})
      get_target_property(of_lib ${lib} KVSCOPE_HEADERS)
      if(of_lib STREQUAL "kvscope_widget_headers")
        set(headers kvscope_widget_test_headers)
      endif()
    endif()
  endforeach()
  kvscope_use_precompiled(${name} ${headers})
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
