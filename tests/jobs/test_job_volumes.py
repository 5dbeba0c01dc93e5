"""Volumes in a job document: read exactly, or refused with the field, the line and the fix; and where somebody is at home."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import mounts
from jobs.cluster.rendering import Home
from jobs.spec import Volume, spec_from_dict, spec_to_dict
from tests.jobs.test_parsing import LEAST, errors, parse


def wrong(volumes: Any) -> dict[str, list[str]]:
    return errors({**LEAST, "volumes": volumes})


def test_what_is_left_open_is_as_it_is_offered() -> None:
    given = [{"name": "datasets"}, {"name": "scratch", "path": "/scratch", "read_only": False}]
    spec = parse({**LEAST, "volumes": given}).spec
    assert spec.volumes == (Volume("datasets", "", None), Volume("scratch", "/scratch", read_only=False))
    assert spec_from_dict(spec_to_dict(spec)) == spec
    assert parse({**LEAST, "volumes": None}).spec.volumes == parse(LEAST).spec.volumes == ()


@pytest.mark.parametrize(
    "path", ["/data", "/data/imagenet-1k", "/mnt/a.b/c_d", "/home", "/runs2", "/libs", "/データ/一"]
)
def test_a_place_that_may_be(path: str) -> None:
    assert parse({**LEAST, "volumes": [{"name": "x", "path": path}]}).spec.volumes[0].path == path


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/",
            "data",
            "./data",
            "~/data",
            "/data/",
            "//data",
            "/data//x",
            "/data/../etc",
            "/data/.",
            "/a:b",
            "/a b",
            "/a\\b",
        ),
        *("/workspace", "/workspace/x", "/runs", "/runs/7f3k2p9m4x", "/opt", "/opt/trainhall", "/opt/trainhall/x"),
        *(
            "/run",
            "/run/trainhall",
            "/var",
            "/var/run",
            "/var/run/secrets/trainhall",
            "/tmp",
            "/tmp/x",
            "/dev",
            "/dev/shm",
        ),
        *("/proc", "/proc/1", "/sys", "/etc", "/etc/ssl", "/usr", "/usr/local/lib", "/bin", "/sbin", "/lib", "/lib64"),
        "/" + "x" * 200,
        "/$(HOME)",
        "/home/{user}",
    ],
)
def test_a_place_that_may_not(path: str) -> None:
    assert list(wrong([{"name": "fine", "path": "/fine"}, {"name": "x", "path": path}])) == ["volumes[1].path"]


@pytest.mark.parametrize(
    ("volumes", "field", "words"),
    [
        ({"name": "x"}, "volumes", "must be a list"),
        ("x", "volumes", "must be a list"),
        ([{"name": f"v{number}"} for number in range(21)], "volumes", "at most 20"),
        (["x"], "volumes[0]", "must be a mapping"),
        ([{}], "volumes[0].name", "is required"),
        ([{"name": 5}], "volumes[0].name", "must be text"),
        ([{"name": "Data"}], "volumes[0].name", "small letters"),
        ([{"name": "../x"}], "volumes[0].name", "small letters"),
        ([{"name": "a.b"}], "volumes[0].name", "small letters"),
        ([{"name": "x" * 62}], "volumes[0].name", "small letters"),
        ([{"name": "x", "read_only": "yes"}], "volumes[0].read_only", "must be true or false"),
        ([{"name": "x", "hostPath": "/"}], "volumes[0].hostPath", "there is no such field"),
        ([{"name": "x", "nfs": {"server": "a"}}], "volumes[0].nfs", "known are name, path, read_only"),
        ([{"name": "x"}, {"name": "x"}], "volumes[1].name", "keep one"),
        ([{"name": "x", "path": "/a"}, {"name": "y", "path": "/a"}], "volumes[1].path", "meets the volume at /a"),
        ([{"name": "x", "path": "/a"}, {"name": "y", "path": "/a/b"}], "volumes[1].path", "meets the volume at /a"),
        ([{"name": "x", "path": "/a/b"}, {"name": "y", "path": "/a"}], "volumes[1].path", "meets the volume at /a/b"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(volumes: Any, field: str, words: str) -> None:
    found = wrong(volumes)
    assert list(found) == [field]
    assert words in found[field][0]


def test_places_that_only_begin_alike_do_not_meet() -> None:
    given = [{"name": "x", "path": "/a"}, {"name": "y", "path": "/ab"}, {"name": "z"}]
    assert [volume.path for volume in parse({**LEAST, "volumes": given}).spec.volumes] == ["/a", "/ab", ""]


def test_in_yaml_the_line_is_told() -> None:
    text = "namespace: vision\nruntime: numpy\ncommand: 'true'\nvolumes:\n- {name: x}\n- name: y\n  path: data\n"
    assert errors(text)["volumes[1].path"][0].startswith("line 7: must be a path from the root")


@pytest.mark.parametrize(
    ("path", "user", "home"),
    [
        ("/home", "alice", Home("homes", "/home", "/home/alice")),
        ("/home/{user}", "alice", Home("homes", "/home/alice", "/home/alice")),
        ("/export/{user}/home", "josé", Home("homes", "/export/josé/home", "/export/josé/home")),
        ("/home", "..", None),
        ("/home", "a/b", None),
        ("/home", "", None),
        ("/home", "Ärger, J.", None),
        ("/{user}", "tmp", None),  # it would lie over the pod's own
        ("/opt/{user}", "trainhall", None),
    ],
)
def test_where_somebody_is_at_home(path: str, user: str, home: Home | None) -> None:
    assert mounts.home_of("homes", path, user) == home
