"""Failures of GPUs and of the links between workers: their words (pure)."""

from __future__ import annotations

from jobs.causes.words import Kind, Owner
from jobs.causes.words import gettext_noop as _

SAVE = _("Save checkpoints, so that the next run goes on from the last one.")
TELL = _("Tell your administrators the name of the machine: %(node)s.")
TELL_JOB = _("Tell your administrators the id of this job.")
LESS_BATCH = (
    _("Lower %(parameter)s (now %(now)s), for example to %(half)s."),
    _("Lower the batch size."),
)

KINDS = (
    Kind(
        "cuda_out_of_memory",
        Owner.YOU,
        (
            _("Out of GPU memory: tried to get %(asked)s, %(free)s of %(total)s was free."),
            _("Out of GPU memory: tried to get %(asked)s."),
            _("Out of GPU memory, for a tensor of shape %(shape)s."),
            _("Out of GPU memory."),
        ),
        (
            LESS_BATCH,
            _("Use gradient checkpointing, mixed precision or gradient accumulation."),
            _("Ask for GPUs with more memory, or shard the model over more of them."),
        ),
    ),
    Kind(
        "gpu_hardware",
        Owner.HARDWARE,
        (_("A GPU failed: Xid %(xid)s."), _("A GPU failed: %(fault)s.")),
        (_("Submit it again: nothing points at your code."), (TELL, TELL_JOB)),
    ),
    Kind(
        "gpu_fault",
        Owner.UNKNOWN,
        (_("A GPU reported a fault, Xid %(xid)s, which a program can cause as well as a broken GPU."),),
        (
            _("Run it once with CUDA_LAUNCH_BLOCKING=1 to see which call it was."),
            (_("If it happens only on %(node)s, tell your administrators."), TELL_JOB),
        ),
    ),
    Kind(
        "cuda_assert",
        Owner.YOU,
        (
            _(
                "A check inside a GPU kernel failed (device-side assert). Usually an index is out of range, such "
                "as a label that is larger than the number of classes."
            ),
        ),
        (
            _("Run it once on the CPU, or with CUDA_LAUNCH_BLOCKING=1: then the traceback names the true line."),
            _("Compare the largest label or token id with the size of the layer that takes it."),
        ),
    ),
    Kind(
        "cuda_illegal_access",
        Owner.YOU,
        (_("A GPU kernel touched memory that is not its own (illegal memory access)."),),
        (
            _("Run it once with CUDA_LAUNCH_BLOCKING=1: then the traceback names the true line."),
            _("Suspect kernels of your own and extensions first."),
        ),
    ),
    Kind(
        "cuda_driver",
        Owner.YOU,
        (
            _("The image's CUDA is newer than the machine's driver (version %(driver)s)."),
            _("The image's CUDA does not fit the machine's driver."),
        ),
        (
            _("Choose a runtime or an image with an older CUDA."),
            _("Or ask your administrators when the driver will be newer."),
        ),
    ),
    Kind(
        "driver_broken",
        Owner.PLATFORM,
        (_("The machine's NVIDIA driver and its library have different versions: it needs a restart."),),
        ((TELL, TELL_JOB), _("Submit it again; another machine may take it.")),
    ),
    Kind(
        "cuda_architecture",
        Owner.YOU,
        (_("The image has no GPU code for this model of GPU (no kernel image)."),),
        (
            _("Choose an image whose framework supports this GPU, or ask for another GPU type."),
            _("Extensions you build yourself need its number in TORCH_CUDA_ARCH_LIST."),
        ),
    ),
    Kind(
        "no_gpu_asked",
        Owner.YOU,
        (_("The program wants a GPU, and the job asked for none."),),
        (_("Ask for a GPU: set GPUs per worker to 1 or more."), _("Or let the program run on the CPU.")),
    ),
    Kind(
        "gpu_not_seen",
        Owner.UNKNOWN,
        (_("The program found no GPU although the job has %(gpus)s per worker."),),
        (
            _("Check that nothing in your code or image sets CUDA_VISIBLE_DEVICES."),
            _("Check that the image's framework is a build with CUDA."),
            (TELL, TELL_JOB),
        ),
    ),
    Kind(
        "nccl_timeout",
        Owner.UNKNOWN,
        (
            _(
                "The workers waited %(waited)s for each other (NCCL %(operation)s). The suspect is rank "
                "%(suspect)s: it was the furthest behind."
            ),
            _("The workers waited %(waited)s for each other in vain (NCCL %(operation)s)."),
            _("The workers waited for each other in vain (NCCL time-out)."),
        ),
        (
            (
                _(
                    "Look at what rank %(suspect)s wrote last: it stopped, or took another path through the code "
                    "than the others."
                ),
                _(
                    "Look for the rank that wrote nothing about the time-out: it stopped, or took another path "
                    "through the code than the others."
                ),
            ),
            _(
                "If one rank does long work alone, such as saving or evaluating, let the others wait at a "
                "barrier, or raise the time-out."
            ),
            _("Set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and NCCL_DEBUG=INFO for the next run."),
        ),
    ),
    Kind(
        "nccl_error",
        Owner.UNKNOWN,
        (
            _("The GPUs could not talk to each other (NCCL: %(fault)s)."),
            _("The GPUs could not talk to each other (NCCL)."),
        ),
        (
            _("Set NCCL_DEBUG=INFO for the next run: its lines name the link or the call that failed."),
            _("If a run on one machine works, ask your administrators about the network between the machines."),
        ),
    ),
    Kind(
        "rendezvous_timeout",
        Owner.UNKNOWN,
        (
            _("The workers did not find each other: %(joined)s of %(expected)s had come when the time was over."),
            _("The workers did not find each other before the time was over."),
        ),
        (
            _(
                "Check that every worker runs the same command and takes MASTER_ADDR, MASTER_PORT and the number "
                "of workers from its environment."
            ),
            _("Look at the first lines of each worker: one may have ended, or be still loading."),
        ),
    ),
    Kind(
        "peer_lost",
        Owner.UNKNOWN,
        (_("It lost the connection to another worker, and no worker says why."),),
        (_("Look at the last lines of every worker; the first that fell silent is the one."), SAVE),
    ),
)
