"""Every visible string can be translated: none stands outside gettext."""

from __future__ import annotations

from tests.portal import words


def test_templates_say_nothing_outside_gettext() -> None:
    assert words.in_templates() == []


def test_scripts_say_nothing_outside_gettext() -> None:
    assert words.in_scripts() == []


def test_messages_and_errors_of_views_are_not_bare_literals() -> None:
    assert words.in_views() == []
