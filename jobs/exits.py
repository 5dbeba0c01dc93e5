"""Exit codes that say something, in sysexits.h, the shell's and the container runtime's sense (pure): one list for all."""

from __future__ import annotations

CHECKPOINTED = 75  # EX_TEMPFAIL: "saved, run me again"
NOT_EXECUTABLE, NOT_FOUND = 126, 127  # said by the shell
START_ERROR = 128  # said by the container runtime

# what a program says of itself that another try cannot mend: bad arguments, configuration, data (sysexits.h)
SAID_BY_PROGRAM = {
    2: "exit code 2 means wrong arguments",
    64: "exit code 64 means wrong arguments",
    65: "exit code 65 means bad data",
    66: "exit code 66 means a missing input",
    78: "exit code 78 means a wrong configuration",
}
PERMANENT = {
    **SAID_BY_PROGRAM,
    NOT_EXECUTABLE: "the command cannot be executed",
    NOT_FOUND: "the command was not found",
}
