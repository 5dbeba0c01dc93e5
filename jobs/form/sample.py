"""The sample job: the digits example, as it is shipped."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from accounts.models import User
from jobs import archives
from jobs.reading import Document, document_of

FILES = ("digits_numpy.py", "digits.csv.gz", "DIGITS-LICENCE.txt")


def sample_document(user: User, *, namespace: str) -> Document:
    """A document that trains a small network on handwritten digits for about a minute, without a GPU."""
    folder = Path(settings.BASE_DIR, "examples")
    streams = [(name, (folder / name).open("rb")) for name in FILES]
    try:
        archive = archives.from_uploads(streams, user=user)
    finally:
        for _name, stream in streams:
            stream.close()
    return document_of(
        {
            "namespace": namespace,
            "name": "digits",
            "runtime": "numpy",
            "code": {"upload": archive.sha256},
            "command": "python digits_numpy.py --lr {{lr}}",
            "parameters": {"lr": 0.1},
            "tags": ["sample"],
        }
    )
