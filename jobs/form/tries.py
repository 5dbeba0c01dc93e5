"""A clone with another value, as the page of a failed job proposes it: ?from=<id>&memory=2Gi&param.batch_size=512."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.form.fields import Fields

FIELDS = ("workers", "gpus", "memory", "shm", "time_limit")
PARAMETER = "param."
LONGEST = 200


def with_tries(fields: Fields, query: Mapping[str, str]) -> Fields:
    """The form's fields with what the address asks to change; a parameter only if the job has one of that name."""
    changed = {name: query[name][:LONGEST].replace("\0", "") for name in FIELDS if name in query}
    rows = [
        {**row, "value": query.get(f"{PARAMETER}{row['name']}", row["value"])[:LONGEST].replace("\0", "")}
        for row in fields["param"]
    ]
    return {**fields, **changed, "param": rows}
