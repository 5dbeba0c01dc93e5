"""A real OpenID Connect provider for tests, on loopback: it keeps to the rules, and lies where a test tells it to.

It signs with `cryptography` alone, so that nothing here is read by what wrote it. Without the extra these tests are skipped, and
say so; under CI=true they are mandatory.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import importlib.util
import json
import os
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from accounts.openid import Provider

CLIENT, SECRET = "trainhall", "s3cret & more:%"
BACKENDS = ["accounts.auth.LocalBackend", "accounts.oidc.backend.ProviderBackend"]
HAS_PARTS = importlib.util.find_spec("mozilla_django_oidc") is not None


def needs_openid() -> None:
    if HAS_PARTS:
        return
    words = "needs requirements/oidc.txt"
    if os.environ.get("CI") == "true":
        pytest.fail(f"Under CI this is mandatory: {words}.")
    pytest.skip(words)


@pytest.fixture(scope="session")
def running_op() -> Iterator[Op]:
    needs_openid()
    with Op() as op:
        yield op


@pytest.fixture
def op(running_op: Op, settings: Any) -> Iterator[Op]:
    """The portal knows the provider, and has asked it nothing yet."""
    from accounts.oidc.provider import known

    running_op.behave()
    settings.OPENID = known_provider(running_op.issuer)
    settings.AUTHENTICATION_BACKENDS = BACKENDS
    known.forget()
    yield running_op
    known.forget()


def known_provider(issuer: str, **more: Any) -> Provider:
    told: dict[str, Any] = {
        "issuer": issuer,
        "client_id": CLIENT,
        "client_secret": SECRET,
        "button": "",
        "username_claim": "preferred_username",
        "groups_claim": "groups",
        "ca_file": "",
        "patience": 2,
    }
    return Provider(**{**told, **more})


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _number(value: int, length: int) -> str:
    return b64(value.to_bytes(length, "big"))


@dataclass
class Key:
    """A key of the provider and how it signs."""

    kid: str
    alg: str = "RS256"
    private: Any = None

    def __post_init__(self) -> None:
        made = rsa.generate_private_key(65537, 2048) if self.alg == "RS256" else ec.generate_private_key(ec.SECP256R1())
        self.private = self.private or made

    @property
    def pem(self) -> bytes:
        public: bytes = self.private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return public

    @property
    def jwk(self) -> dict[str, Any]:
        numbers = self.private.public_key().public_numbers()
        known = {"kid": self.kid, "use": "sig", "alg": self.alg}
        if self.alg == "RS256":
            return {**known, "kty": "RSA", "n": _number(numbers.n, 256), "e": _number(numbers.e, 3)}
        return {**known, "kty": "EC", "crv": "P-256", "x": _number(numbers.x, 32), "y": _number(numbers.y, 32)}

    def sign(self, message: bytes) -> bytes:
        if self.alg == "RS256":
            signed: bytes = self.private.sign(message, padding.PKCS1v15(), hashes.SHA256())
            return signed
        r, s = decode_dss_signature(self.private.sign(message, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def token(header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    message = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
    return f"{message}.{b64(sign(message.encode()))}"


def unsigned(_message: bytes) -> bytes:
    return b""


def with_secret(secret: bytes) -> Callable[[bytes], bytes]:
    return lambda message: hmac.new(secret, message, hashlib.sha256).digest()


@dataclass
class Op:
    """`people` are claims by sub, `who` is signed in at the provider; the rest is how it lies."""

    people: dict[str, dict[str, Any]] = field(default_factory=dict)
    tls: tuple[Path, Path, Path] | None = None  # certificate, key and the CA that signed it

    def __enter__(self) -> Op:
        self.old_keys = [Key("first"), Key("curve", "ES256")]
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        if self.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.tls[0], self.tls[1])
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()
        self.behave()
        return self

    def __exit__(self, *_error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def issuer(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.server.server_port}"

    def behave(self) -> None:
        """As on the first day."""
        self.people = {
            "248289": {
                "preferred_username": "alice",
                "name": "Alice Liddell",
                "email": "alice@lab.example",
                "groups": ["vision"],
            },
            "248290": {"preferred_username": "bob", "name": "Bob", "email": "bob@lab.example", "groups": []},
        }
        self.who = "248289"
        self.asks = False  # who it is, on a page of its own
        self.keys = list(self.old_keys)
        self.signs_with = self.keys[0]
        self.only_userinfo: tuple[str, ...] = ()  # claims that the ID token leaves out
        self.claims: dict[str, Any] = {}  # instead of the true ones; None is left out
        self.header: dict[str, Any] = {}
        self.sign: Callable[[bytes], bytes] | None = None
        self.told: dict[str, Any] = {}  # instead of what it truly says of itself
        self.instead: dict[str, Callable[[_Request], None]] = {}  # what a path answers
        self.userinfo: dict[str, Any] = {}
        self.asked: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.access: dict[str, str] = {}

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            **self.told,
        }

    def id_token(self, given: dict[str, str]) -> str:
        now = int(time.time())
        person = {k: v for k, v in self.people[given["sub"]].items() if k not in self.only_userinfo}
        claims = {
            "iss": self.issuer,
            "sub": given["sub"],
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": given["nonce"],
            **person,
            **self.claims,
        }
        header = {"alg": self.signs_with.alg, "kid": self.signs_with.kid, "typ": "JWT", **self.header}
        kept = {name: value for name, value in claims.items() if value is not None}
        return token({k: v for k, v in header.items() if v is not None}, kept, self.sign or self.signs_with.sign)


class _Request(BaseHTTPRequestHandler):
    op: Op

    def log_message(self, *_arguments: object) -> None:
        """The tests read what was asked from `asked`."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.query = {k: v[0] for k, v in parse_qs(url.query, keep_blank_values=True).items()}
        self.form = {k: v[0] for k, v in parse_qs(body, keep_blank_values=True).items()}
        self.op.asked.append(url.path)
        doors = {
            "/.well-known/openid-configuration": lambda: self.say(self.op.discovery()),
            "/keys": lambda: self.say({"keys": [key.jwk for key in self.op.keys]}),
            "/authorize": self.authorize,
            "/token": self.token,
            "/userinfo": self.tell,
        }
        instead = self.op.instead.get(url.path)
        if instead is not None:
            instead(self)
        elif url.path in doors:
            doors[url.path]()
        else:
            self.say({"error": "not_found"}, 404)

    def say(self, document: Any, status: int = 200) -> None:
        self.write(json.dumps(document).encode(), status, "application/json")

    def write(self, body: bytes, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def go(self, place: str) -> None:
        self.send_response(302)
        self.send_header("Location", place)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def authorize(self) -> None:
        asked = self.query
        fine = (
            asked.get("response_type") == "code"
            and asked.get("client_id") == CLIENT
            and asked.get("redirect_uri", "").endswith("/login/oidc/answer/")
            and "openid" in asked.get("scope", "").split()
            and asked.get("code_challenge_method") == "S256"
            and len(asked.get("code_challenge", "")) == 43
            and len(asked.get("state", "")) >= 32
            and len(asked.get("nonce", "")) >= 32
        )
        if not fine:
            self.say({"error": "invalid_request", "asked": asked}, 400)
            return
        if self.op.asks and "sub" not in self.form:
            self.write(_page(self.op, self.path).encode(), 200, "text/html; charset=utf-8")
            return
        state = asked["state"]
        if self.form.get("sub") == "":
            self.go(f"{asked['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': state})}")
            return
        code = secrets.token_urlsafe(16)
        self.op.codes[code] = {**asked, "sub": self.form.get("sub", self.op.who)}
        self.go(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': state, 'iss': self.op.issuer})}")

    def token(self) -> None:
        given = self.op.codes.pop(self.form.get("code", ""), None)
        name, _colon, password = self._basic().partition(":")
        if (unquote_plus(name), unquote_plus(password)) != (CLIENT, SECRET) and (
            self.form.get("client_id"),
            self.form.get("client_secret"),
        ) != (CLIENT, SECRET):
            self.say({"error": "invalid_client"}, 401)
            return
        challenge = b64(hashlib.sha256(self.form.get("code_verifier", "").encode()).digest())
        if given is None or challenge != given["code_challenge"] or self.form["redirect_uri"] != given["redirect_uri"]:
            self.say({"error": "invalid_grant"}, 400)
            return
        access = secrets.token_urlsafe(16)
        self.op.access[access] = given["sub"]
        self.say({"token_type": "Bearer", "access_token": access, "id_token": self.op.id_token(given)})

    def _basic(self) -> str:
        kind, _space, value = self.headers.get("Authorization", "").partition(" ")
        return base64.b64decode(value).decode() if kind == "Basic" else ""

    def tell(self) -> None:
        sub = self.op.access.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
        if sub is None:
            self.say({"error": "invalid_token"}, 401)
            return
        self.say({"sub": sub, **self.op.people[sub], **self.op.userinfo})


def _handler(op: Op) -> type[_Request]:
    return type("Handler", (_Request,), {"op": op})


def _page(op: Op, place: str) -> str:
    """Where people say who they are; the address keeps what the portal asked for."""
    people = "".join(
        f'<button name="sub" value="{html.escape(sub)}">{html.escape(claims["name"])}</button>'
        for sub, claims in op.people.items()
    )
    return (
        "<!doctype html><title>The provider</title><h1>Who are you?</h1>"
        f'<form method="post" action="{html.escape(place)}">{people}<button name="sub" value="">Cancel</button></form>'
    )
