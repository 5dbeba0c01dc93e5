"""One container of a pod as a process of this machine: its folders, its clean environment, its start. Standard library only."""

from __future__ import annotations

import errno
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from jobs.cluster.local import processes, translate
from jobs.cluster.local.layout import VOLUMES, PodFolder, check_name, read_json

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LONGEST_TMP = 60  # bytes; programs put sockets below it, whose paths may have 107

failed_to_start = (OSError, ValueError, translate.SecretMissing)


class Container:
    def __init__(
        self, spec: dict[str, Any], *, pod: PodFolder, job: dict[str, Any], release: dict[str, Any], index: int
    ) -> None:
        self.spec = spec
        self.pod = pod
        self.job = job
        self.release = release
        self.index = index

    def start(self, output: int, *, hold_sigterm: bool = False) -> int:
        """Start it in a session of its own, all its output to `output`; return the pid. Raise what `failed_to_start` lists.

        `hold_sigterm` keeps the signal back until the program says that it listens.
        """
        mounts = translate.mounts_of(self.spec, self._make_volumes())
        environment = self._environment(mounts)
        command = translate.command_of(self.spec, environment)
        program = _find(command[0], environment["PATH"])
        folder = translate.translate_path(self.spec.get("workingDir") or "/", mounts)
        return _spawn(program, command, environment, folder, output, hold_sigterm=hold_sigterm)

    def surroundings(self) -> tuple[dict[str, str], str]:
        """Environment and working folder of a container that runs, for a shell beside it. Raise what `failed_to_start` lists."""
        mounts = translate.mounts_of(self.spec, self._make_volumes(fill=False))
        return self._environment(mounts), translate.translate_path(self.spec.get("workingDir") or "/", mounts)

    def _make_volumes(self, *, fill: bool = True) -> dict[str, str]:
        """Volume name to folder. Memory volumes have none: /dev/shm is the machine's own."""
        found: dict[str, str] = {}
        for volume in self.job["spec"]["template"]["spec"].get("volumes", ()):
            name = check_name(volume["name"])
            if "persistentVolumeClaim" in volume:
                folder = self.pod.object.namespace / VOLUMES / check_name(volume["persistentVolumeClaim"]["claimName"])
            elif volume.get("emptyDir", {}).get("medium") == "Memory":
                continue
            else:
                folder = self.pod.volumes / name
            folder.mkdir(parents=True, exist_ok=True)
            if fill and "secret" in volume:
                self._write_secret_files(folder, volume["secret"])
            found[name] = str(folder)
        if "tmp" in found:
            found["tmp"] = short_tmp(self.pod)
        return found

    def _write_secret_files(self, folder: Path, source: dict[str, Any]) -> None:
        """0600 here, whatever the manifest says: on this machine the pod runs as the portal's own account."""
        os.chmod(folder, 0o700)
        secrets = self._secrets()
        for item in source.get("items", ()):
            path = folder / check_name(item["path"])
            with suppress(FileNotFoundError):
                path.unlink()
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets[item["key"]])

    def _secrets(self) -> dict[str, str]:
        secret = read_json(self.pod.object.secret) or {}
        return dict(secret.get("stringData", {}))

    def _environment(self, mounts: dict[str, str]) -> dict[str, str]:
        """Nothing of the portal's own environment: only the manifest's, and what a login would set."""
        python = Path(self.release["python"])
        service = self.job["spec"]["template"]["spec"].get("subdomain", self.job["metadata"]["name"])
        environment = {
            "PATH": f"{python.parent}:{SYSTEM_PATH}",
            "LANG": "C.UTF-8",
            "HOME": mounts.get("/workspace", str(self.pod.path)),
            "TMPDIR": mounts.get("/tmp", "/tmp"),  # noqa: S108 - the pod's own
        }
        if (python.parent.parent / "pyvenv.cfg").exists():
            environment["VIRTUAL_ENV"] = str(python.parent.parent)
        environment |= translate.environment(
            self.spec,
            index=self.index,
            mounts=mounts,
            secret_name=service,
            secrets=self._secrets(),
            service=service,
            ports=self.release.get("ports", {}),  # one that was released by an earlier version has none
        )
        if any(
            spec["name"] == self.spec["name"] for spec in self.job["spec"]["template"]["spec"].get("initContainers", ())
        ):
            environment["PYTHONPATH"] = self.release["sdk_path"]  # in place of the helper image's
        else:
            _keep_installs_apart(environment)
        environment |= self.release["devices"].get(self.pod.worker, {})
        environment[POD_MARK] = str(self.pod.path)
        return environment


def _keep_installs_apart(environment: dict[str, str]) -> None:
    """`pip install` in a job goes to the job's own folder: the Python it uses is the portal's, and everybody's."""
    own = f"{environment['HOME']}/.packages"
    environment.setdefault("PIP_TARGET", own)
    environment["PYTHONPATH"] = ":".join(filter(None, (environment.get("PYTHONPATH"), own)))
    environment["PATH"] = f"{own}/bin:{environment['PATH']}"


POD_MARK = "TRAINHALL_LOCAL_POD"  # by it the processes of a killed runner are found again


def mark_of(pod: PodFolder) -> bytes:
    return f"{POD_MARK}={pod.path}".encode()


def short_tmp(pod: PodFolder) -> str:
    """The pod's own /tmp, or a short link to it where its path would leave no room for a socket's name."""
    folder = pod.volumes / "tmp"
    if len(os.fsencode(folder)) <= LONGEST_TMP:
        return str(folder)
    link = _link(pod)
    try:
        os.symlink(folder, link)
    except FileExistsError:
        if not os.path.islink(link) or os.readlink(link) != str(folder):
            return str(folder)  # someone else's
    return link


def remove_short_tmp(pod: PodFolder) -> None:
    link = _link(pod)
    if os.path.islink(link) and os.readlink(link) == str(pod.volumes / "tmp"):
        os.unlink(link)


def _link(pod: PodFolder) -> str:
    return f"/tmp/th-{pod.record().get('uid', '')[:13]}"  # noqa: S108 - the uid makes it ours


def _find(program: str, path: str) -> str:
    """The program's path, as a shell would find it. The message is for the person who wrote the command."""
    places = [program] if "/" in program else [os.path.join(folder, program) for folder in path.split(":")]
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    raise FileNotFoundError(f"The command {program!r} was not found.")


def _spawn(
    program: str, command: list[str], environment: dict[str, str], folder: str, output: int, *, hold_sigterm: bool
) -> int:
    die_with_parent = processes.prepare_to_die_with_parent()
    nothing = os.open(os.devnull, os.O_RDONLY)
    arguments = [os.fsencode(word) for word in command]
    failure, failure_write = os.pipe()  # closed by a successful exec; else it tells the errno
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            die_with_parent()  # type: ignore[operator]
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)  # an ignored one would be inherited
            if hold_sigterm:
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                file.write("500")  # if the machine itself runs short, the kernel takes the job, not the portal
            os.dup2(nothing, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.chdir(folder)
            os.execve(program, arguments, environment)  # noqa: S606 - an argument list; the shell, if any, is the job's own
        except (OSError, ValueError) as error:  # ValueError: a NUL in a value, a "=" in a name
            os.write(failure_write, str(getattr(error, "errno", errno.EINVAL)).encode())
        finally:
            os._exit(128)
    os.close(nothing)
    os.close(failure_write)
    with open(failure, "rb") as file:
        failed_with = int(file.read() or 0)
    if failed_with:
        os.waitpid(pid, 0)
        raise OSError(failed_with, f"The command {command[0]!r} could not be started: {os.strerror(failed_with)}")
    return pid
