"""The exact objects a job becomes, for people: every secret masked."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.models import Namespace, User
from jobs import shared_secrets, shared_volumes
from jobs.cluster.adopted import main_container
from jobs.cluster.manifests import Rendering, manifest_for_people, render
from jobs.cluster.port import Manifest
from jobs.cluster.registry import chosen, helper_image, internal_url, tolerations, topology
from jobs.dispatch import objects_of
from jobs.gang import leader_name
from jobs.models import Attempt, Job
from jobs.parsing import Parsed, argv_of
from jobs.quoting import fill_in
from jobs.tenants import numbers_of
from jobs.yaml_text import to_yaml

MASK = "(made at launch)"


def manifests_of(job: Job) -> list[Manifest]:
    """What the latest attempt was made of, or, where none was made, what the first would be."""
    if job.is_adopted:
        return [job.adoption.manifest]
    attempt = job.attempts.order_by("-number").first() or Attempt(
        job=job,
        number=1,
        cluster_id=job.cluster_id,
        kubernetes_namespace=job.namespace.kubernetes_name,
        object_name=leader_name(job.pk, 1, job.pod_groups),
    )
    attempt.job = job
    return manifest_for_people(objects_of(attempt, with_secrets=False))


@dataclass(frozen=True, slots=True)
class Ran:
    """What a job's main container gets, in the words of people, and all objects as YAML."""

    manifest: str
    command: str  # with its parameters filled in
    image: str
    environment: tuple[tuple[str, str], ...]  # name and value; where it comes from, for a secret


def what_ran(job: Job) -> Ran:
    spec = job.parsed
    manifests = manifests_of(job)
    leader = next(manifest for manifest in manifests if manifest["kind"] == "Job")
    main = main_container(leader["spec"]["template"]["spec"])
    return Ran(
        manifest=to_yaml(manifests),
        command=fill_in(spec.command, spec.parameters),
        image=main["image"],
        environment=tuple((entry["name"], _shown(entry)) for entry in main.get("env", ())),
    )


def _shown(entry: Manifest) -> str:
    if "value" in entry:
        return str(entry["value"])
    source = entry.get("valueFrom") or {}
    if "secretKeyRef" in source:
        return _("from a secret")
    return str(source.get("fieldRef", {}).get("fieldPath", ""))


def manifests_to_be(parsed: Parsed, *, namespace: Namespace, user: User) -> list[Manifest]:
    """The same for a document that has not been submitted; the job's id is made then."""
    spec = shared_volumes.filled_in(parsed.spec, namespace=namespace, user=user)
    uid, gids = numbers_of(user)
    cluster = chosen(spec.cluster, namespace.slug)
    mounted = shared_volumes.mounted(namespace, user=user, cluster=cluster)
    return manifest_for_people(
        render(
            Rendering(
                spec=spec,
                job_id="to-be-made",
                attempt=1,
                instance=settings.TRAINHALL_INSTANCE,
                kubernetes_namespace=namespace.kubernetes_name,
                username=user.username,
                internal_url=internal_url(cluster),
                token=MASK,
                code_url=MASK if spec.code.kind != "none" else "",
                code_sha256=MASK if spec.code.kind != "none" else "",
                secret_env={secret.name: MASK for secret in spec.secrets},
                pull_config=shared_secrets.pull_config(namespace, [spec.image]) and MASK,
                identity=(uid, gids[0], gids[1:]),
                helper_image=helper_image(cluster),
                argv=argv_of(spec.command, spec.parameters),
                launcher=spec.launcher,
                topology=topology(cluster),
                tolerations=tolerations(cluster),
                home=mounted.home,
                read_only_claims=mounted.read_only_claims,
            )
        )
    )
