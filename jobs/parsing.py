"""From a job document to a JobSpec: every wrong field is named with the fix, all of them in one answer (pure)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from accounts.disguise import hidden_in, uncovered
from jobs import git_address, mounts
from jobs.chart_fields import read_charts
from jobs.cluster.quantities import parse_cpu, parse_memory
from jobs.entry import shell_argv
from jobs.fields import CONTROL, FieldReader
from jobs.quoting import fill_in, places
from jobs.reading import Document
from jobs.spec import CodeSource, JobSpec, Resources, SecretRef, Volume

FIELDS = [
    "namespace",
    "name",
    "runtime",
    "image",
    "code",
    "command",
    "parameters",
    "env",
    "secrets",
    "resources",
    "launcher",
    "volumes",
    "priority",
    "preemptible",
    "time_limit",
    "retries",
    "stop_grace",
    "notify",
    "tags",
    "charts",
    "cluster",
]
RESOURCE_FIELDS = ["workers", "gpus", "gpu_type", "cpus", "memory", "shm", "parameter_servers"]
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
PARAMETER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")
GPU_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._()+-]*")
SECRET_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
SECRET_KEY = re.compile(r"[A-Za-z0-9_.-]{1,100}")
RESERVED_ENV = ("TRAINHALL_", "JOB_COMPLETION_INDEX")
MAX_TIME_LIMIT = 30 * 86400
MAX_GRACE = 300
MOST_VOLUMES = 20


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a document asks for; `secret_values` holds what was typed, to be encrypted and then forgotten."""

    spec: JobSpec
    secret_values: dict[str, str]


def parse_job(document: Document, *, runtimes: Mapping[str, Mapping[str, Any]], priorities: Collection[str]) -> Parsed:
    """Check a document and fill in its runtime's defaults. Raise SpecError naming every wrong field."""
    return _Reader(document, runtimes, priorities).read()


def argv_of(command: str, parameters: Mapping[str, object]) -> list[str]:
    """What a pod runs."""
    return shell_argv(fill_in(command, parameters))


