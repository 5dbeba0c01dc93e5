"""Patterns that people write run on RE2, in time linear in the text: none can be made to hang."""

from __future__ import annotations

import re2

MAX_PATTERN = 1000  # characters; RE2's own bound is on the program it makes of them


def compile_pattern(
    pattern: str, *, case_sensitive: bool = True, literal: bool = False, of_many_lines: bool = False
) -> re2._Regexp[str]:
    """Raise ValueError with RE2's own words about what is wrong; RE2 has no look-around and no back-references.

    `of_many_lines`: for a text in which ^ and $ mean a line and no match goes beyond one; only where it is counts then.
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"longer than {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False  # what somebody typed is no error of the portal
    options.case_sensitive = case_sensitive
    options.literal = literal
    options.never_nl = options.never_capture = of_many_lines
    try:
        # alone first: the words about an error must not show our prefix
        compiled = re2.compile(pattern, options)
        return re2.compile(f"(?m){pattern}", options) if of_many_lines and not literal else compiled
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from error
