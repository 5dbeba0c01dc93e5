"""The pages of a job that was made with kubectl: what it is, and nothing that it cannot do."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import expect

from tests.jobs.test_adopted_manifest import job as manifest
from tests.portal.running import Portal

PROGRAM = """
from accounts.models import Namespace
from jobs import adoption
from jobs.models import Job
import json
adoption._insert("local", Namespace.objects.get(slug="vision"), json.loads({text!r}))
print("#", Job.objects.get(origin="kubectl").pk)
"""


def made_with_kubectl(portal: Portal) -> str:
    """As the watcher of a cluster takes it in. That of this cluster, where there is no such Job, cancels it again."""
    limits = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "99"}
    container = {"name": "a", "image": "registry.example.org/ml/pytorch:2.9", "resources": {"limits": limits}}
    container["command"] = ["torchrun", "--nproc-per-node=8", "train.py", "--lr", "0.1"]
    names = {"name": "digits-by-hand", "namespace": "p-vision", "uid": "u-9"}
    names["annotations"] = {"trainhall.io/created-by": "system:serviceaccount:kube-system:cronjob-controller"}
    found = manifest(metadata=names, pod={"containers": [container]}, parallelism=2, completions=2)
    done = portal.manage("shell", "-v", "0", "-c", PROGRAM.format(text=json.dumps(found)))
    (said,) = [line[2:] for line in done.stdout.splitlines() if line.startswith("# ")] or [done.stderr]
    return said


def test_its_pages_say_what_it_is_and_offer_only_what_it_can(visit: Any, portal: Portal) -> None:
    job = made_with_kubectl(portal)
    for name, options in (
        ("desktop", {}),
        ("phone", {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}),
    ):
        carol = visit(**options)
        page = carol.sign_in("carol")
        page.goto("/jobs/")
        row = page.locator("tr", has_text="digits-by-hand").first
        expect(row).to_contain_text("kubectl")
        expect(row).to_contain_text("unknown")
        carol.picture(f"adopted-list-{name}")
        page.goto(f"/jobs/{job}/")
        expect(page.get_by_text("no key with which trainhall.log could report")).to_be_visible(timeout=15_000)
        expect(page.get_by_text("knows nobody of that name in vision")).to_be_visible()
        page.get_by_text("What it lacks").click()
        carol.picture(f"adopted-overview-{name}")
        for absent in ("Clone", "Files"):
            expect(page.get_by_role("link", name=absent, exact=True)).to_have_count(0)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), name
        page.get_by_role("link", name="Spec").click()
        expect(page.get_by_text("as its maker wrote it")).to_be_visible()
        carol.picture(f"adopted-spec-{name}")
