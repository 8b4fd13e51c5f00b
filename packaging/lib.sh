# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# What start.sh, test.sh, fetch_model.sh and .ci/run share. Sourced, not run. Every function works in an empty environment
# (env -i): nothing but the system's own folders is expected.

set -euo pipefail
export PATH="${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}"

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly ROOT
# pip belongs to the system's Python; a python3 that comes first in PATH (a virtual environment, pyenv) may have none.
# shellcheck disable=SC2034 # used by the scripts that source this file
readonly PYTHON=/usr/bin/python3
readonly KIB_PER_JOB=$((3 * 1024 * 1024 / 2)) # memory that one compiler may need: 1.5 GiB

STEP="starting"
ADVICE=""

say() { printf '%s\n' "$*"; }

# die SENTENCE: the sentence says what to do.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# step WHAT ADVICE: from here on, a command that fails unexpectedly is reported as WHAT, with ADVICE.
step() {
  STEP="$1"
  ADVICE="${2:-}"
  say "== $STEP"
}

report_failure() {
  local status=$?
  trap - ERR
  printf '%s: this step failed: %s.%s\n' "$(basename "$0")" "$STEP" "${ADVICE:+ $ADVICE}" >&2
  exit "$((status == 0 ? 1 : status))"
}
trap report_failure ERR
set -E # functions and subshells inherit the trap

# Builds and downloads belong to the person who uses them: run by sudo, they would leave folders of root in that home.
refuse_sudo() {
  if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ] && [ "${SUDO_USER:-}" != root ]; then
    die "run this as yourself, without sudo: it would leave files of root in the home of $SUDO_USER. It asks for" \
      "sudo by itself where that is needed, for apt only."
  fi
}

# HOME, and a locale in which file names and answers are UTF-8. C.UTF-8 is part of every Debian.
ensure_environment() {
  if [ -z "${HOME:-}" ]; then
    HOME="$(getent passwd "$(id -u)" | cut -d: -f6)"
    [ -n "$HOME" ] || die "there is no home folder for user $(id -u). Set HOME to a folder you may write to."
  fi
  export HOME
  if [ "$(locale charmap 2>/dev/null)" != UTF-8 ]; then
    export LC_ALL=C.UTF-8
  fi
}

# jobs_for CORES AVAILABLE_KIB: compilers that may run at once, at least 1.
jobs_for() {
  local by_memory=$(($2 / KIB_PER_JOB))
  local jobs=$(($1 < by_memory ? $1 : by_memory))
  echo "$((jobs > 1 ? jobs : 1))"
}

job_count() { jobs_for "$(nproc)" "$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)"; }

# existing_parent FOLDER: the folder itself or the first one above it that exists.
existing_parent() {
  local folder="$1"
  while [ ! -d "$folder" ]; do folder="$(dirname "$folder")"; done
  echo "$folder"
}

# need_disk FOLDER MIB FOR_WHAT: fails when the disk of FOLDER has less than MIB free.
need_disk() {
  local folder free
  folder="$(existing_parent "$1")"
  free="$(df -Pm "$folder" | awk 'NR == 2 { print $4 }')"
  if [ "$free" -lt "$2" ]; then
    die "not enough disk space for $3: $folder has $free MiB free, $2 MiB are needed. Free some space and run this again."
  fi
}

own_folder() { [ -w "$ROOT" ] || die "$ROOT is not yours to write to. Clone the project into a folder of your own."; }

# packages_of GROUP...: names from packages.txt.
packages_of() {
  local group
  for group in "$@"; do
    awk -v group="$group" '$1 == group { print $2 }' "$ROOT/packaging/packages.txt"
  done
}

# missing_packages PACKAGE...: those that are not installed.
missing_packages() {
  local installed package
  installed="$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null | awk '$1 == "installed" { print $2 }')"
  for package in "$@"; do
    grep -qxF -- "$package" <<<"$installed" || echo "$package"
  done
}

# install_packages GROUP...: installs what is missing of these groups; touches no network when nothing is.
install_packages() {
  local -a wanted missing root_prefix=()
  mapfile -t wanted < <(packages_of "$@")
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  if [ "${#missing[@]}" -eq 0 ]; then
    return 0
  fi
  command -v apt-get >/dev/null || die "this needs Debian 12 (apt-get is not here). Install by hand: ${missing[*]}"
  local by_hand="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
  say "Missing packages: ${missing[*]}"
  need_disk /usr 1600 "the missing packages"
  if [ "$(id -u)" != 0 ]; then
    local -a validate=(sudo -v)
    [ -t 0 ] || validate=(sudo -n -v) # nobody is there to type a password
    if ! command -v sudo >/dev/null || ! "${validate[@]}"; then
      die "packages are missing and you may not use sudo here. Have root run this, then start again:
  $by_hand"
    fi
    root_prefix=(sudo)
  fi
  local -a apt=("${root_prefix[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update || die "the package lists could not be fetched. Check the network and run this again, or as root:
  $by_hand"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null ||
    die "apt could not install the packages. Check the network and what it says above, then run this again, or as root:
  $by_hand"
}

# configure PRESET: cmake, only where the build folder has not been set up (ninja runs cmake again when it must).
configure() {
  if [ ! -f "$ROOT/build/$1/build.ninja" ]; then
    local log="$ROOT/build/configure-$1.log"
    mkdir -p "$ROOT/build"
    (cd "$ROOT" && cmake --preset "$1") >"$log" 2>&1 || { cat "$log" >&2 && return 1; }
  fi
}

# build PRESET [TARGET...]. What one clone compiled, another takes from ccache: paths inside the clone do not count.
build() {
  local preset="$1"
  shift
  export CCACHE_BASEDIR="$ROOT" CCACHE_NOHASHDIR=1
  configure "$preset"
  cmake --build "$ROOT/build/$preset" -j "$(job_count)" ${@:+--target "$@"}
}

models_folder() { echo "${XDG_DATA_HOME:-$HOME/.local/share}/kvscope/models"; }