class _Reader(FieldReader):
    def __init__(
        self, document: Document, runtimes: Mapping[str, Mapping[str, Any]], priorities: Collection[str]
    ) -> None:
        super().__init__(document.lines)
        self.document = document
        self.runtimes = runtimes
        self.priorities = priorities

    def read(self) -> Parsed:
        data = self.document.data
        self.only_known(data, FIELDS)
        runtime = self.runtime(data)
        defaults: Mapping[str, Any] = runtime.get("defaults", {}) if runtime else {}
        self.refuse_locked(data, runtime)
        given = {**defaults, **data}
        for name in ("resources", "env", "parameters"):
            if isinstance(data.get(name), dict) and isinstance(defaults.get(name), dict):
                given[name] = {**defaults[name], **data[name]}

        parameters = self.mapping(given, "parameters", PARAMETER_NAME, self.scalar)
        secrets, values = self.secrets(given.get("secrets"))
        spec = JobSpec(
            namespace=self.text(given, "namespace", required=True, limit=63),
            name=self.text(given, "name", limit=200) or self.text(given, "runtime", limit=63),
            runtime=self.text(given, "runtime", limit=63),
            image=self.image(given, runtime),
            command=self.command(given, parameters),
            code=self.code(given.get("code")),
            parameters=parameters,
            env=self.env(given),
            secrets=secrets,
            resources=self.resources(given.get("resources")),
            launcher=self.launcher(given, runtime),
            volumes=self.volumes(given.get("volumes")),
            priority=self.one_of(given, "priority", self.priorities, default="normal"),
            preemptible=self.boolean(given, "preemptible", default=True),
            time_limit=self.seconds(given, "time_limit", default=86400, low=1, high=MAX_TIME_LIMIT),
            retries=self.whole(given, "retries", default=0, low=0, high=20),
            stop_grace=self.seconds(given, "stop_grace", default=30, low=0, high=MAX_GRACE),
            notify=self.words(given, "notify", allowed=("started", "finished", "failed")),
            tags=self.words(given, "tags"),
            charts=read_charts(self, given.get("charts")),
            cluster=self.text(given, "cluster", limit=63),
        )
        for name in spec.env:
            if name in values or any(secret.name == name for secret in secrets):
                self.wrong(f"env.{name}", "is both in env and in secrets; keep one")
        if spec.resources.parameter_servers and spec.launcher != "tensorflow":
            self.wrong("resources.parameter_servers", "belongs to the launcher tensorflow; leave it out")
        if self.errors:
            raise self.failure()
        return Parsed(spec=spec, secret_values=values)

    def runtime(self, data: Mapping[str, Any]) -> Mapping[str, Any] | None:
        name = self.text(data, "runtime", required=True, limit=63)
        if name and name not in self.runtimes:
            self.wrong("runtime", f"there is no runtime {name!r}; there are {', '.join(sorted(self.runtimes))}")
        return self.runtimes.get(name)

    def refuse_locked(self, data: Mapping[str, Any], runtime: Mapping[str, Any] | None) -> None:
        runtime = runtime or {}
        launchers = runtime.get("launchers") or ["plain"]
        given = {"image": runtime.get("image"), "launcher": launchers[0], **runtime.get("defaults", {})}
        for dotted in runtime.get("locked", ()):
            asked, fixed = _dig(data, dotted), _dig(given, dotted)
            if asked is not None and asked != fixed:
                to = f" to {fixed!r}" if fixed is not None else ""
                self.wrong(dotted, f"is locked by the runtime{to}; leave it out")

    def command(self, data: Mapping[str, Any], parameters: Mapping[str, object]) -> str:
        value = data.get("command")
        if not isinstance(value, str) or not value.strip():
            self.wrong("command", "is required: what to run, such as `python train.py`")
            return ""
        if len(value) > 65536 or "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value):
            self.wrong("command", "is longer than 64 Ki characters or holds a NUL or half a character")
        for place in places(value):
            if place.trouble:
                fix = f"set a variable before it, X={{{{{place.name}}}}}, and use that"
                self.wrong(
                    "command", f"the parameter {place.name!r} stands {place.trouble}, where no value is safe; {fix}"
                )
            elif place.name not in parameters:
                near = difflib.get_close_matches(place.name, list(parameters), n=1, cutoff=0.5)
                have = f"there are {', '.join(sorted(parameters))}" if parameters else "none is given"
                hint = f"did you mean {near[0]!r}?" if near else have
                self.wrong("command", f"uses the parameter {place.name!r}, which `parameters` does not have; {hint}")
        return str(value)

    def code(self, value: Any) -> CodeSource:
        if value is None:
            return CodeSource()
        if not isinstance(value, dict):
            self.wrong("code", "must be {files: …}, {upload: <sha256>} or {git: <url>, ref: …}")
            return CodeSource()
        self.under("code").only_known(value, ("files", "upload", "git", "ref"))
        if sum(kind in value for kind in ("files", "upload", "git")) != 1:
            self.wrong("code", "must have exactly one of files, upload and git")
            return CodeSource()
        if "files" in value:
            files = value["files"]
            if not isinstance(files, dict) or not files:
                self.wrong("code.files", "must map file names to their text")
                return CodeSource()
            return CodeSource(files={name: text for name, text in files.items() if self.file(name, text)})
        if "upload" in value:
            digest = value["upload"]
            if not isinstance(digest, str) or not re.fullmatch(r"[0-9a-f]{64}", digest):
                self.wrong("code.upload", "must be the sha256 that the upload answered")
                return CodeSource()
            return CodeSource(upload=str(digest))
        url, ref = self.text(value, "git", limit=500), self.text(value, "ref", limit=200)
        if wrong := git_address.trouble(url):
            self.wrong("code.git", wrong)
        if ref.startswith("-") or re.search(r"[\s~^:?*\[\\]|\.\.", ref):
            self.wrong("code.ref", "is not a branch, tag or commit")
        return CodeSource(git=url, ref=ref)

    def file(self, name: object, text: object) -> bool:
        field = f"code.files.{name}"
        if not isinstance(name, str) or not isinstance(text, str):
            self.wrong(field, "must be a name and its text")
            return False
        if hidden := hidden_in(name):
            self.wrong(uncovered(field), f"holds {hidden} in its name, which nobody sees")
            return False
        parts = name.split("/")
        if len(name) > 400 or CONTROL.search(name) or "\\" in name or any(part in ("", ".", "..") for part in parts):
            self.wrong(field, "is not a relative path inside the code folder")
            return False
        return True

    def env(self, data: Mapping[str, Any]) -> dict[str, str]:
        found = self.mapping(data, "env", ENV_NAME, self.env_value)
        for name in found:
            if name.startswith(RESERVED_ENV):
                self.wrong(f"env.{name}", "is set by the portal and cannot be changed")
        return found

    def env_value(self, field: str, value: object) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str):
            self.wrong(field, f"is read as {value!r}; put the value in quotes"[:300])
            return ""
        if len(value) > 32768 or "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value):
            self.wrong(field, "is longer than 32 Ki characters or holds a NUL or half a character")
        return str(value)

    def scalar(self, field: str, value: object) -> str | int | float | bool:
        if isinstance(value, bool | int | float):
            return value
        return self.env_value(field, value)

    def secrets(self, value: Any) -> tuple[tuple[SecretRef, ...], dict[str, str]]:
        refs: list[SecretRef] = []
        values: dict[str, str] = {}
        entries = self.mapping({"secrets": value}, "secrets", ENV_NAME, lambda _field, entry: entry)
        for name, entry in entries.items():
            field = f"secrets.{name}"
            if name.startswith(RESERVED_ENV):
                self.wrong(field, "is set by the portal and cannot be changed")
            elif not isinstance(entry, dict):
                self.wrong(field, "must be {value: …}")
            elif "from" in entry:
                self.shared_secret(name, entry, refs)
            elif not isinstance(entry.get("value"), str) or not entry["value"] or "\x00" in entry["value"]:
                self.wrong(field, "has no value: type it, as {value: …}; a clone or a draft keeps its name only")
            elif set(entry) != {"value"}:
                self.under(field).only_known(entry, ("value",))
            else:
                refs.append(SecretRef(name=name))
                values[name] = str(entry["value"])
        return tuple(refs), values

    def shared_secret(self, name: str, entry: Mapping[str, Any], refs: list[SecretRef]) -> None:
        """`{from: team-keys, key: wandb}`; whether the namespace has it is asked where there is a namespace."""
        inner = self.under(f"secrets.{name}")
        inner.only_known(entry, ("from", "key"))
        source, key = inner.text(entry, "from", required=True, limit=63), inner.text(entry, "key", limit=100) or name
        if source and not SECRET_NAME.fullmatch(source):
            inner.wrong("from", "is not the name of a secret: small letters, digits and dashes, such as team-keys")
        elif not SECRET_KEY.fullmatch(key):
            inner.wrong("key", "has 1 to 100 letters, digits, dots, dashes and underscores")
        else:
            refs.append(SecretRef(name=name, from_secret=source, key=key))

    def image(self, data: Mapping[str, Any], runtime: Mapping[str, Any] | None) -> str:
        fix = "is not the name of an image, such as registry.example.com/ml/pytorch:2.9"
        image = self.matching(data, "image", IMAGE, fix=fix, limit=300)
        return image or str(runtime.get("image", "") if runtime else "")

    def resources(self, value: Any) -> Resources:
        value = value or {}
        if not isinstance(value, dict):
            self.wrong("resources", "must be a mapping such as {workers: 2, gpus: 1, cpus: 4, memory: 16Gi}")
            return Resources()
        inner = self.under("resources")
        inner.only_known(value, RESOURCE_FIELDS)
        basic = Resources(
            workers=inner.whole(value, "workers", default=1, low=1, high=10_000),
            gpus=inner.whole(value, "gpus", default=0, low=0, high=1024),
            gpu_type=inner.matching(value, "gpu_type", GPU_TYPE, fix="is not a type of GPU, such as H200", limit=60),
            parameter_servers=inner.whole(value, "parameter_servers", default=0, low=0, high=1000),
        )
        return replace(
            basic,
            cpu_millis=inner.quantity(value, "cpus", parse_cpu, default=basic.cpu_millis, low=1, high=10**9),
            memory_bytes=inner.quantity(
                value, "memory", parse_memory, default=basic.memory_bytes, low=16 * 2**20, high=2**60
            ),
            shm_bytes=inner.quantity(value, "shm", parse_memory, default=0, low=0, high=2**60),
        )

    def launcher(self, data: Mapping[str, Any], runtime: Mapping[str, Any] | None) -> str:
        allowed = list((runtime or {}).get("launchers") or ["plain"])
        return self.one_of(data, "launcher", allowed, default=allowed[0])

    def volumes(self, value: Any) -> tuple[Volume, ...]:
        """Names and places; whether the namespace has them is asked where there is a namespace."""
        if value is None:
            return ()
        if not isinstance(value, list) or len(value) > MOST_VOLUMES:
            self.wrong(
                "volumes", f"must be a list of at most {MOST_VOLUMES}, such as [{{name: datasets, path: /data}}]"
            )
            return ()
        found: dict[int, Volume] = {}
        for place, entry in enumerate(value):
            if not isinstance(entry, dict):
                self.wrong(f"volumes[{place}]", "must be a mapping such as {name: datasets, path: /data}")
            elif volume := self.volume(self.under(f"volumes[{place}]"), entry):
                if any(volume.name == other.name for other in found.values()):
                    self.wrong(f"volumes[{place}].name", f"{volume.name!r} is there twice; keep one")
                found[place] = volume
        for place, text in mounts.clashes({place: volume.path for place, volume in found.items()}):
            self.wrong(f"volumes[{place}].path", text)
        return tuple(found.values())

    def volume(self, inner: FieldReader, entry: Mapping[str, Any]) -> Volume | None:
        inner.only_known(entry, ("name", "path", "read_only"))
        name, path = inner.text(entry, "name", required=True, limit=63), inner.text(entry, "path", limit=mounts.LONGEST)
        if name and not mounts.CLAIM.fullmatch(name):
            inner.wrong("name", "is not the name of a volume: small letters, digits and dashes, such as datasets")
        if path and (wrong := mounts.trouble(path)):
            inner.wrong("path", wrong)
        read_only = None if entry.get("read_only") is None else inner.boolean(entry, "read_only", default=True)
        return Volume(name=name, path=path, read_only=read_only) if name else None


def _dig(data: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        data = data.get(part) if isinstance(data, Mapping) else None
    return data
