"""A fresh clone has no extras: nothing that it loads may need one, tests included."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
EXTRAS = ("ldap", "django_auth_ldap", "accounts.ldap", "mozilla_django_oidc", "accounts.oidc", "pyarrow")
THEIRS = ("accounts/ldap", "accounts/oidc")  # what is imported only where the extra is there


def loaded_at_once(path: Path) -> list[str]:
    """What the module imports when it is imported itself."""
    found: list[str] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [f"{node.module}.{one.name}" for one in node.names]
    return found


@pytest.mark.parametrize("package", ["accounts", "jobs", "metrics", "portal", "tests"])
def test_no_module_needs_an_extra_to_be_loaded(package: str) -> None:
    wrong = [
        f"{path.relative_to(REPOSITORY)} imports {name}"
        for path in sorted((REPOSITORY / package).rglob("*.py"))
        if not str(path.relative_to(REPOSITORY)).startswith(THEIRS)
        for name in loaded_at_once(path)
        if any(name == extra or name.startswith(f"{extra}.") for extra in EXTRAS)
    ]
    assert wrong == []
