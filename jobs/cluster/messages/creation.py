"""Why the API server does not let a Job's pods be made, or a person make a Job. Pure."""

from __future__ import annotations

import re

from jobs.cluster.messages.words import Told, as_it_is, first, rule, sentence, without_names
from jobs.states import Reason

_RESOURCES = {
    "cpu": "CPU",
    "memory": "memory",
    "ephemeral-storage": "scratch space",
    "storage": "storage",
    "pods": "pods",
}


def resource(name: str) -> str:
    """As people call it: requests.nvidia.com/gpu is GPUs."""
    plain = name.removeprefix("requests.").removeprefix("limits.")
    if plain.endswith("/gpu"):
        return "GPUs"
    words = _RESOURCES.get(plain, plain)
    return f"{words} (limit)" if name.startswith("limits.") and plain in _RESOURCES else words


def _amounts(listed: str) -> dict[str, str]:
    return {name: amount for name, _, amount in (one.strip().partition("=") for one in listed.split(",")) if amount}


def _quota(match: re.Match[str]) -> str:
    asked, used, limited = _amounts(match[2]), _amounts(match[3]), _amounts(match[4])
    parts = [
        f"{resource(name)} {used.get(name, '?')} of {limited.get(name, '?')}, one more worker needs {amount}"
        for name, amount in asked.items()
    ]
    return f"The namespace's quota is used up: {'; '.join(parts)}."


def _limit(match: re.Match[str]) -> str:
    what, most, asked = resource(match[2]), match[4], match[6]
    whom = "container" if match[3] == "Container" else "worker"
    if match[1] == "maximum":
        return f"One {whom} may use at most {most} {what}; {asked} were requested."
    return f"One {whom} must use at least {most} {what}; {asked} were requested."


RULES = (
    rule(r"exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)", Reason.QUOTA_EXCEEDED, _quota),
    rule(
        r"failed quota: (\S+): must specify (.+)",
        Reason.NOT_ALLOWED,
        lambda match: f"The request must state {match[2].strip()}: the quota {match[1].rstrip(':')} counts it.",
    ),
    rule(
        r"(maximum|minimum) (\S+) usage per (Container|Pod) is (\S+?),\s+but (limit|request) is (\S+?)\.?(?:[,\s\]]|$)",
        Reason.NOT_ALLOWED,
        _limit,
    ),
    rule(
        r'violates PodSecurity "([^"]+)": (.+)',
        Reason.NOT_ALLOWED,
        lambda match: f"The pod settings are not allowed here (Pod Security {match[1]}): {sentence(match[2])}",
    ),
    rule(
        r"ValidatingAdmissionPolicy '([^']+)' .*?denied request: (.+)",
        Reason.NOT_ALLOWED,
        lambda match: f"{sentence(match[2])} (A rule of the cluster: {match[1]}.)",
    ),
    rule(
        r'admission webhook "([^"]+)" denied the request: ?(.*)',
        Reason.NOT_ALLOWED,
        lambda match: f"{sentence(match[2])} (A rule of the cluster: {match[1]}.)".strip(),
    ),
    rule(
        r"no PriorityClass with name (\S+) was found",
        Reason.CLUSTER_NOT_SET_UP,
        "Priority {1} does not exist on this cluster.",
    ),
    rule(
        r'serviceaccount "([^"]+)" not found',
        Reason.CLUSTER_NOT_SET_UP,
        "The account {1}, with which its pods run, does not exist in this namespace.",
    ),
    rule(
        r"failed calling webhook \"([^\"]+)\"",
        Reason.CLUSTER_NOT_SET_UP,
        "A program that the cluster asks about every pod ({1}) does not answer.",
    ),
)
REFUSALS = (
    rule(
        r"cannot impersonate(?:-on:user-info:\w+)? resource|cannot impersonate",
        Reason.FORBIDDEN,
        "The portal may not act for people in this namespace; the cluster's administrators must allow it.",
    ),
    rule(
        r'is forbidden: User "([^"]+)" cannot (\w+) resource "([^"]+)".* in the namespace "([^"]+)"',
        Reason.FORBIDDEN,
        "The cluster does not let you {2} {3} in {4}. Ask a lead of the namespace.",
    ),
)


def of_creation(message: str) -> Told:
    """The message of an event FailedCreate of a Job: there is no pod, so nothing else tells."""
    found = first(RULES, message)
    return found or as_it_is(Reason.NOT_ALLOWED, "Its pods cannot be made.", without_names(message))


def of_refusal(message: str) -> Told:
    """What the API server says to a person who may not make the Job itself."""
    found = first((*REFUSALS, *RULES), message)
    return found or as_it_is(Reason.FORBIDDEN, "The cluster forbids it.", message)
