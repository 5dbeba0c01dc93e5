"""What a pod's shell does around the user's command. Pure.

A shell that is told to stop would die at once, and the program be killed while it saves its work: so it waits and ends with the
program's exit code. As process 1 of a container it is the only one that is told, whoever ends the pod: a stop of ours, an
eviction, a drain. It tells the others, and says when the grace ends in the notice file first: a program that looks there when it
is told finds it. Elsewhere the local cluster's runner tells the whole group, and writes the notice itself.
"""

from __future__ import annotations

# POSIX sh, for any image: $0 is the command. The subshell waits for its program as the outer shell waits for it.
# The notice is renamed into its place, so that nobody reads half of it.
ENTRY = """\
if [ $$ -ne 1 ]; then trap 'exit $?' TERM; eval "$0"; exit; fi
notice() {
  [ -n "$TRAINHALL_NOTICE_FILE" ] && [ ! -e "$TRAINHALL_NOTICE_FILE" ] || return
  now=$(date +%s 2>/dev/null) || return
  echo $((now + ${TRAINHALL_STOP_GRACE:-30})) > "$TRAINHALL_NOTICE_FILE.new" || return
  mv "$TRAINHALL_NOTICE_FILE.new" "$TRAINHALL_NOTICE_FILE"
}
(trap 'exit $?' TERM; eval "$0") &
trap 'trap "" TERM; notice; kill -TERM 0' TERM
wait $!; code=$?
while kill -0 $! 2>/dev/null; do wait $!; code=$?; done
exit $code
"""


def shell_argv(command: str) -> list[str]:
    return ["/bin/sh", "-c", ENTRY, command]
