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
        (_("The image %(image)s cannot be fetched."), _("The image cannot be fetched.")),
        (
            _("Check the name and the tag of the image."),
            _("If it is private, ask your administrators to add the pull secret to a runtime."),
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
