#!/bin/sh
# bootstrap.sh PYTHON VENV LOCK [PORT]: make the virtual environment and install a lock into it, or say in one sentence what is
# missing. Does nothing when the environment was made from this very lock. With PORT, says first if that port is taken.
set -eu
wanted=$1 venv=$2 lock=$3 port=${4:-}
stamp=$venv/.installed-$(basename "$lock" .txt)

say() { printf '%s\n' "$*" >&2; exit 1; }

good() { command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=
for name in "$venv/bin/python" "$wanted" python3 python3.14 python3.13 python3.12 python3.11; do
  if good "$name"; then python=$name; break; fi
done
if [ -z "$python" ]; then
  found=$("$wanted" --version 2>&1 || true)
  case $found in Python*) found="found is $found" ;; *) found="no python3 was found" ;; esac
  say "Trainhall needs Python 3.11 or newer, but $found. Install it (apt-get install python3 python3-venv), or name one: make run PYTHON=/path/to/python3"
fi

if [ -n "$port" ]; then
  case $port in *[!0-9]*) say "PORT must be a whole number from 1 to 65535, not '$port'." ;; esac
  "$python" - "$port" <<'PY' || exit 1
import socket, sys
port = int(sys.argv[1])
if not 0 < port < 65536:
    sys.exit(f"PORT must be a whole number from 1 to 65535, not '{port}'.")
with socket.socket() as probe:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind(("127.0.0.1", port))
    except OSError as error:
        other = port + 1 if port < 65535 else 8000
        sys.exit(f"Port {port} cannot be used ({error.strerror}): stop what listens there, or choose another with PORT={other} make run.")
PY
fi

if [ "$python" != "$venv/bin/python" ]; then
  "$python" -c 'import ensurepip, venv' 2>/dev/null || say "Python's venv module is missing: apt-get install python3-venv (or your system's package of it)."
  rm -rf "$venv"
  "$python" -m venv "$venv" || say "The virtual environment could not be made in $venv."
fi

# the lock, and the Python it was installed into: either one changed means install again
now="$(cksum <"$lock") $("$venv/bin/python" -V)"
[ "$(cat "$stamp" 2>/dev/null)" = "$now" ] && exit 0
echo "Installing what $lock locks (the first time this takes a minute)…"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock" \
  || say "The packages of $lock could not be installed; the lines above say why."
printf '%s' "$now" >"$stamp"
