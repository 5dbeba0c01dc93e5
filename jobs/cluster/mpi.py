"""The two shell programs of an MPI job: what its workers run, and what stands before the user's command in its launcher. Pure.

Any image with a POSIX shell, an MPI and OpenSSH will do. The key pair is the attempt's own, made by the portal: it opens the
workers of this attempt to its launcher, and nothing else. Nobody but the account of the pod can read the copies.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobs.cluster.port import Manifest
from jobs.cluster.rendering import SSH_FOLDER, Rendering
from jobs.gang import LAUNCHER, PodGroup

SSH_KEY, SSH_PUBLIC = "ssh-key", "ssh-public"  # in the attempt's Secret

# Whatever starts programs on other hosts calls `ssh`; here it finds one that knows every worker, its port and its key. Also on
# the workers, of which each passes the word on to others where there are many.
_HOSTS = r"""set -eu
umask 077
dir=$TRAINHALL_MPI_DIR
mkdir -p "$dir/bin"
cp "$TRAINHALL_SSH_KEYS/private" "$dir/key"
echo "* $(cat "$TRAINHALL_SSH_KEYS/public")" > "$dir/known_hosts"
: > "$dir/hostfile"
: > "$dir/hostfile.hydra"
: > "$dir/ssh_config"
for pair in $TRAINHALL_MPI_HOSTS; do
  name=${pair%%=*}
  address=${pair#*=}
  echo "$name slots=$TRAINHALL_MPI_SLOTS" >> "$dir/hostfile"
  echo "$name:$TRAINHALL_MPI_SLOTS" >> "$dir/hostfile.hydra"
  cat >> "$dir/ssh_config" <<END
Host $name
  HostName ${address%:*}
  Port ${address##*:}
END
done
cat >> "$dir/ssh_config" <<END
Host *
  IdentityFile "$dir/key"
  IdentitiesOnly yes
  UserKnownHostsFile "$dir/known_hosts"
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectionAttempts 10
  LogLevel ERROR
END
cat > "$dir/bin/ssh" <<END
#!/bin/sh
exec "$(command -v ssh || echo /usr/bin/ssh)" -F "$dir/ssh_config" "\$@"
END
chmod 700 "$dir/bin/ssh"
export PATH="$dir/bin:$PATH"
"""

LAUNCHER_PROGRAM = (
    _HOSTS
    + r"""umask 022
exec "$@"
"""
)

# A session has the environment of the pod, as if no ssh had been between. On SIGTERM no new session begins, and those that
# run may end by themselves: ranks that save a checkpoint get the whole grace.
WORKER_PROGRAM = (
    _HOSTS
    + r"""cp "$TRAINHALL_SSH_KEYS/public" "$dir/authorized_keys"
export -p > "$dir/environment"
cat > "$dir/session" <<END
. "$dir/environment"
cd "$(pwd)"
umask 022
: > "$dir/session.\$\$"
eval "\$SSH_ORIGINAL_COMMAND"
END
cat > "$dir/sshd_config" <<END
Port ${TRAINHALL_SSH_ADDRESS##*:}
HostKey "$dir/key"
AuthorizedKeysFile "$dir/authorized_keys"
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
MaxStartups 1000
ForceCommand exec /bin/sh "$dir/session"
END
program=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$program" ] || { echo "An MPI worker needs sshd, of OpenSSH, in its image." >&2; exit 127; }
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
ending= server=
trap 'ending=1; kill "$server" 2>/dev/null || :' TERM
"$program" -D -e -f "$dir/sshd_config" &
server=$!
code=0
wait "$server" || code=$?
[ -n "$ending" ] || exit "$code"
for session in "$dir"/session.*; do
  while kill -0 "${session##*.}" 2>/dev/null; do sleep 0.2; done
done
"""
)


def command(group: PodGroup, argv: Sequence[str]) -> list[str]:
    """What `main` of this role runs; `argv` is the user's command."""
    if group.role == LAUNCHER:
        return ["/bin/sh", "-c", LAUNCHER_PROGRAM, "sh", *argv]
    return ["/bin/sh", "-c", WORKER_PROGRAM]


def secret_values(job: Rendering) -> dict[str, str]:
    private, public = job.ssh_key
    return {SSH_KEY: private, SSH_PUBLIC: public}


def volume(job: Rendering) -> Manifest:
    """0444 as the token's: each program makes a copy that only its own account reads, as OpenSSH wants it."""
    items = [{"key": SSH_KEY, "path": "private"}, {"key": SSH_PUBLIC, "path": "public"}]
    return {"name": "ssh", "secret": {"secretName": job.name, "defaultMode": 0o444, "items": items}}


def mount() -> Manifest:
    return {"name": "ssh", "mountPath": SSH_FOLDER, "readOnly": True}
