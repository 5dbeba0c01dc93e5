"""Tokens of attempts, signed URLs of code, and secrets at rest: each on a key of its own, derived from the site's key.

An attempt's token is computed, never stored: a launch that crashed can be repeated and gives the same token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

TOKEN_PREFIX = "ta_"  # noqa: S105 - the mark by which scanners know a token, not a token
CODE_URL_LIFETIME = 24 * 3600  # seconds; the launch makes a new one for each attempt


@cache
def _derive(master: str, label: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"trainhall/" + label).derive(master.encode())


def _keys(label: bytes) -> list[bytes]:
    """The present key first, then those that still verify."""
    return [_derive(master, label) for master in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]


def _sign(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _verifies(label: bytes, text: str, signature: str) -> bool:
    return any(hmac.compare_digest(_sign(key, text).encode(), signature.encode()) for key in _keys(label))


def attempt_token(job_id: str, attempt: int) -> str:
    """`ta_<job>.<attempt>.<256-bit HMAC>`: may write the metrics of this one attempt and nothing else."""
    name = f"{job_id}.{attempt}"
    return f"{TOKEN_PREFIX}{name}.{_sign(_keys(b'attempt-token')[0], name)}"


def verify_attempt_token(token: str) -> tuple[str, int] | None:
    """The job id and attempt number a token was made for, or None. Whether that attempt still lives is not asked."""
    name, _dot, signature = token.removeprefix(TOKEN_PREFIX).rpartition(".")
    job_id, _dot, number = name.partition(".")
    if not (token.startswith(TOKEN_PREFIX) and token.isascii() and number.isdecimal() and len(number) < 10):
        return None
    if not _verifies(b"attempt-token", name, signature):
        return None
    return job_id, int(number)


def ssh_key_pair(job_id: str, attempt: int) -> tuple[str, str]:
    """Private and public key of an attempt whose pods reach each other by ssh, in OpenSSH's form; computed, as the token is."""
    seed = hmac.new(_keys(b"attempt-ssh")[0], f"{job_id}.{attempt}".encode(), hashlib.sha256).digest()
    key = Ed25519PrivateKey.from_private_bytes(seed)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode() + "\n"


def sign_code(sha256: str, job_id: str, attempt: int, *, now: float | None = None) -> str:
    """The query string of a read-only URL for one archive, one attempt, one day."""
    expires = int(now if now is not None else time.time()) + CODE_URL_LIFETIME
    signature = _sign(_keys(b"code-url")[0], f"{sha256}.{job_id}.{attempt}.{expires}")
    return f"job={job_id}&attempt={attempt}&expires={expires}&signature={signature}"


def verify_code(sha256: str, job_id: str, attempt: str, expires: str, signature: str) -> bool:
    if not (expires.isdecimal() and len(expires) < 12 and int(expires) > time.time()):
        return False
    return _verifies(b"code-url", f"{sha256}.{job_id}.{attempt}.{expires}", signature)


def _fernet() -> MultiFernet:
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in _keys(b"secrets")])


def encrypt(value: str) -> bytes:
    return _fernet().encrypt(value.encode())


def decrypt(ciphertext: bytes) -> str:
    """Raise InvalidToken if no present key fits."""
    return _fernet().decrypt(bytes(ciphertext)).decode()


__all__ = [
    "InvalidToken",
    "attempt_token",
    "decrypt",
    "encrypt",
    "sign_code",
    "ssh_key_pair",
    "verify_attempt_token",
    "verify_code",
]
