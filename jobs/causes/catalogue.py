"""Every kind of failure by its name (pure)."""

from __future__ import annotations

from jobs.causes import kinds_cluster, kinds_gpu, kinds_machine, kinds_program
from jobs.causes.words import Kind

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (*kinds_machine.KINDS, *kinds_gpu.KINDS, *kinds_cluster.KINDS, *kinds_program.KINDS)
}
