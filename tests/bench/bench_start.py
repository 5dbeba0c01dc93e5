"""From sending a submission to the process that runs, on an idle machine. The bar: a median of 2 s.

The process itself prints the time at which it runs.
"""

from __future__ import annotations

import statistics
import sys
import time

from place import Portal, Table, p95, portal, quiet

TIMES = 20
BAR = 2000.0


def start_once(place: Portal) -> float:
    began = time.time()
    job = place.submit("date +%s.%N")
    place.wait_for(job, "succeeded")
    (line,) = place.rest(f"jobs/{job}/logs/")["lines"]
    return (float(line["text"]) - began) * 1000


def main() -> int:
    with portal() as place:
        quiet(5)
        start_once(place)
        took = []
        for _time in range(TIMES):
            took.append(start_once(place))
            quiet(0.5)
        table = Table(f"Submit to process started, {TIMES} jobs one after the other")
        table.line("median", statistics.median(took), BAR, beside=f"p95 {p95(took):.0f} ms, slowest {max(took):.0f} ms")
    return 1 if table.missed else 0


if __name__ == "__main__":
    sys.exit(main())
