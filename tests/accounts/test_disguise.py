"""Characters that nobody sees: refused in names, shown with a mark elsewhere."""

from __future__ import annotations

import pytest

from accounts.disguise import hidden_in, uncovered, uncovered_html

RLO, ZWSP, ZWNJ, ZWJ, BOM = "\u202e", "\u200b", "\u200c", "\u200d", "\ufeff"


@pytest.mark.parametrize("char", [RLO, "\u202a", "\u2066", "\u2069", "\u200e", "\u200f", ZWSP, "\u2060", BOM, "\u00ad"])
def test_what_hides_is_named(char: str) -> None:
    assert hidden_in(f"run{char}1") == f"U+{ord(char):04X}"
    assert uncovered(f"run{char}1") == f"run[U+{ord(char):04X}]1"


@pytest.mark.parametrize(
    "text", ["run-1", "実験 ８", "בדיקה", "می\u200cخواهم", "क्\u200dष", "👩\u200d🔬", "❤\ufe0f\u200d🔥", "naïve"]
)
def test_every_script_may_be_written(text: str) -> None:
    assert hidden_in(text) == ""
    assert uncovered_html(f"<p>{text}</p>") == f"<p>{text}</p>"


@pytest.mark.parametrize("text", [f"ru{ZWJ}n", f"{ZWNJ}run", f"run{ZWJ}"])
def test_joiners_that_join_nothing_hide(text: str) -> None:
    assert hidden_in(text)


def test_a_page_shows_them_in_texts_titles_and_words_of_tags() -> None:
    page = f'<title>a{RLO}b</title><a title="x{RLO}" href="/{RLO}">n{RLO}m</a><option>o{ZWSP}</option>'
    assert uncovered_html(page) == (
        f'<title>a[U+202E]b</title><a title="x[U+202E]" href="/{RLO}">n<bdi class="odd" data-code="U+202E">{RLO}</bdi>m</a>'
        "<option>o[U+200B]</option>"
    )


def test_what_a_form_sends_back_and_what_scripts_read_stay() -> None:
    for page in (
        f'<input value="{RLO}"><button data-copy="{RLO}">',
        f"<textarea>{RLO}</textarea>",
        f'<script type="application/json">"{RLO} < 3 </b>"</script>',
    ):
        assert uncovered_html(page) == page
    assert uncovered_html(f"<textarea>x</textarea>{RLO}") != f"<textarea>x</textarea>{RLO}"
