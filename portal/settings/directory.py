"""Where the directory is, from the environment; a wrong value stops the start with a sentence that names it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from accounts.directory import Directory, Search, read_search
from portal.settings.env import env_int, env_secret, env_str, is_loopback


def read_directory() -> Directory | None:
    """LDAP_URL and its companions; None without one, and nobody is asked for the extra."""
    url = env_str("LDAP_URL")
    if not url:
        return None
    if importlib.util.find_spec("django_auth_ldap") is None or importlib.util.find_spec("ldap") is None:
        raise ImproperlyConfigured(
            "LDAP_URL is set, but the part that speaks LDAP is not installed: pip install -r requirements/ldap.txt "
            "(it is compiled, with gcc, python3-dev, libldap-dev and libsasl2-dev)."
        )
    ca_file = env_str("LDAP_CA_FILE")
    if ca_file and not Path(ca_file).is_file():
        raise ImproperlyConfigured(f"LDAP_CA_FILE: there is no file {ca_file}.")
    people = _search("LDAP_USER_SEARCH", "uid")
    if people is None:
        raise ImproperlyConfigured(
            "LDAP_URL is set, so LDAP_USER_SEARCH must say where people are, such as "
            "ou=people,dc=example,dc=org?uid?sub?(objectClass=person)."
        )
    return Directory(
        url=url,
        bind_dn=env_str("LDAP_BIND_DN"),
        bind_password=_password(),
        people=people,
        groups=_search("LDAP_GROUP_SEARCH", "cn"),
        ca_file=ca_file,
        tls=_tls(url),
        patience=env_int("LDAP_TIMEOUT", 2, minimum=1, maximum=30),
    )


def _search(name: str, attribute: str) -> Search | None:
    text = env_str(name)
    if not text:
        return None
    try:
        return read_search(text, attribute=attribute)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} cannot be read: {error}.") from error


def _password() -> str:
    password = env_secret("LDAP_BIND_PASSWORD")
    if env_str("LDAP_BIND_DN") and not password:
        raise ImproperlyConfigured(
            "LDAP_BIND_DN is set without LDAP_BIND_PASSWORD (or LDAP_BIND_PASSWORD_FILE): the directory would take that "
            "for an anonymous bind."
        )
    return password


def _tls(url: str) -> str:
    schemes = {urlsplit(one).scheme for one in url.split()}
    if schemes == {"ldaps"}:
        return "ldaps"
    if schemes != {"ldap"}:
        raise ImproperlyConfigured(f"LDAP_URL must begin with ldap:// or ldaps://, not {url!r}.")
    wanted = env_str("LDAP_TLS", "start")
    if wanted not in ("start", "off"):
        raise ImproperlyConfigured(f"LDAP_TLS must be start or off, not {wanted!r}.")
    if wanted == "off" and not all(is_loopback(urlsplit(one).hostname or "") for one in url.split()):
        raise ImproperlyConfigured(
            "LDAP_TLS=off is only for a directory on this machine: passwords would cross the network as they are. "
            "Use StartTLS (the default) or ldaps://."
        )
    return wanted
