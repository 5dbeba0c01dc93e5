#!/bin/sh
# bootstrap.sh PYTHON VENV LOCK: make the virtual environment and install a lock into it, or say in one sentence what is missing.
set -eu
wanted=$1 venv=$2 lock=$3

say() { printf '%s\n' "$*" >&2; exit 1; }

good() { command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c '' 2>/dev/null; then
  python=
  for name in "$wanted" python3 python3.14 python3.13 python3.12 python3.11; do
    if good "$name"; then python=$name; break; fi
  done
  if [ -z "$python" ]; then
    found=$("$wanted" --version 2>/dev/null || true)
    say "Trainhall needs Python 3.11 or newer; ${found:+found $found}. Install it, or name one with PYTHON=/path/to/python3 make run."
  fi
  "$python" -c 'import ensurepip, venv' 2>/dev/null || say "Python's venv module is missing: apt-get install python3-venv (or your system's package of it)."
  rm -rf "$venv"
  "$python" -m venv "$venv" || say "The virtual environment could not be made in $venv."
fi
echo "Installing what $lock locks (the first time this takes a minute)…"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock" \
  || say "The packages of $lock could not be installed; the lines above say why."
