"""A browser without a screen, for stories that look at every byte a page sends."""

from __future__ import annotations

import re
import urllib.parse
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

from tests.chaos.hall import Hall


class Person:
    """A browser without a screen: cookies, CSRF, and every body it got."""

    def __init__(self, hall: Hall, name: str, password: str) -> None:
        self.hall = hall
        self.jar = CookieJar()
        self.opener: OpenerDirector = build_opener(HTTPCookieProcessor(self.jar))
        self.seen: list[str] = []
        self.get("/login/")
        self.post("/login/", username=name, password=password)

    def ask(self, path: str, data: bytes | None = None, **headers: str) -> str:
        request = Request(f"http://localhost:{self.hall.port}{path}", data=data, headers=headers)
        try:
            with self.opener.open(request, timeout=20) as answer:
                body = answer.read().decode(errors="replace")
        except HTTPError as error:
            body = error.read().decode(errors="replace")
        self.seen.append(body)
        return body

    def get(self, path: str) -> str:
        return self.ask(path)

    def post(self, path: str, **fields: Any) -> str:
        token = re.search(
            r'csrfmiddlewaretoken" value="([^"]+)"', self.ask("/me/tokens/") if path != "/login/" else self.seen[-1]
        )
        assert token
        fields["csrfmiddlewaretoken"] = token.group(1)
        body = urllib.parse.urlencode(fields, doseq=True).encode()
        return self.ask(path, body, Referer=f"http://localhost:{self.hall.port}/")

    @property
    def cookies(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.jar)
