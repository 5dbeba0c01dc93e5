"""Where the OpenID Connect provider is, from the environment; a wrong value stops the start with a sentence that names it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from accounts.openid import Provider
from portal.settings.env import env_int, env_secret, env_str, is_loopback


def read_openid() -> Provider | None:
    """OIDC_ISSUER and its companions; None without one, and nobody is asked for the extra."""
    issuer = env_str("OIDC_ISSUER")
    if not issuer:
        return None
    if importlib.util.find_spec("mozilla_django_oidc") is None or importlib.util.find_spec("jwt") is None:
        raise ImproperlyConfigured(
            "OIDC_ISSUER is set, but the part that speaks OpenID Connect is not installed: "
            "pip install -r requirements/oidc.txt."
        )
    _check_issuer(issuer)
    for name in ("OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"):
        if not env_secret(name):
            raise ImproperlyConfigured(f"OIDC_ISSUER is set without {name}, which the provider gives to each client.")
    ca_file = env_str("OIDC_CA_FILE")
    if ca_file and not Path(ca_file).is_file():
        raise ImproperlyConfigured(f"OIDC_CA_FILE: there is no file {ca_file}.")
    return Provider(
        issuer=issuer,
        client_id=env_secret("OIDC_CLIENT_ID"),
        client_secret=env_secret("OIDC_CLIENT_SECRET"),
        button=env_str("OIDC_BUTTON"),
        username_claim=env_str("OIDC_USERNAME_CLAIM", "preferred_username"),
        groups_claim=env_str("OIDC_GROUPS_CLAIM"),
        ca_file=ca_file,
        patience=env_int("OIDC_TIMEOUT", 4, minimum=1, maximum=30),
    )


def _check_issuer(issuer: str) -> None:
    """As the provider itself writes it, a slash at its end included: it is compared with what its tokens say."""
    try:
        parts = urlsplit(issuer)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        parts, host = urlsplit(""), ""
    is_url = parts.scheme in ("https", "http") and host and "@" not in parts.netloc and issuer.isprintable()
    if not is_url or "?" in issuer or "#" in issuer or " " in issuer:
        raise ImproperlyConfigured(
            f"OIDC_ISSUER must be a URL such as https://login.example.org/realms/lab, without ? and #, not {issuer!r}."
        )
    if parts.scheme != "https" and not is_loopback(host):
        raise ImproperlyConfigured(
            "OIDC_ISSUER must begin with https://: http:// is only for a provider on this machine, for anybody between could "
            "say who signs in."
        )
