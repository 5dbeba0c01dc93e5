"""Bodies of requests that carry a job document, JSON or YAML."""

from __future__ import annotations

from typing import Any

from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from jobs.exceptions import SpecError
from jobs.reading import Document, read_document


class JSONDocumentParser(BaseParser):
    media_type = "application/json"
    format = "json"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        try:
            text = stream.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise SpecError(f"The document is not UTF-8: byte {error.start} cannot be read.") from error
        return read_document(text, format=self.format)


class YAMLDocumentParser(JSONDocumentParser):
    media_type = "application/yaml"
    format = "yaml"


class XYAMLDocumentParser(YAMLDocumentParser):
    media_type = "application/x-yaml"


DOCUMENT_PARSERS = [JSONDocumentParser, YAMLDocumentParser, XYAMLDocumentParser]


def document_in(request: Request) -> Document:
    """The document a request carries; an empty body is an empty document, whose fields are then asked for."""
    if isinstance(request.data, Document):
        return request.data
    raise SpecError("Send a job document as application/json or application/yaml.")
