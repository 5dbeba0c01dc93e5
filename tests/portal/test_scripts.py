"""The scripts of the pages as files: what the content policy and the hashed names of static files ask of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
IMPORT = re.compile(r"""(?:\bfrom\s+|\bimport\s*\(?\s*)(["'`])([^"'`]+)\1""")
# what runs text as code or as markup; DOMParser reads the server's own fragments and runs nothing
FORBIDDEN = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|new Function)\b|setAttribute\(\"style"
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_imports_are_relative_files_that_exist(script: Path) -> None:
    for _quote, name in IMPORT.findall(script.read_text()):
        # ours beside it, or a module that was vendored as it is
        assert (name.startswith("./") and name.endswith(".js")) or name.startswith("../vendor/"), name
        assert (script.parent / name).is_file(), f"{script.name} imports {name}"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_script_makes_markup_or_code_of_text(script: Path) -> None:
    assert not FORBIDDEN.search(script.read_text())


def test_the_vendored_bundle_is_the_locked_one() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text())
    version = lock["packages"]["node_modules/plotly.js"]["version"]
    with (ROOT / "static" / "vendor" / "plotly" / "plotly-basic.min.js").open() as bundle:
        assert f"v{version}\n" in bundle.read(200)
    assert f"plotly.js {version}" in (ROOT / "static" / "vendor" / "NOTICE").read_text()


def test_the_lock_names_no_host() -> None:
    assert "://" not in (ROOT / "package-lock.json").read_text()
