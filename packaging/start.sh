#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck source=packaging/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'USAGE'
Usage: packaging/start.sh [--demo]

Installs what is missing (Debian 12 packages, by apt through sudo), builds the program, gets the default model and starts
KVScope. Everything else happens as you, below this folder and ~/.local/share/kvscope. Safe to run again: what is there
is not done twice.

  --demo   no window: a scripted chat of two turns, its cache receipts and a screenshot (this is also what happens where
           there is no display)
USAGE
}

readonly PROGRAM="$ROOT/build/release/bin/kvscope"

wayland_answers() {
  local socket="${WAYLAND_DISPLAY:-}"
  [ -n "$socket" ] || return 1
  [ "${socket#/}" != "$socket" ] || socket="${XDG_RUNTIME_DIR:-}/$socket"
  "$PYTHON" -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$socket" 2>/dev/null
}

x_answers() { [ -n "${DISPLAY:-}" ] && timeout 5 xdpyinfo >/dev/null 2>&1; }

# choose_platform: sets QT_QPA_PLATFORM to what answers. Asked first, because Qt aborts where nothing does.
choose_platform() {
  case "${QT_QPA_PLATFORM:-}" in
    offscreen* | minimal*) return 1 ;;
    vnc* | eglfs* | linuxfb*) return 0 ;; # the user knows a screen that we cannot ask
  esac
  if wayland_answers; then
    export QT_QPA_PLATFORM=wayland
  elif x_answers; then
    export QT_QPA_PLATFORM=xcb
  else
    return 1
  fi
}

why_no_display() {
  if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
    say "The display ${WAYLAND_DISPLAY:-$DISPLAY} does not answer, so no window can be shown."
  else
    say "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so no window can be shown."
  fi
}

demo() {
  local folder
  folder="$ROOT/build/demo"
  mkdir -p "$folder"
  step "a chat of two turns, offscreen" "Run $PROGRAM --demo $folder by hand to see more."
  QT_QPA_PLATFORM=offscreen "$PROGRAM" --demo "$folder"
}

main() {
  local demo_only=no
  case "${1:-}" in
    "") ;;
    --demo) demo_only=yes ;;
    -h | --help) usage && return 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  refuse_sudo
  ensure_environment

  step "disk space"
  own_folder
  [ -x "$PROGRAM" ] || need_disk "$ROOT" 1500 "the build"
  step "packages"
  install_packages build run
  step "build" "Read the compiler's messages above; after mending, run this again, it goes on from there."
  build release kvscope kvscope-cli
  step "default model" "Run packaging/fetch_model.sh to try again."
  "$ROOT/packaging/fetch_model.sh"

  if [ "$demo_only" = yes ]; then
    demo
  elif choose_platform; then
    step "KVScope"
    exec "$PROGRAM"
  else
    why_no_display
    say "The same program now shows itself another way: a scripted chat, its cache receipts, and a screenshot."
    demo
  fi
}

main "$@"
