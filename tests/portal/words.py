"""Finding words on pages that no translation could reach."""

from __future__ import annotations

import ast
import re
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPOKEN = ("title", "aria-label", "placeholder", "alt", "data-confirm", "content")
# names, units, code and examples are the same in every language
SAME_EVERYWHERE = re.compile(
    r"Trainhall|· Trainhall|kubectl|trainhall\b.*|NAME|Aa|\.log(?:\.gz)?|\$TRAINHALL_\w+|[\w.+-]+\.(?:yaml|py|json|tar\.gz)|https?://\S+|width=device-width.*|"
    r"light dark|[a-z0-9-]+/[a-z0-9./:-]+:[\w.-]+|(?:\S+=\S+ ?)+|GPU|CPU|RE2|YAML|JSON|CSV|UTC|Ctrl.*|Esc|Enter|#|↑|↓"
)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_TRANSLATED = re.compile(
    r"\{%-?\s*(?:blocktranslate|blocktrans)\b.*?%\}.*?\{%-?\s*end(?:blocktranslate|blocktrans)\s*%\}"
    r"|\{% block (?:page|width) %\}\w+\{% endblock %\}|\{%-?\s*comment\b.*?%\}.*?\{%-?\s*endcomment\s*%\}"
    r"|\{%-?\s*verbatim\s*%\}.*?\{%-?\s*endverbatim\s*%\}|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}",
    re.DOTALL,
)
_CODE = {"script", "style", "code", "svg", "pre"}
_VOID = {"input", "br", "img", "link", "meta", "hr", "use", "wbr"}
_EXAMPLE = re.compile(r"[=:{(]|\\w|--|^[a-z0-9-]+$")  # a placeholder that shows what to type, not what it is called


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in SPOKEN and value and not (name == "placeholder" and _EXAMPLE.search(value)):
                self.found.append(value)
        # what is set in the monospaced type is code, a command or a name of the field
        if tag not in _VOID:
            self.inside.append(tag in _CODE or "mono" in (dict(attrs).get("class") or "").split())

    def handle_endtag(self, tag: str) -> None:
        if self.inside and tag not in _VOID:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not any(self.inside):
            self.found += data.split("\n")


def in_templates() -> list[str]:
    """`file: words` for each text or spoken attribute of a template outside translate and blocktranslate."""
    missing = []
    for template in sorted((ROOT / "templates").rglob("*.html")):
        parser = _Text()
        parser.feed(_TRANSLATED.sub("", template.read_text()))
        missing += [f"{template.relative_to(ROOT)}: {words}" for words in parser.found if _speaks(words)]
    return missing


def _speaks(words: str) -> bool:
    words = words.strip()
    return bool(_LETTERS.search(words)) and not SAME_EVERYWHERE.fullmatch(words)


_JS_COMMENT = re.compile(r"(?<![:\"'`])//[^\n]*|/\*.*?\*/", re.DOTALL)
_JS_CALL = re.compile(r"\bn?gettext\(\s*(\"(?:[^\"\\]|\\.)*\"\s*,?\s*)+", re.DOTALL)
_JS_TEXT = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`")
_JS_MARKUP = re.compile(r"[\[\]#=;{}<>|]")  # a selector, a query, a style or a drawing
_JS_PLACE = re.compile(r"\$\{[^}]*\}")
_CLASSES = frozenset(
    name
    for sheet in (ROOT / "static" / "css").glob("*.css")
    for name in re.findall(r"\.([a-z][\w-]*)", sheet.read_text())
)
_TAG = re.compile(r"(?:input|select|textarea|button|a|summary|td|th|tr|label|:is\(\w+|\w+\)|\.\w+),?")
_KEYS = re.compile(r"Home End|\([a-z-]+: \w+\)|(?:Ctrl|Shift|Alt) \w+|(?:\w )+\w|same-origin|use strict")


def _says(text: str) -> bool:
    """Two words or more that are neither markup nor names of classes, keys or states."""
    plain = _JS_PLACE.sub("…", text).strip()
    tokens = plain.split()
    if len(_LETTERS.findall(plain)) < 2 or len(tokens) < 2 or _JS_MARKUP.search(plain) or _KEYS.fullmatch(plain):
        return False
    if any("_" in token for token in tokens):  # names of fields
        return False
    return not all(
        token in _CLASSES or token == "…" or token.startswith((".", "data-")) or _TAG.fullmatch(token)
        for token in tokens
    )


def in_scripts() -> list[str]:
    """`file:line: words` for each text of a script that looks like words and is no argument of gettext."""
    missing = []
    for script in sorted((ROOT / "static" / "js").glob("*.js")):
        source = _JS_COMMENT.sub("", script.read_text())
        source = _JS_CALL.sub(lambda call: "gettext(" + "\n" * call.group().count("\n"), source)
        for match in _JS_TEXT.finditer(source):
            text = next(part for part in match.groups() if part is not None)
            if _says(text):
                missing.append(f"{script.name}: {text}")
    return missing


# functions whose text reaches a page as it is
_SAYS = {"error", "success", "warning", "info", "SpecError", "NotAllowed", "WrongState", "UploadError", "NeverFits"}


def in_views() -> list[str]:
    """`file:line` for each message or error that a module which may use Django gives as a bare literal."""
    missing = []
    for app in ("accounts", "jobs", "metrics", "portal"):
        for module in sorted((ROOT / app).rglob("*.py")):
            source = module.read_text()
            if "gettext" not in source or "migrations" in module.parts:
                continue
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Call) and _name(node.func) in _SAYS and any(map(_is_literal, node.args)):
                    missing.append(f"{module.relative_to(ROOT)}:{node.lineno}")
    return missing


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        logs = isinstance(function.value, ast.Name) and function.value.id == "logger"
        return "" if logs else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_literal(argument: ast.expr) -> bool:
    if isinstance(argument, ast.JoinedStr):
        return any(isinstance(part, ast.Constant) and " " in str(part.value).strip() for part in argument.values)
    return isinstance(argument, ast.Constant) and isinstance(argument.value, str) and " " in argument.value
