"""Celery's doors to rights: they are brought in line with the directory, and roles with an end are taken away after it."""

from __future__ import annotations

import logging

from celery import shared_task
from django.conf import settings

from accounts import members, openid_roles, sync
from accounts.problems import sentence

logger = logging.getLogger(__name__)


@shared_task(soft_time_limit=110)
def sync_directory() -> None:
    """Read the whole directory and write what has changed; a directory that is away changes nothing."""
    if settings.DIRECTORY is None:
        return
    from accounts.ldap.connection import DirectoryAway  # noqa: PLC0415 # an extra: there where the setting is
    from accounts.ldap.reading import read_everybody  # noqa: PLC0415

    try:
        outcome = sync.run(read_everybody())
    except DirectoryAway as error:
        logger.warning("The directory cannot be asked: %s", error)
        sync.record_failure(str(error))
        return
    for problem in outcome.problems:
        logger.warning("Directory: %s", sentence(problem.kind, problem.values))


@shared_task(soft_time_limit=30)
def end_roles() -> None:
    """Take away the roles by hand whose end has come; for every question about rights they ended at that second."""
    members.take_away_ended()


@shared_task(soft_time_limit=300)
def follow_openid_groups() -> None:
    """Roles by groups of the OpenID Connect provider follow the rules; those that no sign-in has confirmed for days end."""
    openid_roles.bring_in_line(days=settings.OPENID_ROLES_DAYS)
