"""Celery doors of the shell."""

from __future__ import annotations

import time
from datetime import timedelta

import redis
from celery import shared_task
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts.models import ApiToken
from portal.celery import BEAT_KEY


@shared_task(soft_time_limit=10, expires=10)
def beat() -> None:
    """Shows that beat and a worker are alive: the status page reads it."""
    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=3) as client:
        client.set(BEAT_KEY, time.time(), ex=600)


@shared_task(soft_time_limit=120)
def clear_expired() -> None:
    now = timezone.now()
    Session.objects.filter(expire_date__lt=now).delete()
    ApiToken.objects.filter(expiry__lt=now - timedelta(days=30)).delete()
    ApiToken.objects.filter(revoked_at__lt=now - timedelta(hours=1)).delete()
