"""`python -m trainhall.agent --setup`: what the init container does before the user's own program starts.

It copies the SDK to where the program imports it from, fetches and checks the code, and makes the run's folders. Only
`--setup` exists; whatever goes wrong is one plain line on standard error and exit code 3.
"""

from __future__ import annotations

import os
import sys
from typing import List, Optional

from trainhall.fetching import fetch
from trainhall.setup import SetupError, install_sdk
from trainhall.unpacking import unpack

FAILED, USAGE = 3, 2
FOLDERS = ("TRAINHALL_OUTPUT_DIR", "TRAINHALL_CHECKPOINT_DIR", "TRAINHALL_TB_DIR")


def main(arguments: Optional[List[str]] = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    if words != ["--setup"]:
        print("usage: python -m trainhall.agent --setup", file=sys.stderr)
        return USAGE
    try:
        setup()
    except SetupError as error:
        print("trainhall setup: {}".format(error), file=sys.stderr)
        return FAILED
    except OSError as error:
        what = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
        print("trainhall setup: {}.".format(what), file=sys.stderr)
        return FAILED
    return 0


def setup() -> None:
    workspace = os.environ.get("TRAINHALL_WORKSPACE") or "/workspace"
    install_sdk(os.environ.get("TRAINHALL_SDK_DIR") or "/opt/trainhall")
    os.makedirs(workspace, exist_ok=True)
    for name in FOLDERS:
        if os.environ.get(name):
            os.makedirs(os.environ[name], exist_ok=True)
    url = os.environ.get("TRAINHALL_CODE_URL")
    if not url:
        return
    archive = fetch(url, os.environ.get("TRAINHALL_CODE_SHA256", ""), workspace)
    try:
        unpack(archive, workspace)
    finally:
        os.unlink(archive)


if __name__ == "__main__":
    sys.exit(main())
