"""The demo that `manage.py up` fills an empty portal with. Running it again changes nothing that people have edited."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from accounts import people
from accounts.models import GroupMapping, Namespace, User
from accounts.roles import Role, SiteRole
from jobs.cluster.registry import kinds
from jobs.models import Cluster, PriorityClass, Runtime

PEOPLE = {
    "alice": "Alice Ito",
    "bob": "Bob Chen",
    "carol": "Carol Sato",
    "dave": "Dave Lin",
    "admin": "Site admin",
}
PROJECTS = {
    "vision": {"alice": Role.MEMBER, "bob": Role.MEMBER, "carol": Role.LEAD},
    "speech": {"dave": Role.MEMBER},
}
# group, project (or one for each group that a pattern matches), role
MAPPINGS = (
    ("vision", "vision", Role.MEMBER),
    ("vision-leads", "vision", Role.LEAD),
    ("speech", "speech", Role.MEMBER),
    ("ml-*", "", Role.MEMBER),
)
PRIORITIES = {"high": (10000, 1), "normal": (5000, 5), "low": (100, None)}
SMALL = {"resources": {"cpus": "500m", "memory": "512Mi"}, "time_limit": "1h"}
RUNTIMES = {
    "numpy": {
        "title": "Python with numpy",
        "description": "Python and numpy. Metrics by import trainhall, which is always there.",
        "image": "trainhall:latest",
        "launchers": ["plain"],
        "defaults": SMALL,
    },
    "shell": {
        "title": "Shell",
        "description": "Any command. Points are reported with `python -m trainhall log`.",
        "image": "debian:stable-slim",
        "launchers": ["plain"],
        "defaults": SMALL,
    },
}

# What needs more than Python is offered where this machine has it: the local cluster runs the portal's own Python. By slug, the
# modules and programs that must be there.
FRAMEWORKS: dict[str, tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]] = {
    "torch": (
        {"title": "PyTorch", "description": "Start it with `torchrun train.py`.", "launchers": ["torchrun", "plain"]},
        ("torch",),
        ("torchrun",),
    ),
    "jax": ({"title": "JAX", "launchers": ["jax", "plain"]}, ("jax",), ()),
    "tensorflow": ({"title": "TensorFlow", "launchers": ["tensorflow", "plain"]}, ("tensorflow",), ()),
    "xgboost": ({"title": "XGBoost", "launchers": ["xgboost", "plain"]}, ("xgboost",), ()),
    "mpi": (
        {"title": "MPI", "description": "Start it with `mpirun python train.py`.", "launchers": ["mpi", "plain"]},
        ("mpi4py",),
        ("mpirun", "sshd"),
    ),
}


def frameworks_here() -> list[str]:
    """Those of FRAMEWORKS that the local cluster could run."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.defpath, "/usr/sbin"))
    return [
        slug
        for slug, (_runtime, modules, programs) in FRAMEWORKS.items()
        if all(find_spec(module) for module in modules) and all(shutil.which(one, path=path) for one in programs)
    ]


def ensure_person(name: str, *, password: str | None = None) -> User:
    """A person of the demo, with a personal namespace."""
    role = SiteRole.ADMIN if name == "admin" else SiteRole.NONE
    return people.ensure_person(name, password=password, display_name=PEOPLE.get(name, name), site_role=role)


def ensure_project(slug: str) -> Namespace:
    """A project of the demo and the roles of its people, when it is new."""
    for name in PROJECTS[slug]:
        ensure_person(name)
    if project := Namespace.objects.filter(slug=slug).first():
        return project
    return people.ensure_project(slug, members=PROJECTS[slug])


def ensure_runtime(slug: str) -> Runtime:
    image = settings.TRAINHALL_DEMO_IMAGE or str(RUNTIMES[slug]["image"])
    runtime, _is_new = Runtime.objects.get_or_create(slug=slug, defaults={**RUNTIMES[slug], "image": image})
    if runtime.image != image and runtime.updated_by is None:  # no admin has said what it shall be
        runtime.image = image
        runtime.save(update_fields=["image"])
    return runtime


def ensure_priorities() -> None:
    for name, (value, cap) in PRIORITIES.items():
        PriorityClass.objects.get_or_create(name=name, defaults={"value": value, "max_jobs_per_user": cap})


def ensure_clusters() -> list[Cluster]:
    """A row for each cluster of the settings; one that is not in them any more stays, with its jobs."""
    return [Cluster.objects.get_or_create(name=name, defaults={"kind": kind})[0] for name, kind in kinds().items()]


def ensure_mappings() -> None:
    """The rules of the demo directory, while there is none: what an admin has made of them since stays."""
    if GroupMapping.objects.exists():
        return
    places = {project.slug: project for project in Namespace.objects.filter(slug__in=PROJECTS)}
    for group, slug, role in MAPPINGS:
        GroupMapping.objects.create(group=group, namespace=places.get(slug), role=role)


@transaction.atomic
def seed() -> str:
    """Fill what is missing and return the password of the demo people."""
    password, changed = choose_password(settings.TRAINHALL_DATA_DIR / "demo-password")
    for name in PEOPLE if settings.DIRECTORY is None else ["admin"]:
        person = ensure_person(name, password=password)
        if changed:
            person.set_password(password)
            person.save(update_fields=["password"])
    if settings.DIRECTORY is None:
        for slug in PROJECTS:
            ensure_project(slug)
    elif settings.HAS_DEMO_DIRECTORY:
        for slug in PROJECTS:
            people.ensure_project(slug, members={})
        ensure_mappings()
    for slug in RUNTIMES:
        ensure_runtime(slug)
    if "local" in kinds():
        for slug in frameworks_here():
            defaults = {"image": f"{slug}:latest", "description": "", "defaults": SMALL, **FRAMEWORKS[slug][0]}
            Runtime.objects.get_or_create(slug=slug, defaults=defaults)
    ensure_priorities()
    ensure_clusters()
    return password


def choose_password(kept: Path) -> tuple[str, bool]:
    """The demo password, and whether it is another one than last time.

    Only then are passwords set: one that a demo person has changed on the page survives a restart.
    """
    given = os.environ.get("TRAINHALL_DEMO_PASSWORD", "").strip()
    before = kept.read_text(encoding="utf-8").strip() if kept.exists() else ""
    password = given or before or secrets.token_urlsafe(9)
    if password != before:
        kept.touch(mode=0o600)
        kept.write_text(password + "\n", encoding="utf-8")
    return password, password != before
