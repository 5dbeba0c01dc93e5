"""Namespaces and what belongs into them, kept as they shall be by an account of its own (KUBERNETES 3.2)."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.cluster.kubernetes.client import Api, NotThere
from jobs.cluster.manifests import INSTANCE_LABEL
from jobs.cluster.port import Manifest
from jobs.cluster.tenancy import MANAGED_BY, SUBJECT
from jobs.exceptions import ClusterForbids, ClusterRefuses, ObjectDiffers

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
        """A sentence for each thing that was not as it shall be; applied and pruned where it was not."""
        wanted, *inside = objects
        name = wanted["metadata"]["name"]
        drift = self._namespace(wanted)
        for kind in PATHS:
            found = {one["metadata"]["name"]: one for one in self.api.list(LISTED[kind].format(name))[0]}
            ours = {one["metadata"]["name"]: one for one in inside if one["kind"] == kind}
            for one in ours.values():
                drift += self._apply(found.get(one["metadata"]["name"]), one)
            for stale in (found.keys() - ours.keys()) if kind != DATA else ():
                if _is_ours(found[stale], wanted):
                    self.api.delete(f"{PATHS[kind].format(name)}{stale}", uid=found[stale]["metadata"]["uid"])
                    drift.append(f"{kind} {stale} was removed: nothing asks for it any more.")
        return drift

    def _namespace(self, wanted: Manifest) -> list[str]:
        name = wanted["metadata"]["name"]
        path = f"/api/v1/namespaces/{name}"
        try:
            found = self.api.get(path)
        except NotThere:
            self.api.apply(path, wanted, manager=MANAGER)
            return [f"Namespace {name} was made."]
        theirs = (found["metadata"].get("annotations") or {}).get(SUBJECT)
        if not _is_ours(found, wanted) or theirs != wanted["metadata"]["annotations"][SUBJECT]:
            raise ObjectDiffers(f"The cluster has a namespace {name} that is not this portal's; it is left alone.")
        return self._apply(found, wanted)

    def _apply(self, found: Manifest | None, wanted: Manifest) -> list[str]:
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        if found is not None and (kind == DATA or _holds(found, wanted)):
            return []
        path = PATHS.get(kind, "/api/v1/namespaces/").format(wanted["metadata"].get("namespace")) + name
        if found is not None and found.get("roleRef", wanted.get("roleRef")) != wanted.get("roleRef"):
            self.api.delete(path, uid=found["metadata"]["uid"])  # what a binding refers to cannot be changed
        try:
            if kind == DATA:
                self.api.create(path.rpartition("/")[0], wanted)
            else:
                self.api.apply(path, wanted, manager=MANAGER)
        except (ClusterForbids, ClusterRefuses) as error:
            return [f"{kind} {name} could not be written: {error}"]
        return [f"{kind} {name} was made." if found is None else f"{kind} {name} was put right."]


def _is_ours(found: Manifest, namespace: Manifest) -> bool:
    labels, ours = found["metadata"].get("labels") or {}, namespace["metadata"]["labels"]
    return all(labels.get(key) == ours[key] for key in (MANAGED_BY, INSTANCE_LABEL))


def _holds(found: object, wanted: object) -> bool:
    """Whether all that is wanted is there; what the server adds by itself is no difference."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        # the items of a list do not say their kind
        return all(_holds(found.get(key), value) for key, value in wanted.items() if key not in ("kind", "apiVersion"))
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_holds, found, wanted))
    return wanted == found or (not wanted and not found)
