"""Parameters in a command: each {{name}} becomes its value, quoted for the place of the shell's language where it stands.

The program receives exactly the value, whatever it holds. Where no quoting can promise that (backticks, here-documents,
arithmetic), the place is named as wrong instead (pure).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
HEREDOC = re.compile(r"<<-?\s*(?P<quote>['\"]?)(?P<word>[A-Za-z0-9_.!-]+)(?P=quote)")
PLAIN, SINGLE, DOUBLE, COMMENT = "plain", "single", "double", "comment"
# where a value cannot be quoted, in the words of the error
UNSAFE = {
    "backticks": "inside backticks",
    "braces": "inside ${…}",
    "arithmetic": "inside $((…))",
    "heredoc": "inside a here-document",
    "lost": "after quotes that shells read differently, such as $'…', quotes inside ${…}, or $(case …)",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a parameter stands in a command, and in which part of the shell's language."""

    name: str
    start: int
    end: int
    context: str

    @property
    def trouble(self) -> str:
        """Why it cannot stand there; empty where it can."""
        return UNSAFE.get(self.context, "")


def places(command: str) -> list[Place]:
    """Every parameter of a command; what stands in a comment, or behind a backslash, is text."""
    if "{{" not in command:
        return []
    return [place for place in _Scan(command).run() if place.context != COMMENT]


def fill_in(command: str, parameters: Mapping[str, object]) -> str:
    """The command with its parameters as the shell gets it. Raise ValueError for a place where none can stand."""
    parts, at = [], 0
    for place in places(command):
        if place.trouble:
            raise ValueError(f"{place.name} stands {place.trouble}")
        quoted = shlex.quote(text_of(parameters[place.name]))
        # inside quotes: they are closed, the value follows in its own, and they are opened again
        around = {SINGLE: "'", DOUBLE: '"'}.get(place.context, "")
        parts += [command[at : place.start], around, quoted, around]
        at = place.end
    return "".join([*parts, command[at:]])


def text_of(value: object) -> str:
    """A value as the program gets it; true and false as one writes them."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Scan:
    """Walks a command once, keeping the stack of what is open there."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.open = [PLAIN]
        self.at = 0
        self.waiting: list[str] = []  # here-documents whose text begins on the next line
        # from here on it cannot be told for sure what is quoted: the `)` of a `case`, quotes in places of their own rules
        self.is_lost = "$(" in command and bool(re.search(r"\bcase\b", command))

    def run(self) -> Iterator[Place]:
        while self.at < len(self.command):
            match = PLACEHOLDER.match(self.command, self.at)
            if match:
                yield Place(match.group(1), match.start(), match.end(), self.context())
                self.at = match.end()
            elif self.command[self.at] == "\n" and self.waiting and self.open[-1] not in (SINGLE, DOUBLE):
                yield from self.heredocs()
            else:
                self.at += self.step()

    def context(self) -> str:
        top = self.open[-1]
        outer = next((kind for kind in self.open if kind in UNSAFE), "")
        if outer or self.is_lost:
            return outer or "lost"
        return top if top in (SINGLE, DOUBLE, COMMENT) else PLAIN

    def step(self) -> int:
        """Read what stands here, and say how many characters it is."""
        here, rest, top = self.command[self.at], self.command[self.at : self.at + 3], self.open[-1]
        if top == COMMENT:
            if here == "\n":
                self.open.pop()
            return 1
        if top == SINGLE:
            if here == "'":
                self.open.pop()
            return 1
        if here == "\\":
            return 2
        if top == "backticks" and here == "`":
            self.open.pop()
        elif here == "`":
            self.open.append("backticks")
        elif rest == "$((":
            self.open.append("arithmetic")
            return 3
        elif rest[:2] == "$(":
            self.open.append("substitution")
            return 2
        elif rest[:2] == "${":
            self.open.append("braces")
            return 2
        elif top == "braces" and here == "}":
            self.open.pop()
        elif top == "arithmetic":
            if rest[:2] == "))":
                self.open.pop()
                return 2
        elif top == DOUBLE:
            if here == '"':
                self.open.pop()
        else:
            return self.plain(here, rest)
        return 1

    def plain(self, here: str, rest: str) -> int:
        self.is_lost |= self.open[-1] in ("braces", "backticks") and here in "'\"#("
        if here == '"':
            self.open.append(DOUBLE)
        elif here == "'":
            # one shell reads escapes in $'…', another does not: where it ends is not ours to guess
            self.is_lost |= self.at > 0 and self.command[self.at - 1] == "$"
            self.open.append(SINGLE)
        elif here == "#" and (self.at == 0 or self.command[self.at - 1] in " \t\n;&|()"):
            self.open.append(COMMENT)
        elif here == "(":
            self.open.append("parenthesis")
        elif here == ")" and self.open[-1] in ("parenthesis", "substitution"):
            self.open.pop()
        elif rest == "<<<":
            return 3
        elif rest[:2] == "<<":
            match = HEREDOC.match(self.command, self.at)
            if match:
                self.waiting.append(match.group("word"))
                return len(match.group())
            self.is_lost = True
        return 1

    def heredocs(self) -> Iterator[Place]:
        """The texts that begin on the next line: quotes mean nothing there."""
        if self.open[-1] == COMMENT:
            self.open.pop()
        self.at += 1
        while self.waiting and self.at < len(self.command):
            end = self.command.find("\n", self.at)
            end = len(self.command) if end < 0 else end
            if self.command[self.at : end].lstrip("\t") == self.waiting[0]:
                self.waiting.pop(0)
            for match in PLACEHOLDER.finditer(self.command, self.at, end):
                yield Place(match.group(1), match.start(), match.end(), "heredoc")
            self.at = end if not self.waiting else end + 1
