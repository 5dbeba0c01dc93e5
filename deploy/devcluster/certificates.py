"""The cluster's own authority: a key pair per server and account, and the kubeconfig files made from them."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from deploy.devcluster.settings import Settings

# a cluster older than this is made anew with `down` and `up`
DAYS = 365
ADMINS = "system:masters"
# common name, organisation, names and addresses it serves under
ACCOUNTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "admin": ("admin", ADMINS, ()),
    "controllers": ("system:kube-controller-manager", "", ()),
    "scheduler": ("system:kube-scheduler", "", ()),
    "proxy": ("system:kube-proxy", "", ()),
    # of the cluster's own parts: each has its name in the audit log
    "dns": ("devcluster:dns", ADMINS, ()),
    "kwok": ("devcluster:kwok", ADMINS, ()),
    "policies": ("devcluster:policies", ADMINS, ()),
    "to-kubelet": ("devcluster:apiserver", ADMINS, ()),
    "kubelet": (f"system:node:{Settings.node}", "system:nodes", (Settings.node, "127.0.0.1")),
    "apiserver": (
        "kube-apiserver",
        "",
        ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "10.96.0.1"),
    ),
}
WITH_KUBECONFIG = ("controllers", "scheduler", "proxy", "dns", "kwok", "policies", "kubelet")


def issue(settings: Settings) -> None:
    """Make what is missing. What exists is kept: running servers hold it, and people's shells point to the kubeconfig."""
    folder = settings.folder / "pki"
    folder.mkdir(mode=0o700, exist_ok=True)
    if not (folder / "done").exists():
        authority, key = _authority(folder)
        for account in ACCOUNTS:
            _sign(folder, account, authority=authority, authority_key=key)
        signing = ec.generate_private_key(ec.SECP256R1())
        _write_key(folder / "tokens.key", signing)
        _write(folder / "tokens.pub", _public(signing))
        (folder / "done").touch()
    for account in WITH_KUBECONFIG:
        _kubeconfig(settings, account, folder / f"{account}.conf")
    _kubeconfig(settings, "admin", settings.kubeconfig)


def _authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "trainhall devcluster")])
    certificate = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    _write(folder / "ca.crt", certificate.public_bytes(serialization.Encoding.PEM))
    return certificate, key


def _sign(
    folder: Path, account: str, *, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey
) -> None:
    common, organisation, served = ACCOUNTS[account]
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organisation:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    builder = _builder(x509.Name(attributes), authority.subject, key).add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
    )
    if served:
        names: list[x509.GeneralName] = [
            x509.IPAddress(ipaddress.ip_address(name)) if name[0].isdigit() else x509.DNSName(name) for name in served
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    _write_key(folder / f"{account}.key", key)
    _write(
        folder / f"{account}.crt",
        builder.sign(authority_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
    )


def _kubeconfig(settings: Settings, account: str, path: Path) -> None:
    """A file that holds its keys, so that it can be copied."""
    context = "trainhall-dev"

    def text(name: str) -> str:
        return base64.b64encode((settings.folder / "pki" / name).read_bytes()).decode()

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [
            {"name": context, "cluster": {"server": settings.server, "certificate-authority-data": text("ca.crt")}}
        ],
        "users": [
            {
                "name": account,
                "user": {
                    "client-certificate-data": text(f"{account}.crt"),
                    "client-key-data": text(f"{account}.key"),
                },
            }
        ],
        "contexts": [{"name": context, "context": {"cluster": context, "user": account}}],
    }
    _write(path, json.dumps(config, indent=1).encode(), mode=0o600)


def _public(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    # kube-controller-manager reads a token key only in the older of the two forms
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    _write(path, text, mode=0o600)


def _write(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(content)
