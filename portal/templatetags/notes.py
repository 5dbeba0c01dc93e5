"""Notes of people, written in Markdown, as HTML that runs and loads nothing."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

register = template.Library()

# raw HTML is shown as text; images are not fetched from anywhere; links with schemes such as javascript: stay text
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")


def _link(self, tokens, index, options, environment) -> str:  # type: ignore[no-untyped-def] # markdown-it's own shape
    tokens[index].attrSet("rel", "nofollow noopener noreferrer")
    return str(self.renderToken(tokens, index, options, environment))


def _lower_headings(state) -> None:  # type: ignore[no-untyped-def] # markdown-it's own shape
    """The page has its one h1 and the section its h2 already."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"


_MARKDOWN.add_render_rule("link_open", _link)
_MARKDOWN.core.ruler.push("lower_headings", _lower_headings)


@register.filter
def markdown(text: str) -> SafeString:
    return SafeString(_MARKDOWN.render(text))  # made by a renderer that escapes all it is given
