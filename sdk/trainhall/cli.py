"""The command `trainhall`: which words there are, and what ends with which exit code."""

from __future__ import annotations

import argparse
import os
import sys
from typing import List, Optional

from trainhall.commands import account, acting, files, reporting, submitting, watching
from trainhall.errors import TrainhallError

OK, JOB_FAILED, USAGE, REFUSED, INTERRUPTED = 0, 1, 2, 3, 130

EPILOG = "exit codes: 0 all is well; 1 the job failed (submit --wait: the job's own code); 2 wrong words; 3 the portal said no"


def main(arguments: Optional[List[str]] = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except TrainhallError as error:
        print("trainhall: {}".format(error), file=sys.stderr)
        return USAGE if error.code in submitting.USAGE_CODES else REFUSED
    except KeyboardInterrupt:
        print("", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # `trainhall logs … | head` had enough; Python must not complain about it at exit either
        _close_output()
        return OK
    except OSError as error:
        # a disk that is full, a file that is not ours: the words of the system, without a traceback
        print("trainhall: {}".format(_words(error)), file=sys.stderr)
        _close_output()
        return REFUSED


def _words(error: OSError) -> str:
    return ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)


def _close_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: List[str]) -> int:
    command: List[str] = []
    if "--" in words:
        at = words.index("--")
        words, command = words[:at], words[at + 1 :]
    parser = make_parser()
    chosen = parser.parse_args(words)
    if not hasattr(chosen, "run"):
        parser.print_help()
        return USAGE
    if command and chosen.run is not submitting.submit:
        parser.error("only `trainhall submit` takes a command after --")
    chosen.command_words = command
    code = int(chosen.run(chosen) or OK)
    sys.stdout.flush()
    return code


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trainhall", description="Train on the shared cluster.", epilog=EPILOG)
    parser.add_argument("--version", action="version", version="trainhall " + _version())
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print what the portal answered, as JSON")
    verbs = parser.add_subparsers(title="commands", metavar="")
    for part in (account, submitting, watching, acting, files, reporting):
        part.add_commands(verbs, common)
    return parser


def _version() -> str:
    import trainhall

    return trainhall.__version__
