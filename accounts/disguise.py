"""Characters that nobody sees and that make a text look like another one (pure).

They turn the direction of what follows, such as U+202E, or have no width, such as U+200B. Names, tags and paths are refused with
them; other texts, and names from elsewhere, are shown with a mark in their place. The joiners U+200C and U+200D are part of how
Persian, Indic scripts and emoji are written, so they stay between letters of such.
"""

from __future__ import annotations

import re

_ALWAYS = r"\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
HIDDEN = re.compile(rf"[{_ALWAYS}]|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])")
_MAY_HIDE = re.compile(rf"[{_ALWAYS}\u200c\u200d]")

_TEXT, _TAG = "text", "tag"
_TOKEN = re.compile(r"(?P<tag><(?P<name>/?[a-zA-Z][^\s>/]*)[^>]*>)|(?P<text>[^<]+|<)")
# read by people, never by a program
_WORDS_OF_TAGS = re.compile(
    r'(\s(?:title|aria-label|placeholder|alt|label|data-confirm|data-name|data-words)=")([^"]*)(")'
)
_AS_IT_IS = ("script", "style", "textarea")  # what goes back to where it came from
_WITHOUT_TAGS = ("title", "option")


def code(char: str) -> str:
    return f"U+{ord(char):04X}"


def hidden_in(text: str) -> str:
    """The first such character, as U+202E; empty where there is none."""
    found = HIDDEN.search(text)
    return code(found[0]) if found else ""


def uncovered(text: str) -> str:
    """Plain text with `[U+202E]` where such a character is."""
    return HIDDEN.sub(lambda found: f"[{code(found[0])}]", text) if _MAY_HIDE.search(text) else text


def _marked(found: re.Match[str]) -> str:
    # as static/js/ansi.js makes it: alone in its element it turns nothing, and is still there to be copied
    return f'<bdi class="odd" data-code="{code(found[0])}">{found[0]}</bdi>'


def uncovered_html(page: str) -> str:
    """A page of ours, whose texts are escaped, with a mark where such a character is. Fields keep what was typed."""
    if not _MAY_HIDE.search(page):
        return page
    pieces: list[str] = []
    inside = ""  # of an element that holds no tags of its own
    for token in _TOKEN.finditer(page):
        if token[_TAG]:
            name = token["name"].lower()
            if inside and name == f"/{inside}":
                inside = ""
            elif not inside and name in (*_AS_IT_IS, *_WITHOUT_TAGS):
                inside = name
            pieces.append(_WORDS_OF_TAGS.sub(lambda part: part[1] + uncovered(part[2]) + part[3], token[_TAG]))
        elif inside in _AS_IT_IS:
            pieces.append(token[_TEXT])
        elif inside:
            pieces.append(uncovered(token[_TEXT]))
        else:
            pieces.append(HIDDEN.sub(_marked, token[_TEXT]))
    return "".join(pieces)
