"""An attempt's objects on Kubernetes: Jobs made and ended as the person, the rest by the portal's own account (DESIGN 11.1)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from jobs import faults
from jobs.cluster.kubernetes.client import Api, Changed, NotThere, Taken
from jobs.cluster.manifests import JOB_LABEL, is_same
from jobs.cluster.port import Manifest, ObjectRef, Objects, Person
from jobs.exceptions import ClusterUnavailable, ObjectDiffers, ObjectGone

SECONDS_OF_A_KILL = 1  # 0 would free the machine on paper while its containers run on
LEADER = "trainhall.io/leader"  # on every Job of an attempt but the leader itself
logger = logging.getLogger(__name__)


def jobs_path(namespace: str, name: str = "") -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs" + (f"/{name}" if name else "")


def core_path(namespace: str, kind: str, name: str = "") -> str:
    """`kind` in the plural, such as pods or services."""
    return f"/api/v1/namespaces/{namespace}/{kind}" + (f"/{name}" if name else "")


class Workloads:
    """Create, start and end. Every call may be repeated, whatever a crash left behind."""

    def __init__(self, api: Api) -> None:
        self.api = api

    # Create

    def create(self, objects: Objects, person: Person | None) -> str:
        leader = self._create_job(objects.leader, person)
        uid = str(leader["metadata"]["uid"])
        faults.point("kubernetes.create.after_leader")
        if not leader["spec"].get("suspend"):
            return uid  # released by one that crashed before it could say so, which it does only once all is there
        owner = _owner(leader)
        for job in objects.jobs[1:]:
            self._create_job(_owned(job, owner), person)
            faults.point("kubernetes.create.after_role")
        namespace = objects.leader["metadata"]["namespace"]
        for kind, child in (("services", objects.service), ("configmaps", objects.config_map)):
            if child is not None:
                self._create_child(core_path(namespace, kind), _owned(child, owner))
                faults.point("kubernetes.create.after_child")
        if objects.secret is not None:
            self._create_secret(core_path(namespace, "secrets"), _owned(objects.secret, owner))
            faults.point("kubernetes.create.after_secret")
        return uid

    def _create_job(self, job: Manifest, person: Person | None) -> Manifest:
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        try:
            return self.api.create(jobs_path(namespace), job, person=person)
        except Taken:
            found = self.find(ObjectRef(namespace, name))
        if found is None:
            raise ClusterUnavailable(f"{name} was there and is gone again.")
        if not is_same(found, job):
            raise ObjectDiffers(f"There is another Job named {name}.")
        if found["metadata"].get("deletionTimestamp"):
            raise ObjectGone(f"The Job {name} is being deleted.")
        return found

    def _create_child(self, path: str, child: Manifest) -> None:
        name = child["metadata"]["name"]
        try:
            self.api.create(path, child)
        except Taken:
            found = self.api.get(f"{path}/{name}")
            if not _is_owned_by(found, child["metadata"]["ownerReferences"]):
                raise ObjectDiffers(f"There is another {child['kind']} named {name}.") from None

    def _create_secret(self, path: str, secret: Manifest) -> None:
        """The portal's account may write Secrets and not read them, so one that is there is made anew; nothing runs yet."""
        try:
            self.api.create(path, secret)
        except Taken:
            self.api.delete(f"{path}/{secret['metadata']['name']}")
            try:
                self.api.create(path, secret)
            except Taken as error:
                raise ClusterUnavailable("Its Secret is being deleted.") from error

    # Start

    def release(self, ref: ObjectRef, *, job_id: str = "", time_limit: int = 0) -> None:
        """The leader last: whoever sees it run knows that its ranks may. `job_id` and `time_limit`: see the port."""
        leader = self.find(ref)
        if leader is None or leader["metadata"].get("deletionTimestamp"):
            raise ObjectGone(f"There is no Job {ref.name} to release.")
        adopted = _adopting(leader, job_id, time_limit) if job_id else []
        for job in [*self._others(leader), leader]:
            self._release(job, adopted)
            faults.point("kubernetes.release.after_one")

    def _release(self, job: Manifest, more: list[Manifest]) -> None:
        if not job["spec"].get("suspend") or _has_ended(job):
            return
        try:
            self._set_suspend(job, value=False, more=more)
        except Changed as error:
            now = self.find(_ref(job))
            if now is None or now["metadata"]["uid"] != job["metadata"]["uid"]:
                raise ObjectGone(f"The Job {job['metadata']['name']} is gone.") from error
            if now["spec"].get("suspend"):
                raise ObjectDiffers(f"The Job {job['metadata']['name']} was changed: {error}") from error

    def _set_suspend(self, job: Manifest, *, value: bool, more: Sequence[Manifest] = ()) -> None:
        """A compare-and-set; an unrelated change of the status does not spoil it, as a resource version would."""
        metadata = job["metadata"]
        self.api.patch(
            jobs_path(metadata["namespace"], metadata["name"]),
            [
                {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
                {"op": "test", "path": "/spec/suspend", "value": not value},
                {"op": "test", "path": "/spec/parallelism", "value": job["spec"]["parallelism"]},
                *more,
                {"op": "replace", "path": "/spec/suspend", "value": value},
            ],
        )

    # End

    def suspend(self, ref: ObjectRef) -> None:
        """SIGTERM with the Job's own grace, while Service and Secret stay: ranks that save still need each other's names."""
        leader = self.find(ref)
        if leader is None:
            return
        for job in [leader, *self._others(leader)]:
            if job["spec"].get("suspend") or _has_ended(job):
                continue
            try:
                self._set_suspend(job, value=True)
            except Changed as error:  # it ended, or somebody was quicker: the next look tells
                logger.info("%s is not suspended: %s", job["metadata"]["name"], error)
            faults.point("kubernetes.suspend.after_one")

    def kill(self, ref: ObjectRef, person: Person | None) -> None:
        """Every pod first, with its own short grace: once a pod is ending, its grace cannot be shortened any more."""
        leader = self.find(ref)
        if leader is None:
            return
        everything = [leader, *self._others(leader)]
        for job in everything:
            for pod in self._pods_of(job, person):
                metadata = pod["metadata"]
                try:
                    self.api.delete(
                        core_path(metadata["namespace"], "pods", metadata["name"]),
                        uid=metadata["uid"],
                        grace=SECONDS_OF_A_KILL,
                        person=person,
                    )
                except (NotThere, Taken):
                    continue
                faults.point("kubernetes.kill.after_one")
        self.suspend(ref)

    def _pods_of(self, job: Manifest, person: Person | None) -> list[Manifest]:
        metadata = job["metadata"]
        query = {"labelSelector": f"batch.kubernetes.io/controller-uid={metadata['uid']}"}
        found = self.api.get(core_path(metadata["namespace"], "pods"), query, person=person)
        return list(found.get("items") or [])

    def delete(self, ref: ObjectRef, person: Person | None, *, dry_run: bool) -> None:
        uid = ref.uid or self._uid_of_ours(ref)
        if not uid:
            return
        try:
            self.api.delete(
                jobs_path(ref.namespace, ref.name), uid=uid, person=person, dry_run=dry_run, foreground=True
            )
        except NotThere:
            return
        except Taken as error:
            raise ObjectDiffers(f"The Job {ref.name} is not the one that was created for this attempt.") from error

    def _uid_of_ours(self, ref: ObjectRef) -> str:
        """Of an attempt whose create crashed before its answer was stored: names are never used twice."""
        found = self.find(ref)
        return str(found["metadata"]["uid"]) if found else ""

    # Look

    def find(self, ref: ObjectRef) -> Manifest | None:
        """The Job, if it is there and is the one that was stored."""
        try:
            found = self.api.get(jobs_path(ref.namespace, ref.name))
        except NotThere:
            return None
        if ref.uid and found["metadata"]["uid"] != ref.uid:
            raise ObjectDiffers(f"The Job {ref.name} is not the one that was created for this attempt.")
        return found

    def _others(self, leader: Manifest) -> list[Manifest]:
        """The Jobs of the other roles of an attempt, found by their owner."""
        metadata = leader["metadata"]
        query = {"labelSelector": f"{LEADER}={metadata['name']}"}
        found = self.api.get(jobs_path(metadata["namespace"]), query).get("items") or []
        return [job for job in found if _is_owned_by(job, [_owner(leader)])]


def _ref(job: Manifest) -> ObjectRef:
    return ObjectRef(job["metadata"]["namespace"], job["metadata"]["name"])


def _adopting(job: Manifest, job_id: str, time_limit: int) -> list[Manifest]:
    """What makes somebody's Job one of the portal's, as a patch."""
    more: list[Manifest] = []
    if not job["metadata"].get("labels"):
        more.append({"op": "add", "path": "/metadata/labels", "value": {}})
    path = JOB_LABEL.replace("/", "~1")
    more.append({"op": "add", "path": f"/metadata/labels/{path}", "value": job_id})
    if time_limit and not job["spec"].get("activeDeadlineSeconds"):
        more.append({"op": "add", "path": "/spec/activeDeadlineSeconds", "value": time_limit})
    return more


def _owner(leader: Manifest) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": leader["metadata"]["name"],
        "uid": leader["metadata"]["uid"],
        "controller": False,
        "blockOwnerDeletion": False,
    }


def _owned(child: Manifest, owner: dict[str, Any]) -> Manifest:
    """It goes with the leader."""
    return child | {"metadata": child["metadata"] | {"ownerReferences": [owner]}}


def _is_owned_by(found: Manifest, owners: list[dict[str, Any]]) -> bool:
    uids = {owner["uid"] for owner in found["metadata"].get("ownerReferences") or ()}
    return all(owner["uid"] in uids for owner in owners)


def _has_ended(job: Manifest) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in conditions)
