"""A directory for demos and tests: Debian's slapd on loopback, with people from an LDIF and nothing kept."""

from __future__ import annotations

import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from portal.embedded import process
from portal.embedded.home import CannotStart

SUFFIX = "dc=example,dc=org"
ADMIN_DN = f"cn=admin,{SUFFIX}"
READER_DN = f"cn=trainhall,ou=services,{SUFFIX}"  # the portal's own account, which may read and nothing else
PATIENCE = 15.0
SCHEMAS = ("core", "cosine", "nis", "inetorgperson")
# What entries of Active Directory have; Debian's msuser.schema gives these attributes no way to be searched for.
ACTIVE_DIRECTORY = """
attributetype ( 1.2.840.113556.1.4.221 NAME 'sAMAccountName'
  EQUALITY caseIgnoreMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.2 NAME 'objectGUID'
  EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.8 NAME 'userAccountControl'
  EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.159 NAME 'accountExpires'
  EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
objectclass ( 1.2.840.113556.1.5.9 NAME 'user' SUP inetOrgPerson STRUCTURAL
  MAY ( sAMAccountName $ objectGUID $ userAccountControl $ accountExpires ) )
objectclass ( 1.2.840.113556.1.5.8 NAME 'group' SUP top STRUCTURAL MUST cn
  MAY ( sAMAccountName $ objectGUID $ member $ description ) )
"""
SCHEMA_FOLDER = Path("/etc/ldap/schema")
MODULES = Path("/usr/lib/ldap")
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


def is_installed() -> bool:
    return find() is not None and SCHEMA_FOLDER.is_dir()


def find() -> str | None:
    return shutil.which("slapd", path=ENVIRONMENT["PATH"])


class Slapd:
    """One directory in a folder. `tls` are the paths of the certificate, its key and the CA; without it, plain only."""

    name = "slapd"
    stop_signal = signal.SIGINT

    def __init__(
        self, folder: Path, *, port: int, tls: tuple[Path, Path, Path] | None = None, tls_port: int = 0
    ) -> None:
        self.folder = folder
        self.port = port
        self.tls = tls
        self.tls_port = tls_port
        self.log = folder / "slapd.log"
        self.admin_password = secrets.token_urlsafe(18)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ldap://127.0.0.1:{self.port}"

    @property
    def tls_url(self) -> str:
        return f"ldaps://127.0.0.1:{self.tls_port}"

    def prepare(self, entries: Iterable[str]) -> None:
        """Write its configuration and load these entries, each in the words of LDIF. What was there before is gone."""
        binary = find()
        if binary is None or not is_installed():
            raise CannotStart("The demo directory needs slapd: apt-get install slapd, or leave LDAP=demo away.")
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        (self.folder / "data").mkdir(parents=True)
        self.folder.chmod(0o700)
        config, ldif = self.folder / "slapd.conf", self.folder / "people.ldif"
        config.touch(mode=0o600)
        config.write_text(self._config(), encoding="utf-8")
        ldif.write_text("\n\n".join(entries) + "\n", encoding="utf-8")
        load = [binary, "-T", "add", "-q", "-f", str(config), "-l", str(ldif)]
        told = subprocess.run(load, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        if told.returncode:
            raise CannotStart(f"slapd does not take the people: {told.stderr.strip()[-2000:]}")

    def start(self, *, keep: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        binary = find()
        if binary is None:
            raise CannotStart("slapd is not installed.")
        addresses = self.url if self.tls is None else f"{self.url}/ {self.tls_url}/"
        argv = [binary, "-d", "0", "-f", str(self.folder / "slapd.conf"), "-h", addresses]
        self.process = process.spawn(
            argv, log=self.log, env=ENVIRONMENT, cwd=Path("/"), death_signal=self.stop_signal, keep=keep
        )
        return self.process

    def wait_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError as error:
                if self.process is not None and self.process.poll() is not None:
                    raise CannotStart(f"slapd did not start: {process.last_words(self.log)}") from error
                if time.monotonic() > deadline:
                    raise CannotStart("slapd does not answer.") from error
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(self.stop_signal)
            process.wait(self.process, patience=5)
            process.end(self.process)

    def environment(self, password: str) -> Mapping[str, str]:
        """What the portal is told to use it, with the password of its reading account."""
        return {
            "LDAP_URL": self.url,
            "LDAP_TLS": "off",
            "LDAP_BIND_DN": READER_DN,
            "LDAP_BIND_PASSWORD": password,
            "LDAP_USER_SEARCH": f"ou=people,{SUFFIX}?uid?sub?(objectClass=inetOrgPerson)",
            "LDAP_GROUP_SEARCH": f"ou=groups,{SUFFIX}?cn?sub?(|(objectClass=groupOfNames)(objectClass=posixGroup))",
        }

    def _config(self) -> str:
        lines = [f"include {SCHEMA_FOLDER}/{name}.schema" for name in SCHEMAS]
        lines += [
            ACTIVE_DIRECTORY,
            f"pidfile {self.folder}/slapd.pid",
            f"modulepath {MODULES}",
            "moduleload back_mdb",
            "moduleload back_monitor",
            "sizelimit size.soft=500 size.hard=500 size.prtotal=unlimited",  # as large directories do: who asks for all pages
        ]
        if self.tls is not None:
            certificate, key, authority = self.tls
            lines += [
                f"TLSCertificateFile {certificate}",
                f"TLSCertificateKeyFile {key}",
                f"TLSCACertificateFile {authority}",
            ]
        lines += [
            "database monitor",
            f'access to * by dn.exact="{READER_DN}" read',
            "database mdb",
            f'suffix "{SUFFIX}"',
            f'rootdn "{ADMIN_DN}"',
            f"rootpw {self.admin_password}",
            f"directory {self.folder}/data",
            "maxsize 268435456",
            "dbnosync",
            "index objectClass,uid,cn,member,uniqueMember,memberUid,gidNumber eq",
            "access to attrs=userPassword by anonymous auth by * none",
            f'access to * by dn.exact="{READER_DN}" read by anonymous auth by * none',
        ]
        return "\n".join(lines) + "\n"
