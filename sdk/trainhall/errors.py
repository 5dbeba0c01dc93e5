"""What the portal refused, in its own words."""

from __future__ import annotations

from typing import Any, Dict, Optional


class TrainhallError(Exception):
    """The portal said no, or could not be asked. `code` is for programs, `message` for people, `fields` per field."""

    def __init__(self, code: str, message: str, fields: Optional[Dict[str, Any]] = None, status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fields = fields or {}
        self.status = status

    def __str__(self) -> str:
        lines = [self.message]
        for field, problems in self.fields.items():
            for problem in problems if isinstance(problems, list) else [problems]:
                line = "{}: {}".format(field, problem)
                if line not in lines:
                    lines.append(line)
        return "\n  ".join(lines)
