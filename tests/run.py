"""`make test`: the tests in two pytest processes, since a browser test leaves an event loop behind.

Those that kill whole portals (`-m chaos`) take minutes, and those on a real Kubernetes (`make test-cluster`) need root: .ci/run
runs them. Without Chromium the browser's part is skipped, loudly; under CI=true that is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# each file in one of two processes, with a database of its own: two cores are half idle while one test waits
TWO = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")


def pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], cwd=HERE.parent, check=False).returncode


def in_two(*arguments: str) -> int:
    """What failed beside another test is run once more, one after the other; the output has both."""
    if not pytest(*TWO, *arguments):
        return 0
    print("\n--- once more, one after the other, what failed:\n", flush=True)
    return pytest("--last-failed", "--last-failed-no-failures", "none", *arguments)


def main() -> int:
    left_out = ("-m", "not chaos and not cluster", "--ignore=tests/browser", "--ignore=tests/bench")
    failed = in_two(*left_out, "tests", *sys.argv[1:])
    if shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome"):
        failed |= in_two("tests/browser", *sys.argv[1:])
    elif os.environ.get("CI") == "true":
        print("Chromium is missing, and under CI the browser tests are mandatory.")
        failed = 1
    else:
        print("\n=== SKIPPED: tests/browser needs Chromium (apt-get install chromium). ===\n")
    if os.environ.get("CI") != "true":
        print("\n=== SKIPPED: tests/cluster needs a real Kubernetes (make test-cluster starts one, as root). ===\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
