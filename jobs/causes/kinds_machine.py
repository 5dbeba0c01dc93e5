"""Failures of memory and disks: their words (pure)."""

from __future__ import annotations

from jobs.causes.words import Kind, Owner
from jobs.causes.words import gettext_noop as _

MORE_MEMORY = (
    _("Ask for more memory per worker (now %(memory)s), for example %(more_memory)s."),
    _("Ask for more memory per worker."),
)
LESS_BATCH = (
    _("Lower %(parameter)s (now %(now)s), for example to %(half)s."),
    _("Lower the batch size."),
)

KINDS = (
    Kind(
        "host_out_of_memory",
        Owner.YOU,
        (
            _("Out of memory: it used more than its limit of %(memory)s per worker."),
            _("Out of memory: it used more than its limit."),
        ),
        (
            MORE_MEMORY,
            LESS_BATCH,
            _("Use fewer data loader processes: each one holds a copy of what it reads."),
        ),
    ),
    Kind(
        "host_memory_refused",
        Owner.YOU,
        (
            _("Out of memory: it asked for %(asked)s at once and did not get it."),
            _("Out of memory: Python asked for more and did not get it."),
        ),
        (
            _("Read the data in parts, or store it in a smaller type such as float32."),
            MORE_MEMORY,
        ),
    ),
    Kind(
        "shared_memory_full",
        Owner.YOU,
        (
            _("Out of shared memory (/dev/shm, %(shm)s here): a process died with a bus error."),
            _("Out of shared memory (/dev/shm): a process died with a bus error."),
        ),
        (
            (
                _("Raise shm (now %(shm)s), for example to %(more_shm)s."),
                _("Raise shm, for example to %(more_shm)s."),
                _("Raise shm."),
            ),
            _("Use fewer data loader processes, or num_workers=0 for a try."),
        ),
    ),
    Kind(
        "bus_error",
        Owner.UNKNOWN,
        (
            _(
                "It died with a bus error (SIGBUS). The usual reason is that shared memory, /dev/shm, is full; "
                "the log does not say so."
            ),
        ),
        (
            (_("Raise shm (now %(shm)s), for example to %(more_shm)s."), _("Raise shm, for example to %(more_shm)s.")),
            _("If it maps a file into memory, check that the file is whole and was not cut while it was read."),
        ),
    ),
    Kind(
        "child_killed",
        Owner.UNKNOWN,
        (
            _(
                "One of its processes was killed (SIGKILL), rank %(rank)s. By whom, the log does not say; memory "
                "is the usual reason."
            ),
            _("One of its processes was killed (SIGKILL). By whom, the log does not say; memory is the usual reason."),
        ),
        (
            MORE_MEMORY,
            _("Use fewer data loader processes: each one holds a copy of what it reads."),
        ),
    ),
    Kind(
        "disk_full",
        Owner.YOU,
        (
            _("No space left on the disk while writing %(path)s."),
            _("No space left on the disk."),
        ),
        (
            _("Delete old checkpoints and outputs, or keep only the last few."),
            _("Write large files to a volume instead of the job's own folder."),
            _("If the folder is shared and not full by your doing, ask your administrators."),
        ),
    ),
    Kind(
        "disk_quota",
        Owner.YOU,
        (_("Your disk quota is used up: %(path)s could not be written."), _("Your disk quota is used up.")),
        (_("Delete what you no longer need, or ask your administrators for more."),),
    ),
)
