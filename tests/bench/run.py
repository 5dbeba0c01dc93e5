"""`make bench`: every bench_*.py, one after the other, and what they printed once more in one piece."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    wanted = sys.argv[1:]
    pages: list[str] = []
    missed = 0
    for path in sorted(HERE.glob("bench_*.py")):
        name = path.stem.removeprefix("bench_")
        if wanted and name not in wanted:
            continue
        print(f"… {name}", flush=True)
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, str(path)], cwd=HERE.parent.parent, stdout=subprocess.PIPE, text=True, check=False
        )
        verdict = "within its bars" if done.returncode == 0 else f"MISSED (exit {done.returncode})"
        missed += done.returncode != 0
        pages.append(f"== {name}: {verdict}, {time.monotonic() - began:.0f} s\n{done.stdout.rstrip()}")
    print("\n" + "\n\n".join(pages))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
