"""Why a pod that has a machine does not start there: images, secrets, volumes, the machine. Pure."""

from __future__ import annotations

import re

from jobs.cluster.messages.words import Rule, Told, as_it_is, first, rule
from jobs.states import Reason

_IMAGE_RULES: tuple[tuple[str, Reason, str], ...] = (
    (r"no such host", Reason.IMAGE_NOT_FOUND, "its registry is not known (no such host)"),
    (
        r"toomanyrequests|429 Too Many Requests|pull QPS exceeded",
        Reason.REGISTRY_UNAVAILABLE,
        "its registry's limit of downloads is reached; it is tried again by itself",
    ),
    (
        r"unauthorized|authorization failed|authentication required|access denied|denied:|\b40[13]\b|no basic auth",
        Reason.IMAGE_NOT_FOUND,
        "its registry does not let us, or it does not exist",
    ),
    (r"no match for platform", Reason.IMAGE_NOT_FOUND, "it has no variant for this kind of machine"),
    (
        r"ErrImageNeverPull|not present with pull policy of Never",
        Reason.IMAGE_NOT_FOUND,
        "it is not present on the machine, and may not be fetched",
    ),
    (
        r"connection refused|i/o timeout|TLS handshake|x509|context deadline exceeded|\b50[0234]\b|connection reset|"
        r"no route to host|network is unreachable|EOF\b|registry.* unavailable|RegistryUnavailable",
        Reason.REGISTRY_UNAVAILABLE,
        "its registry does not answer as it should; it is tried again by itself",
    ),
    (r"not found|manifest unknown|NotFound|no such image", Reason.IMAGE_NOT_FOUND, "there is no such image or tag"),
    (r"no space left on device", Reason.MACHINE_FAULT, "the machine's disk is full"),
)
_IMAGES = tuple((re.compile(pattern, re.IGNORECASE), reason, words) for pattern, reason, words in _IMAGE_RULES)


def of_image(said: str, message: str, image: str) -> Told:
    """The waiting reason of a container whose image is not there, and its message; or an event Failed of its pod."""
    if said in ("InvalidImageName", "ErrInvalidImageName"):
        return Told(Reason.IMAGE_NOT_FOUND, f'"{image}" is not a valid image name.')
    for pattern, reason, words in _IMAGES:
        if pattern.search(f"{said} {message}"):
            return Told(reason, f"The image {image} cannot be fetched: {words}.")
    # a back-off alone says nothing of the cause
    if not message or re.fullmatch(r'Back-off pulling image "[^"]*"', message.strip()):
        return Told(Reason.IMAGE_NOT_FOUND, f"The image {image} cannot be fetched; it is tried again by itself.")
    return as_it_is(Reason.IMAGE_NOT_FOUND, f"The image {image} cannot be fetched.", message)


CONFIG: tuple[Rule, ...] = (
    rule(r'secret "([^"]+)" not found', Reason.SECRET_MISSING, "The secret {1} is missing."),
    rule(r'configmap "([^"]+)" not found', Reason.SECRET_MISSING, "The config map {1} is missing."),
    rule(
        r"couldn't find key (\S+) in Secret \S*?/?([\w.-]+)$", Reason.SECRET_MISSING, "The secret {2} has no key {1}."
    ),
    rule(
        r"runAsNonRoot and image (?:will run as root|has non-numeric user)",
        Reason.NOT_ALLOWED,
        "The image runs as root, which is not allowed here; set a user id.",
    ),
    rule(
        r"failed to (?:prepare|create) subPath|failed to create subPath directory",
        Reason.VOLUME_UNAVAILABLE,
        "A folder of its volume cannot be made for it.",
    ),
)


def of_config(message: str) -> Told:
    """CreateContainerConfigError and CreateContainerError."""
    return first(CONFIG, message) or as_it_is(Reason.SETTING_UP, "Its container cannot be made.", message)


_VOLUME = re.compile(r'MountVolume\.\w+ failed for volume "([^"]+)"')
_UNMOUNTED = re.compile(r"unmounted volumes=\[([^\]]*)\]")


def _volume(message: str) -> str:
    found = _VOLUME.search(message) or _UNMOUNTED.search(message)
    return f" {found[1]}" if found and found[1] else ""


MOUNTS: tuple[Rule, ...] = (
    rule(
        r'(?:secret|configmap) "([^"]+)" not found',
        Reason.SECRET_MISSING,
        "A file the job needs ({1}) is missing.",
    ),
    rule(r"references non-existent (?:secret|config) key: (\S+)", Reason.SECRET_MISSING, "The secret has no key {1}."),
    rule(
        r'persistentvolumeclaim "([^"]+)" not found',
        Reason.VOLUME_MISSING,
        "The volume {1} does not exist in this namespace.",
    ),
)
_STORAGE = re.compile(
    r"mount\.nfs|access denied by server|timed out waiting for the condition|timed out|no route to host"
    r"|[Cc]onnection refused|mount failed|hostPath type check failed|deadline exceeded|unmounted volumes"
)
_PASSING = re.compile(r"failed to sync (?:secret|configmap) cache|not registered")


def of_mount(message: str) -> Told | None:
    """An event FailedMount or FailedAttachVolume; None for what every start may say and is over a second later."""
    if _PASSING.search(message):
        return None
    if found := first(MOUNTS, message):
        return found
    if _STORAGE.search(message):
        words = " ".join(message.split())
        why = next((one for one in ("access denied by server", "No such file or directory") if one in words), "")
        tail = f" ({why})" if why else ""
        return Told(Reason.VOLUME_UNAVAILABLE, f"The storage volume{_volume(message)} could not be mounted{tail}.")
    return as_it_is(Reason.VOLUME_UNAVAILABLE, f"The volume{_volume(message)} could not be mounted.", message)


SANDBOX: tuple[Rule, ...] = (
    rule(
        r"SupplementalGroupsPolicyNotSupported",
        Reason.MACHINE_FAULT,
        "The machine is too old for this pod setting.",
    ),
    rule(r"", Reason.MACHINE_FAULT, "The machine could not set up the container, which is a fault of the machine."),
)


def of_pod_event(said: str, message: str, image: str = "") -> Told | None:
    """A warning about a pod that does not run; None where it tells nothing about that."""
    if said in ("FailedMount", "FailedAttachVolume"):
        return of_mount(message)
    if said in ("FailedCreatePodSandBox", "FailedPodSandBoxStatus"):
        return first(SANDBOX, message)
    if said == "FailedPrepareDynamicResources":
        return Told(Reason.MACHINE_FAULT, "The machine could not get the devices ready that the job asked for.")
    if said == "Failed" and message.startswith("Failed to pull image"):
        return of_image(said, message, image or _image(message))
    return None


def _image(message: str) -> str:
    found = re.search(r'"([^"]+)"', message)
    return found[1] if found else ""


_COMMAND = re.compile(
    r'exec: "?(?P<command>[^":\s]{1,200})"?: (?:(?P<path>stat [^:]+: )?(?:no such file|executable file not found)'
    r"|(?P<denied>permission denied)|(?P<directory>is a directory))"
)


def of_start_error(message: str) -> str:
    """What a container runtime says of a command that it cannot start; "" where it says something else."""
    if not (match := _COMMAND.search(message)):
        return ""
    if match["denied"] or match["directory"]:
        return f'The command "{match["command"]}" cannot be executed.'
    return f'The command "{match["command"]}" does not exist in the image.'
