"""The demo: filled once, never overwritten."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from accounts.models import Membership, Namespace, User
from jobs.models import Cluster, PriorityClass, Runtime
from portal import seed


@pytest.fixture
def data(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.TRAINHALL_DATA_DIR = tmp_path
    monkeypatch.delenv("TRAINHALL_DEMO_PASSWORD", raising=False)
    return tmp_path


@pytest.mark.django_db
class TestSeed:
    def test_it_fills_an_empty_portal(self, data: Path) -> None:
        seed.seed()
        roles = set(
            Membership.objects.filter(namespace__kind="project").values_list(
                "user__username", "namespace__slug", "role"
            )
        )
        assert roles == {
            ("alice", "vision", "member"),
            ("bob", "vision", "member"),
            ("carol", "vision", "lead"),
            ("dave", "speech", "member"),
        }
        assert User.objects.get(username="admin").is_site_admin
        assert Namespace.objects.filter(kind="personal").count() == 5
        assert set(PriorityClass.objects.values_list("name", "value", "max_jobs_per_user")) == {
            ("high", 10000, 1),
            ("normal", 5000, 5),
            ("low", 100, None),
        }
        assert set(Runtime.objects.values_list("slug", flat=True)) == {"numpy", "shell"}
        assert Cluster.objects.get().kind == "local"

    def test_a_made_up_password_is_kept_privately_and_stays(self, data: Path) -> None:
        password = seed.seed()
        kept = data / "demo-password"
        assert kept.read_text().strip() == password
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert seed.seed() == password
        assert User.objects.get(username="alice").check_password(password)

    def test_a_given_password_is_set_also_later(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        seed.seed()
        monkeypatch.setenv("TRAINHALL_DEMO_PASSWORD", "open sesame")
        assert seed.seed() == "open sesame"
        assert User.objects.get(username="dave").check_password("open sesame")

    def test_again_changes_nothing_that_people_edited(self, data: Path) -> None:
        seed.seed()
        Membership.objects.get(user__username="bob", namespace__slug="vision").delete()
        Runtime.objects.filter(slug="numpy").update(title="Ours")
        bob = User.objects.get(username="bob")
        bob.set_password("bob's own choice")
        bob.save()
        seed.seed()
        assert not Membership.objects.filter(user__username="bob", namespace__slug="vision").exists()
        assert Runtime.objects.get(slug="numpy").title == "Ours"
        assert User.objects.get(username="bob").check_password("bob's own choice")


def test_a_framework_is_offered_where_this_machine_can_run_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = seed.frameworks_here()
    (tmp_path / "xgboost").mkdir()
    (tmp_path / "xgboost" / "__init__.py").touch()
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    found = set(seed.frameworks_here()) - set(before)
    assert found <= {"xgboost"}, "torch is here as a module, and there is no torchrun"
    assert "xgboost" in seed.frameworks_here()
