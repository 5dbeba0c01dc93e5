"""Namespaces and what belongs into them, kept as they shall be by an account of its own (KUBERNETES 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.cluster.kubernetes.client import Api, Changed, NotThere
from jobs.cluster.manifests import INSTANCE_LABEL
from jobs.cluster.port import Manifest
from jobs.cluster.tenancy import MANAGED_BY, SUBJECT
from jobs.exceptions import ClusterForbids, ClusterRefuses, NotInLine, ObjectDiffers

MANAGER = "trainhall-sync"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts/",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas/",
    "LimitRange": "/api/v1/namespaces/{}/limitranges/",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings/",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies/",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims/",
}
DATA = "PersistentVolumeClaim"  # made where it is missing, and never changed or removed: it holds what people computed
LISTED = {kind: path.removesuffix("/") for kind, path in PATHS.items()}


class Namespaces:
    def __init__(self, api: Api) -> None:
        self.api = api

    def bring_in_line(self, objects: Sequence[Manifest]) -> list[str]:
        """A sentence for each thing that was not as it shall be; applied and pruned where it was not.

        Everything is tried before NotInLine is raised for what could not be written: nothing may start in a namespace
        that lacks one of its walls.
        """
        wanted, *inside = objects
        name = wanted["metadata"]["name"]
        failed: list[str] = []
        drift = self._namespace(wanted, failed)
        for kind in PATHS:
            found = {one["metadata"]["name"]: one for one in self.api.list(LISTED[kind].format(name))[0]}
            ours = {one["metadata"]["name"]: one for one in inside if one["kind"] == kind}
            for one in ours.values():
                drift += self._bring(found.get(one["metadata"]["name"]), one, failed)
            for other in (found.keys() - ours.keys()) if kind != DATA else ():
                if _is_ours(found[other], wanted):
                    self.api.delete(f"{PATHS[kind].format(name)}{other}", uid=found[other]["metadata"]["uid"])
                    drift.append(f"{kind} {other} was removed: nothing asks for it any more.")
                elif kind == "RoleBinding":
                    drift.append(_foreign(found[other]))
        if failed:
            raise NotInLine(" ".join(failed))
        return drift

    def _namespace(self, wanted: Manifest, failed: list[str]) -> list[str]:
        name = wanted["metadata"]["name"]
        path = f"/api/v1/namespaces/{name}"
        try:
            found = self.api.get(path)
        except NotThere:
            self.api.apply(path, wanted, manager=MANAGER)
            return [f"Namespace {name} was made."]
        theirs = (found["metadata"].get("annotations") or {}).get(SUBJECT)
        if not _is_ours(found, wanted) or theirs != wanted["metadata"]["annotations"][SUBJECT]:
            raise ObjectDiffers(
                f"The cluster has a namespace {name} that does not say it is this portal's; it is left alone."
            )
        if found["metadata"].get("deletionTimestamp"):
            raise NotInLine(f"Somebody deletes the namespace {name}; it is made anew once it is gone.")
        return self._bring(found, wanted, failed)

    def _bring(self, found: Manifest | None, wanted: Manifest, failed: list[str]) -> list[str]:
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        if found is not None and (kind == DATA or _holds(found, wanted)):
            return []
        path = PATHS.get(kind, "/api/v1/namespaces/").format(wanted["metadata"].get("namespace")) + name
        try:
            self._write(path, found, wanted)
        except (ClusterForbids, ClusterRefuses, Changed) as error:
            failed.append(f"{kind} {name} could not be written: {error}")
            return []
        return [f"{kind} {name} was made." if found is None else f"{kind} {name} was put right."]

    def _write(self, path: str, found: Manifest | None, wanted: Manifest) -> None:
        if wanted["kind"] == DATA:
            self.api.create(path.rpartition("/")[0], wanted)
            return
        if found is not None and found.get("roleRef", wanted.get("roleRef")) != wanted.get("roleRef"):
            self.api.delete(path, uid=found["metadata"]["uid"])  # what a binding refers to cannot be changed
        now = self.api.apply(path, wanted, manager=MANAGER)
        if not _holds(now, wanted):
            # what another hand has added beside our fields stays its own, whatever we apply
            self.api.patch(path, [{"op": "replace", "path": "/spec", "value": wanted["spec"]}])


def _foreign(binding: Manifest) -> str:
    """Rights that did not come through the portal, which it may not take away: an operator of the cluster gave them."""
    metadata = binding["metadata"]
    people = ", ".join(str(one.get("name")) for one in binding.get("subjects") or ()) or "nobody"
    return (
        f"RoleBinding {metadata['name']} is not the portal's and gives {people} the role {binding['roleRef']['name']}: "
        f"it is left alone. kubectl -n {metadata['namespace']} delete rolebinding {metadata['name']} takes it away."
    )


def _is_ours(found: Manifest, namespace: Manifest) -> bool:
    labels, ours = found["metadata"].get("labels") or {}, namespace["metadata"]["labels"]
    return all(labels.get(key) == ours[key] for key in (MANAGED_BY, INSTANCE_LABEL))


def _holds(found: Manifest, wanted: Manifest) -> bool:
    """Whether all that is wanted is there, and in its `spec` nothing else: a limit that somebody adds is one that bites."""
    if not _is_in(found, {key: value for key, value in wanted.items() if key != "spec"}):
        return False
    return "spec" not in wanted or _equal(found.get("spec"), wanted["spec"])


def _is_in(found: object, wanted: object) -> bool:
    if isinstance(wanted, dict) and isinstance(found, dict):
        # the items of a list do not say their kind
        return all(_is_in(found.get(key), value) for key, value in wanted.items() if key not in ("kind", "apiVersion"))
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_is_in, found, wanted))
    return wanted == found or (not wanted and not found)


def _equal(found: object, wanted: object) -> bool:
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(_equal(found.get(key), wanted.get(key)) for key in found.keys() | wanted.keys())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_equal, found, wanted))
    # {} and [] are what stands in a list of selectors and rules: never the same as nothing there
    return wanted == found
