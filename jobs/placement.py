"""How close the pods of an attempt are to each other, told from labels of their nodes. Pure.

Which labels count, and which of them mean closer, a cluster's setting says (`topology`): of racks before of blocks, for example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def shared_domain(
    nodes: Sequence[str], domains: Mapping[str, Mapping[str, str]], keys: Sequence[str]
) -> tuple[str, str]:
    """The closest label, and its value, that all these nodes have in common; ("", "") where there is none."""
    for key in keys:
        values = {domains.get(node, {}).get(key, "") for node in nodes}
        if len(values) == 1 and (value := values.pop()):
            return key, value
    return "", ""


def told(nodes: Sequence[str], domains: Mapping[str, Mapping[str, str]], keys: Sequence[str]) -> str:
    """One sentence about the nodes of an attempt's pods; "" for a single pod, and where the labels say nothing."""
    if len(nodes) < 2 or not all(nodes):
        return ""
    pods = f"All {len(nodes)} pods" if len(nodes) > 2 else "Both pods"
    if len(set(nodes)) == 1:
        return f"{pods} are on one node."
    labelled = [key for key in keys if all(domains.get(node, {}).get(key) for node in nodes)]
    if not labelled:
        return ""
    closest = labelled[0]
    key, value = shared_domain(nodes, domains, labelled)
    if key == closest:
        return f"{pods} are in one {_word(key)}, {value}."
    apart = sorted({domains[node][closest] for node in nodes})
    spread = f"They are spread over {len(apart)} {_word(closest)}s ({', '.join(apart[:8])}{', …' * (len(apart) > 8)})"
    return f"{spread} in one {_word(key)}, {value}." if key else f"{spread}."


def _word(key: str) -> str:
    """`rack` of `topology.example.org/rack`."""
    return key.rpartition("/")[2]
