"""What an admin says of a cluster in TRAINHALL_CLUSTERS. Light: every start reads it, also where no cluster is Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jobs.cluster.port import Person

# labels of nodes, from close to far: pods of one job are kept close by the first that can be had
TOPOLOGY = ("topology.trainhall.io/rack", "topology.trainhall.io/block")
RESERVED = ("system:", "trainhall:")  # names that Kubernetes and the portal give themselves


@dataclass(frozen=True, slots=True)
class Account:
    """Where the portal finds who it is; without a kubeconfig it is the account of its own pod."""

    kubeconfig: str = ""
    context: str = ""


@dataclass(frozen=True, slots=True)
class Users:
    """How RBAC calls people: prefixes of the cluster's authenticator, so that kubectl and the portal mean the same subject."""

    user_prefix: str = "ldap:"
    group_prefix: str = "ldap:"

    def name(self, person: Person) -> str:
        # someone whom the directory does not know must not be taken for the one it may know by that name tomorrow
        named = f"{self.user_prefix}{person.username}"
        if person.source == "ldap" and not named.startswith(RESERVED):
            return named
        return f"trainhall:{person.source}:{person.username}"

    def groups(self, person: Person) -> list[str]:
        return self.group_names(person.groups)

    def group_names(self, groups: Iterable[str]) -> list[str]:
        """As RBAC calls them; where there is no prefix, a directory's group may be called like one of the cluster's own."""
        named = (f"{self.group_prefix}{group}" for group in groups)
        return [name for name in named if not name.startswith(RESERVED)]


@dataclass(frozen=True, slots=True)
class KubernetesSetting:
    """One cluster."""

    name: str
    portal: Account = field(default_factory=Account)
    watcher: Account = field(default_factory=Account)
    sync: Account = field(default_factory=Account)
    users: Users = field(default_factory=Users)
    runs: str = ""  # where the portal sees the claim `runs` of a namespace, such as /srv/{namespace}/runs; "": nowhere
    runs_class: str = ""  # StorageClass of the claim `runs` that each namespace gets; "": an admin makes the claims
    internal_url: str = ""  # of the portal, as pods of this cluster reach it; "": TRAINHALL_INTERNAL_URL
    helper_image: str = ""  # with python3 and the SDK, for setup and agent of every pod; "": TRAINHALL_HELPER_IMAGE
    storage: tuple[str, ...] = ()  # CIDRs of NFS and S3 servers, which pods may reach
    topology: tuple[str, ...] = TOPOLOGY
    # not hashed, as a dict cannot be: clusters are remembered by their setting
    tolerations: tuple[dict[str, Any], ...] = field(
        default=(), hash=False
    )  # of every pod of ours: for nodes that are kept from others
    namespaces: tuple[str, ...] = ()  # slugs of those whose jobs go here unless they say otherwise
