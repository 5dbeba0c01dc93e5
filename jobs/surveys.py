"""Whether each Kubernetes is as an admin prepared it: looked at every few minutes, and told to operators on their page."""

from __future__ import annotations

import logging
from dataclasses import asdict
from functools import cache
from pathlib import Path

from django.conf import settings
from django.utils import timezone
from ruamel.yaml import YAML

from jobs.cluster.port import Manifest
from jobs.exceptions import ClusterError
from jobs.models import Cluster

FOLDER = "deploy/kubernetes"
APPLY = f"kubectl apply --server-side --force-conflicts -f {FOLDER}/"
logger = logging.getLogger(__name__)


@cache
def shipped() -> list[Manifest]:
    """What an admin applies before the portal is connected."""
    found: list[Manifest] = []
    for path in sorted(Path(settings.BASE_DIR, FOLDER).glob("*.yaml")):
        found += [one for one in YAML(typ="safe", pure=True).load_all(path.read_text(encoding="utf-8")) if one]
    return found


def look() -> int:
    """One look at every cluster; how many things are wrong on them."""
    # only where a cluster is Kubernetes: its client takes 60 MiB
    from jobs.cluster.kubernetes.survey import survey  # noqa: PLC0415

    wrong = 0
    for setting in settings.KUBERNETES_CLUSTERS:
        try:
            found = survey(setting, shipped())
        except ClusterError as error:
            logger.warning("%s could not be surveyed: %s", setting.name, error)
            continue
        Cluster.objects.filter(name=setting.name).update(survey=asdict(found), surveyed_at=timezone.now())
        wrong += len(found.wrong)
        for words in found.wrong:
            logger.warning("%s: %s An admin of the cluster runs: %s", setting.name, words, mend(found.changed))
    return wrong


def mend(changed: list[str]) -> str:
    """The command for an admin. What was changed is made anew, because an apply leaves what another hand has added."""
    return f"kubectl delete {' '.join(changed)} && {APPLY}" if changed else APPLY
