"""Failures of the program itself: their words (pure)."""

from __future__ import annotations

from jobs.causes.words import Kind, Owner
from jobs.causes.words import gettext_noop as _

READ_TRACEBACK = _("Read the traceback above the line: the deepest place in your own code is %(place)s.")

KINDS = (
    Kind(
        "nan_loss",
        Owner.YOU,
        (
            _("The loss is not a number: %(metric)s was %(value)s at step %(step)s."),
            _("The loss is not a number: %(metric)s was %(value)s in its last report."),
            _("The loss is not a number: the program ended itself because of it."),
        ),
        (
            (
                _("Lower %(rate)s (now %(rate_now)s), for example to %(rate_less)s, or warm it up."),
                _("Lower the learning rate, or warm it up."),
            ),
            _("Clip gradients; with fp16 use loss scaling or bf16."),
            _("Look at the last batches before it for empty or broken samples."),
        ),
    ),
    Kind(
        "module_missing",
        Owner.YOU,
        (_("The Python module %(module)s is not there."),),
        (
            _("Add %(module)s to the image, or install it at the start of the command: pip install %(package)s."),
            _("If %(module)s is your own, send its file or folder with the code and start the program from there."),
        ),
    ),
    Kind(
        "name_missing",
        Owner.YOU,
        (_("%(module)s has no %(thing)s to import: another version is installed than the code expects."),),
        (
            _("Pin the version of %(module)s that the code was written for."),
            _("If a file of your own is called like the module, rename it: it hides the module."),
        ),
    ),
    Kind(
        "library_missing",
        Owner.YOU,
        (_("The system library %(library)s is not in the image."),),
        (_("Choose an image that has %(library)s, or have it added to the runtime."),),
    ),
    Kind(
        "import_failed",
        Owner.YOU,
        (_("An import failed: %(message)s"), _("An import failed.")),
        (_("Compare the versions that are installed with those the code was written for."), READ_TRACEBACK),
    ),
    Kind(
        "script_missing",
        Owner.YOU,
        (_("The script %(path)s is not there."),),
        (
            _("Check the name in the command against the files of the code: capitals and folders count."),
            _("The command starts in the folder of the code; write paths from there."),
        ),
    ),
    Kind(
        "file_missing",
        Owner.YOU,
        (_("The file or folder %(path)s is not there."),),
        (
            _("Check the path: it must be there inside the job, not on your own machine."),
            _("Small files can be sent with the code; data sets belong on a volume that the job mounts."),
        ),
    ),
    Kind(
        "permission_denied",
        Owner.YOU,
        (_("Permission denied: %(path)s"), _("Permission denied.")),
        (
            _("Write below TRAINHALL_OUTPUT_DIR or TRAINHALL_CHECKPOINT_DIR: these are yours to write."),
            _("For files on a volume, check who owns them and whether it is mounted read-only."),
        ),
    ),
    Kind(
        "variable_missing",
        Owner.YOU,
        (_("The environment variable %(variable)s is not set."),),
        (_("Set %(variable)s in the job's environment, or as a secret if it is a password or a key."),),
    ),
    Kind(
        "host_not_found",
        Owner.UNKNOWN,
        (_("The name %(host)s could not be found."), _("The name of a server could not be found.")),
        (
            _("Check the name for a typing error."),
            _(
                "Jobs may have no way to the internet: put the data on a volume, or ask your administrators for "
                "a proxy."
            ),
        ),
    ),
    Kind(
        "connection_refused",
        Owner.UNKNOWN,
        (_("%(host)s refused the connection."), _("A server refused the connection.")),
        (
            _("Check the address and the port, and whether the server runs."),
            _("If the server is part of this job, let the program wait until it is up."),
        ),
    ),
    Kind(
        "connection_timeout",
        Owner.UNKNOWN,
        (_("%(host)s did not answer in time."), _("A server did not answer in time.")),
        (
            _(
                "Jobs may have no way to the internet: put the data on a volume, or ask your administrators for "
                "a proxy."
            ),
            _("If it worked before, try again: download with retries."),
        ),
    ),
    Kind(
        "access_refused",
        Owner.YOU,
        (_("%(host)s refused access (HTTP %(status)s)."), _("A server refused access (HTTP %(status)s).")),
        (_("Give the job a valid token as a secret, and check that its account may read this."),),
    ),
    Kind(
        "address_in_use",
        Owner.YOU,
        (_("A port is already taken: %(port)s."), _("A port is already taken.")),
        (
            _("Let the system choose a port (0), or take MASTER_PORT from the environment."),
            _("Check that the command does not start the same server twice."),
        ),
    ),
    Kind(
        "wrong_arguments",
        Owner.YOU,
        (_("The program does not take these arguments: %(message)s"),),
        (_("Compare the command with what the program lists under --help."),),
    ),
    Kind(
        "syntax_error",
        Owner.YOU,
        (
            _("%(place)s cannot be read as a program: %(message)s"),
            _("The program cannot be read: %(message)s"),
        ),
        (
            _("Mend the line and run it once at home: python -m py_compile finds these in a second."),
            _("If the line is right, the image has an older Python than the code needs."),
        ),
    ),
    Kind(
        "shell_syntax",
        Owner.YOU,
        (_("The shell cannot read the command: %(message)s"),),
        (_("Check quotes and brackets of the command; the Spec tab shows it as it ran."),),
    ),
    Kind(
        "assertion",
        Owner.YOU,
        (
            _("A check of the program failed at %(place)s: %(message)s"),
            _("A check of the program failed: %(message)s"),
            _("A check of the program failed at %(place)s."),
            _("A check of the program failed."),
        ),
        (READ_TRACEBACK,),
    ),
    Kind(
        "python_exception",
        Owner.YOU,
        (
            _("%(type)s at %(place)s: %(message)s"),
            _("%(type)s: %(message)s"),
            _("%(type)s at %(place)s."),
            _("%(type)s ended the program."),
        ),
        (READ_TRACEBACK, _("Mend it, then clone the job: everything but the code can stay as it is.")),
    ),
    Kind(
        "command_not_found",
        Owner.YOU,
        (
            _("The command %(command)s is not in the image."),
            _("Its command could not be started: %(words)s"),
            _("A program of the command is not in the image (exit code 127)."),
        ),
        (
            _("Check the spelling, or choose a runtime whose image has it."),
            _("A script of your own needs its path: ./run.sh, or sh run.sh."),
        ),
    ),
    Kind(
        "not_executable",
        Owner.YOU,
        (_("%(command)s may not be executed."), _("A program of the command may not be executed (exit code 126).")),
        (
            _(
                "Call it by its interpreter, such as sh run.sh or python train.py, or make it executable before "
                "sending it."
            ),
        ),
    ),
    Kind(
        "segfault",
        Owner.YOU,
        (_("It crashed in native code (segmentation fault, SIGSEGV)."),),
        (
            _("Set PYTHONFAULTHANDLER=1 for the next run: the log then shows where it was."),
            _("Suspect compiled extensions that were built against another version."),
            (_("If it happens only on %(node)s, tell your administrators."),),
        ),
    ),
    Kind(
        "aborted",
        Owner.YOU,
        (_("Native code gave up (SIGABRT): %(message)s"), _("Native code gave up (SIGABRT).")),
        (_("Read the lines above: the library usually says why."), _("Set PYTHONFAULTHANDLER=1 for the next run.")),
    ),
    Kind(
        "illegal_instruction",
        Owner.YOU,
        (_("The image has code for another kind of processor (SIGILL)."),),
        (_("Choose an image built for this machine's processor, or a package built without special instructions."),),
    ),
    Kind(
        "killed",
        Owner.UNKNOWN,
        (_("It was killed (SIGKILL), and by whom is not known: the cluster does not say that it was for memory."),),
        (
            (
                _("Watch its memory; if it grows towards %(memory)s, ask for more."),
                _("Watch its memory in the next run."),
            ),
            _("Check whether the program or a launcher kills its own processes."),
        ),
    ),
    Kind(
        "terminated",
        Owner.UNKNOWN,
        (_("It was ended by SIGTERM, which Trainhall did not send."),),
        (
            _("Check whether the program, a launcher or the command `timeout` ends it."),
            _("Look at the lines before the end."),
        ),
    ),
    Kind(
        "signalled",
        Owner.UNKNOWN,
        (_("It was ended by %(signal)s."),),
        (_("Look at the lines before the end."),),
    ),
    Kind(
        "checkpointed",
        Owner.YOU,
        (_("It saved its work and asked to be run again (exit code 75)."),),
        (_("Nothing to do: it is queued again and not counted as a failure."),),
    ),
    Kind(
        "gave_up_in_time",
        Owner.YOU,
        (_("The command `timeout` ended the program (exit code 124)."),),
        (_("Give `timeout` more time, or leave it out: the job has a time limit of its own, %(limit)s."),),
    ),
    Kind(
        "nonzero_exit",
        Owner.YOU,
        (
            _("The program ended with exit code %(exit)s and printed no error that is known here."),
            _("The program failed."),
        ),
        (
            _("Read its last lines: %(exit)s is the program's own number."),
            _("Let a shell script show its steps: sh -x, and set -e to stop at the first that fails."),
        ),
    ),
    Kind(
        "unknown",
        Owner.UNKNOWN,
        (_("Why it failed is not known: %(words)s"), _("Why it failed is not known.")),
        (
            _("Look at the last lines of the log."),
            _("Submit it again, or tell your administrators the id of this job."),
        ),
    ),
    Kind(
        "did_nothing",
        Owner.YOU,
        (_("It succeeded in %(ran)s, without a line or a number. Was there anything to do?"),),
        (
            _("Check that the command calls the program, and that the program calls its main function."),
            _("Look whether its outputs are there."),
        ),
    ),
)
