"""The exact objects a job becomes, for people: every secret masked."""

from __future__ import annotations

from django.conf import settings

from accounts.models import Namespace, User
from jobs.cluster.manifests import Rendering, manifest_for_people, render
from jobs.cluster.port import Manifest
from jobs.dispatch import objects_of
from jobs.models import Attempt, Job
from jobs.parsing import Parsed, argv_of

MASK = "(made at launch)"


def manifests_of(job: Job) -> list[Manifest]:
    """What the latest attempt was made of, or, where none was made, what the first would be."""
    attempt = job.attempts.order_by("-number").first() or Attempt(
        job=job,
        number=1,
        cluster_id=job.cluster_id,
        kubernetes_namespace=job.namespace.kubernetes_name,
        object_name=f"j-{job.pk}-1",
    )
    attempt.job = job
    return manifest_for_people(objects_of(attempt, with_secrets=False))


def manifests_to_be(parsed: Parsed, *, namespace: Namespace, user: User) -> list[Manifest]:
    """The same for a document that has not been submitted; the job's id is made then."""
    spec = parsed.spec
    return manifest_for_people(
        render(
            Rendering(
                spec=spec,
                job_id="to-be-made",
                attempt=1,
                instance=settings.TRAINHALL_INSTANCE,
                kubernetes_namespace=namespace.kubernetes_name,
                username=user.username,
                internal_url=settings.TRAINHALL_INTERNAL_URL,
                token=MASK,
                code_url=MASK if spec.code.kind != "none" else "",
                code_sha256=MASK if spec.code.kind != "none" else "",
                secret_env=dict.fromkeys(parsed.secret_values, MASK),
                helper_image=settings.TRAINHALL_HELPER_IMAGE,
                argv=argv_of(spec.command, spec.parameters),
                launcher=spec.launcher,
            )
        )
    )
