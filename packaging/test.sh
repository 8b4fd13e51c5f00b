#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck source=packaging/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly TEST_SECONDS=300
readonly LEFT_OUT='^(long|gpu|remote|bench)$'

usage() {
  cat <<USAGE
Usage: packaging/test.sh

Installs what is missing (as start.sh does), builds release with all tests and runs those without the labels long, gpu,
remote and bench. That takes about three minutes on two cores; after $TEST_SECONDS seconds it is
stopped.
USAGE
}

# Tests that talk to a display get one of their own, never the user's.
run_tests() {
  local -a display=()
  if command -v xvfb-run >/dev/null; then
    display=(xvfb-run --auto-servernum --server-args="-screen 0 1600x1000x24 -nolisten tcp")
  fi
  unset WAYLAND_DISPLAY
  local status=0
  timeout --kill-after=10 "$TEST_SECONDS" "${display[@]}" ctest --test-dir "$ROOT/build/release" -LE "$LEFT_OUT" \
    --no-tests=error --output-on-failure -j "$(nproc)" || status=$?
  if [ "$status" = 124 ] || [ "$status" = 137 ]; then
    die "the tests took more than $TEST_SECONDS seconds and were stopped. Give the slow ones the label long."
  fi
  [ "$status" = 0 ] || die "tests failed, see above. One alone: ctest --test-dir build/release -R NAME --output-on-failure"
}

main() {
  case "${1:-}" in
    "") ;;
    -h | --help) usage && return 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  refuse_sudo
  ensure_environment
  step "disk space"
  own_folder
  [ -f "$ROOT/build/release/build.ninja" ] || need_disk "$ROOT" 3000 "the build with its tests"
  step "packages"
  install_packages build run test
  step "build" "Read the compiler's messages above; after mending, run this again, it goes on from there."
  build release
  step "default model"
  # Without network the other tests still say something; those that need the model report themselves as skipped.
  "$ROOT/packaging/fetch_model.sh" || say "The default model is not here: tests that need it are skipped."
  step "tests"
  run_tests
}

main "$@"
