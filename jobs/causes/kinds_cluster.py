"""Ends that the cluster itself reports: their words (pure)."""

from __future__ import annotations

from jobs.causes.words import Kind, Owner
from jobs.causes.words import gettext_noop as _

SAVE = _("Save checkpoints, so that the next run goes on from the last one.")
AGAIN = _("Nothing to do: it is queued again and not counted against you.")

KINDS = (
    Kind(
        "time_limit",
        Owner.YOU,
        (_("The time limit of %(limit)s was reached."), _("The time limit was reached.")),
        (
            (
                _("Ask for a longer time limit (now %(limit)s), for example %(more_time)s."),
                _("Ask for a longer time limit."),
            ),
            SAVE,
        ),
    ),
    Kind(
        "setup_failed",
        Owner.UNKNOWN,
        (
            _("It could not be set up, so its command never ran: %(words)s"),
            _("It could not be set up, so its command never ran."),
        ),
        (
            _("Check that the code unpacks: no names that leave its folder, no broken archive."),
            _("If the words speak of a network or a server, submit it again; then tell your administrators."),
        ),
    ),
    Kind(
        "code_not_fetched",
        Owner.YOU,
        (_("Its code could not be fetched: %(words)s"), _("Its code could not be fetched.")),
        (_("Check the address and the ref of the code, and whether it needs a token."),),
    ),
    Kind(
        "code_address_private",
        Owner.PLATFORM,
        (_("Its code could not be fetched: %(words)s"), _("Its code lies at a private address.")),
        (_("Ask an admin to allow the host, or upload the code instead."),),
    ),
    Kind(
        "image_not_found",
        Owner.YOU,
        (_("%(words)s"), _("The image %(image)s cannot be fetched."), _("The image cannot be fetched.")),
        (
            _("Check the name and the tag of the image."),
            _("If it is private, ask your administrators to add the pull secret to a runtime."),
        ),
    ),
    Kind(
        "registry_unavailable",
        Owner.PLATFORM,
        (_("%(words)s"), _("The registry of the image %(image)s does not answer as it should.")),
        (
            _("Submit it again later: nothing points at your job."),
            _("If it goes on, tell your administrators the name of the image: %(image)s."),
        ),
    ),
    Kind(
        "quota_exceeded",
        Owner.YOU,
        (_("%(words)s"), _("The cluster's quota of the namespace is used up.")),
        (
            _("Ask for less, or wait until other jobs of the namespace have ended."),
            _("Ask a lead of the namespace whether its quota on the cluster can be raised."),
        ),
    ),
    Kind(
        "not_allowed",
        Owner.YOU,
        (_("The cluster does not allow its pods: %(words)s"), _("The cluster does not allow its pods.")),
        (
            _("Change what its words name: the size, the image or the settings of the job."),
            _("If you changed nothing of that, show the words to your administrators."),
        ),
    ),
    Kind(
        "cluster_not_set_up",
        Owner.PLATFORM,
        (_("The cluster lacks something that every job needs: %(words)s"),),
        (_("Show these words to your administrators; nothing points at your job."),),
    ),
    Kind(
        "secret_missing",
        Owner.YOU,
        (_("%(words)s"), _("A secret that it needs is missing.")),
        (
            _("Check the names of the secrets of the job against those of its namespace."),
            _("Ask a lead of the namespace to set the secret, then submit it again."),
        ),
    ),
    Kind(
        "volume_missing",
        Owner.YOU,
        (_("%(words)s"), _("A volume that it needs is not there.")),
        (
            _("Check the names of the volumes of the job."),
            _("Ask a lead of the namespace, or your administrators, which volumes there are."),
        ),
    ),
    Kind(
        "volume_not_mounted",
        Owner.PLATFORM,
        (_("%(words)s"), _("A storage volume could not be mounted.")),
        (
            _("Submit it again: another machine may reach the storage."),
            _("If it goes on, show these words to your administrators."),
        ),
    ),
    Kind(
        "machine_fault",
        Owner.HARDWARE,
        (_("%(words)s"), _("Its machine could not start it.")),
        (
            _("Submit it again: nothing points at your job."),
            (
                _("Tell your administrators the name of the machine: %(node)s."),
                _("Tell your administrators the id of this job."),
            ),
        ),
    ),
    Kind(
        "scratch_full",
        Owner.YOU,
        (_("It was ended since it used more disk than it may: %(words)s"), _("It used more disk than it may.")),
        (
            _("Write large files to a volume, and remove temporary ones while it runs."),
            _("Keep fewer checkpoints."),
        ),
    ),
    Kind(
        "shm_over_limit",
        Owner.YOU,
        (
            _("It was ended since its shared memory of %(shm)s was too small."),
            _("It was ended since its shared memory was too small."),
        ),
        (
            _("Ask for more shared memory, for example %(more_shm)s."),
            _("Use fewer workers of the data loader."),
        ),
    ),
    Kind(
        "machine_pressure",
        Owner.PLATFORM,
        (_("%(words)s"), _("Its machine ran short of something.")),
        (AGAIN, SAVE),
    ),
    Kind(
        "memory_limit_hit",
        Owner.YOU,
        (
            _("It finished, but one of its processes was killed at the memory limit of %(memory)s."),
            _("It finished, but one of its processes was killed at the memory limit."),
        ),
        (
            _("Do not trust its results before you have looked: a process of it did not finish its work."),
            (_("Ask for more memory, for example %(more_memory)s."), _("Ask for more memory.")),
            _("Use fewer workers of the data loader, or smaller pieces of the data."),
        ),
    ),
    Kind(
        "refused_by_cluster",
        Owner.UNKNOWN,
        (_("The cluster refuses it: %(words)s"), _("The cluster refuses it.")),
        (_("Change what its words name, or show them to your administrators."),),
    ),
    Kind(
        "start_timeout",
        Owner.PLATFORM,
        (_("It did not start in time, so its place was given back."),),
        (_("Nothing to do: it is tried again and not counted against you."),),
    ),
    Kind(
        "preempted",
        Owner.PLATFORM,
        (_("It was stopped for a job of higher priority."),),
        (AGAIN, SAVE),
    ),
    Kind(
        "disruption",
        Owner.PLATFORM,
        (_("It was taken off its machine: %(words)s"), _("It was taken off its machine.")),
        (AGAIN, SAVE),
    ),
    Kind(
        "node_lost",
        Owner.HARDWARE,
        (_("Its machine %(node)s does not answer any more."), _("Its machine does not answer any more.")),
        (AGAIN, SAVE),
    ),
    Kind(
        "outcome_unknown",
        Owner.UNKNOWN,
        (_("How it ended is not known: %(words)s"), _("How it ended is not known.")),
        (
            _("Look at the last lines of the log; it may have ended well."),
            _("Submit it again, or tell your administrators the id of this job."),
        ),
    ),
)
