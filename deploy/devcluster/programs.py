"""The programs of a cluster: built once from pinned Go modules, kept in a cache outside the tree, found by their pins."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from deploy.devcluster.settings import HERE, CannotStart, Settings

MODULES = HERE / "modules"
# program: (module folder, package)
PROGRAMS = {
    "etcd": ("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": ("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubectl": ("kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    "kubelet": ("kubernetes", "k8s.io/kubernetes/cmd/kubelet"),
    "kube-proxy": ("kubernetes", "k8s.io/kubernetes/cmd/kube-proxy"),
    "dns": ("extras", "./dns"),
    "policies": ("extras", "./policies"),
    "kwok": ("extras", "sigs.k8s.io/kwok/cmd/kwok"),
}


@dataclass(frozen=True, slots=True)
class Module:
    """One folder of pins: Kubernetes and its companions need different versions of what they share."""

    name: str

    @property
    def folder(self) -> Path:
        return MODULES / self.name

    def version(self, required: str) -> str:
        found = re.search(rf"^(?:require )?\s*{re.escape(required)} (v\S+)", (self.folder / "go.mod").read_text(), re.M)
        assert found is not None, f"{self.name} does not pin {required}"
        return found[1]

    @property
    def flags(self) -> str:
        """Without its version the API server calls itself v0.0.0-master, and clients read that."""
        if self.name != "kubernetes":
            return "-s -w"
        version = self.version("k8s.io/kubernetes")
        major, minor, _ = version.removeprefix("v").split(".", 2)
        base = "k8s.io/component-base/version"
        told = {f"{base}.gitVersion": version, f"{base}.gitMajor": major, f"{base}.gitMinor": minor}
        told |= {f"{base}.gitTreeState": "clean", "k8s.io/client-go/pkg/version.gitVersion": version}
        return " ".join(["-s -w", *(f"-X {name}={value}" for name, value in told.items())])

    @property
    def pins(self) -> str:
        """One name for everything that decides what is built."""
        parts = [path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()]
        return hashlib.sha256(b"\0".join([*parts, self.flags.encode()])).hexdigest()[:12]


def find(settings: Settings, program: str) -> Path:
    module = Module(PROGRAMS[program][0])
    return settings.cache / f"{module.name}-{module.pins}" / program


def needed(settings: Settings) -> list[str]:
    """What this cluster runs; a laptop without fake nodes need not build kwok."""
    names = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"]
    if settings.nodes:
        names += ["kubelet", "kube-proxy", "dns", *(["policies"] if settings.policies else [])]
    return names + (["kwok"] if settings.fake_nodes else [])


def build(settings: Settings, programs: Iterable[str]) -> None:
    """Build what the cache lacks, with what other work leaves of the processors."""
    missing = [program for program in programs if not find(settings, program).exists()]
    if not missing:
        return
    settings.cache.mkdir(parents=True, exist_ok=True)
    with (settings.cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two builds at once would take twice as long, and more memory
        for module in sorted({PROGRAMS[program][0] for program in missing}):
            names = [name for name in missing if PROGRAMS[name][0] == module and not find(settings, name).exists()]
            if names:
                _build(settings, Module(module), names)


def _build(settings: Settings, module: Module, names: list[str]) -> None:
    print(f"Building {', '.join(names)} from Go modules, once; this takes minutes…", file=sys.stderr, flush=True)
    began = time.monotonic()
    target = find(settings, names[0]).parent
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    # one call for all of them, so that both processors are busy while one program is linked
    packages = [PROGRAMS[name][1] for name in names]
    argv = [go(), "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", module.flags]
    argv += ["-o", f"{unfinished}/", *packages]
    done = subprocess.run(
        argv, cwd=module.folder, env={**os.environ, "CGO_ENABLED": "0"}, preexec_fn=lambda: os.nice(10), check=False
    )
    if done.returncode:
        raise CannotStart(f"Go could not build {', '.join(names)}; the lines above say why.")
    target.mkdir(exist_ok=True)
    for name in names:
        # Go names a program after the last part of its package
        built = PROGRAMS[name][1].removesuffix("/v3").rpartition("/")[2]
        if name == "kwok":
            _keep_stages(module, target / "stages")
        (unfinished / built).replace(target / name)
    unfinished.rmdir()
    print(f"Built in {time.monotonic() - began:.0f} s.", file=sys.stderr, flush=True)


def _keep_stages(module: Module, target: Path) -> None:
    """What kwok does to nodes and pods is written beside its source, which another clean-up may remove."""
    argv = [go(), "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]
    found = subprocess.run(argv, cwd=module.folder, capture_output=True, text=True, check=True).stdout.strip()
    shutil.copytree(Path(found) / "kustomize" / "stage", target, dirs_exist_ok=True, copy_function=shutil.copyfile)


@cache
def go() -> str:
    for name in ("go", "/usr/local/go/bin/go"):
        if (found := shutil.which(name)) is not None:
            text = subprocess.run([found, "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout
            number = re.match(r"go(\d+)\.(\d+)", text)
            if number is not None and (int(number[1]), int(number[2])) >= (1, 26):
                return found
            raise CannotStart(f"The dev cluster is built with Go 1.26 or newer, and {found} is {text.strip()}.")
    raise CannotStart("The dev cluster is built with Go 1.26 or newer, and no go was found.")
