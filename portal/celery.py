"""The Celery app and every schedule of the portal, on one page."""

from __future__ import annotations

import os
import signal

from celery import Celery
from celery.signals import worker_process_init, worker_ready

from portal.embedded.process import die_with_parent
from portal.settings.env import env_int

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.dev")

# seconds; a right that is gone in the directory ends here within 5 minutes (F23), also when one pass in between fails
SYNC_EVERY = env_int("LDAP_SYNC_SECONDS", 120, minimum=5, maximum=150)
BEAT_KEY = "trainhall:beat"  # in Valkey: when a worker last did what beat told it

app = Celery("trainhall")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    task_ignore_result=True,
    # a message is only a wake-up call: losing one, or getting it twice, changes nothing but latency
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "visibility_timeout": 3600,
        "socket_timeout": 10,
        "socket_connect_timeout": 2,
        # without these a publish waits 6 s for a broker that is away
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
        "interval_max": 0,
    },
    task_publish_retry=False,  # a request never waits for the broker; the scan finds the work
    beat_schedule_filename=os.path.join(os.environ.get("TRAINHALL_DATA_DIR", "var"), "beat-schedule"),
    beat_schedule={
        "dispatch what waits": {"task": "jobs.tasks.dispatch_waiting", "schedule": 5.0},
        "repair what a crash left": {"task": "jobs.tasks.reconcile_attempts", "schedule": 5.0},
        "warn of time limits": {"task": "jobs.tasks.warn_of_limits", "schedule": 5.0},
        "take back the place of what cannot start": {"task": "jobs.tasks.end_late_starts", "schedule": 10.0},
        "bring rights in line with the directory": {"task": "accounts.tasks.sync_directory", "schedule": SYNC_EVERY},
        "take away roles that have ended": {"task": "accounts.tasks.end_roles", "schedule": 10.0},
        "bring rights in line with OpenID Connect": {"task": "accounts.tasks.follow_openid_groups", "schedule": 120.0},
        "hold jobs of who left": {"task": "jobs.tasks.hold_jobs_of_who_left", "schedule": 10.0},
        "write changed rights to clusters": {"task": "jobs.tasks.follow_rights", "schedule": 10.0},
        "look whether clusters are prepared": {"task": "jobs.tasks.survey_clusters", "schedule": 180.0},
        "keep namespaces on clusters": {"task": "jobs.tasks.keep_namespaces", "schedule": 120.0},
        "fetch code from git": {"task": "jobs.tasks.fetch_waiting_code", "schedule": 15.0},
        "remove what jobs left behind": {"task": "jobs.tasks.clean_up", "schedule": 600.0},
        "seal logs": {"task": "jobs.tasks.seal_logs", "schedule": 30.0},
        "seal points": {"task": "metrics.tasks.seal_points", "schedule": 5.0},
        "forget dead batches": {"task": "metrics.tasks.forget_dead_batches", "schedule": 1800.0},
        "show that beat and a worker live": {"task": "portal.tasks.beat", "schedule": 5.0},
        "clear expired tokens and sessions": {"task": "portal.tasks.clear_expired", "schedule": 3600.0},
    },
)
app.autodiscover_tasks()


@worker_process_init.connect
def end_with_the_worker(**_: object) -> None:
    """A worker that is killed leaves no child behind in the middle of a task."""
    die_with_parent(signal.SIGKILL)


@worker_ready.connect
def look_at_once(**_: object) -> None:
    """A worker that comes up scans the database instead of waiting for the next beat."""
    for name in (
        "portal.tasks.beat",
        "jobs.tasks.dispatch_waiting",
        "jobs.tasks.reconcile_attempts",
        "jobs.tasks.follow_rights",
        "jobs.tasks.survey_clusters",
    ):
        app.send_task(name)
