"""The approved list: every route and method of the site, and who may. test_access_matrix.py holds the site to it.

The cast: `nobody` is not signed in; `stranger` (dave) shares nothing; the others have that role in vision, where `owner`
(alice) owns the job that is asked for and `member` (bob) does not; auditor and admin are roles for the site.
"""

from __future__ import annotations

from dataclasses import dataclass

CAST = ("nobody", "stranger", "viewer", "member", "owner", "lead", "auditor", "admin")


@dataclass(frozen=True)
class Rule:
    """`who` may. With `hides`, a stranger gets what a made-up id gets. With `asks`, the body decides: no refused one may
    have an effect, whatever the status."""

    who: frozenset[str]
    hides: bool = False
    asks: bool = False


def _rule(names: str, *, hides: bool = False, asks: bool = False) -> Rule:
    return Rule(frozenset(names.split()), hides=hides, asks=asks)


EVERYONE = _rule("nobody stranger viewer member owner lead auditor admin")
SIGNED_IN = _rule("stranger viewer member owner lead auditor admin")  # shows only what is one's own, or no secret
VIEW = _rule("viewer member owner lead auditor admin", hides=True)
SUBMIT = _rule("member owner lead admin", asks=True)
CLONE = _rule("member owner lead admin", hides=True, asks=True)
LEAD = _rule("lead admin", hides=True)
CHANGE = _rule("owner lead admin", hides=True)  # a job of somebody else needs the lead
SHELL = _rule("owner admin", hides=True)  # acts as the owner: not even a lead
OWNER_ONLY = _rule("owner", hides=True)  # a thing that belongs to one person, such as a token
ADMIN = _rule("admin")
MEMBERS = _rule("lead auditor admin", hides=True)
HAND = _rule("admin", hides=True)  # roles by hand; a namespace one does not see is not there
AUDIT = _rule("lead auditor admin")
SIGNED_URL = _rule("", hides=True)  # the signature in the URL counts, not the person: without it nothing is there
NOT_SET_UP = _rule("", hides=True)  # the second door, which is closed in these tests; open: test_openid.py
ATTEMPT_TOKEN = _rule("")  # the token of the attempt counts, not the person

ROUTES: dict[str, dict[str, Rule]] = {
    "/": {"GET": SIGNED_IN},
    "/login/": {"GET": EVERYONE, "POST": EVERYONE},
    "/logout/": {"POST": SIGNED_IN},
    "/login/oidc/": {"POST": NOT_SET_UP},
    "/login/oidc/answer/": {"GET": NOT_SET_UP},
    "/me/tokens/": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "/me/tokens/<key>/revoke/": {"POST": OWNER_ONLY},
    "/me/tokens/<key>/restore/": {"POST": SIGNED_IN},  # one's own, and only seconds after; else a sentence
    "/me/namespaces/": {"GET": SIGNED_IN},
    "/api/v1/tokens/": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "/api/v1/tokens/current/": {"GET": SIGNED_IN},
    "/api/v1/tokens/<key>/": {"DELETE": OWNER_ONLY},
    "/api/v1/namespaces/": {"GET": SIGNED_IN, "POST": ADMIN},
    "/api/v1/namespaces/<name>/": {"GET": VIEW},
    "/api/v1/namespaces/<name>/members/": {"GET": MEMBERS, "POST": HAND},
    "/api/v1/namespaces/<name>/members/<username>/": {"PATCH": HAND, "DELETE": HAND},
    "/api/v1/namespaces/<name>/quota/": {"GET": VIEW},
    "/api/v1/namespaces/<name>/secrets/": {"GET": VIEW},  # names and keys
    "/api/v1/namespaces/<name>/secrets/<secret>/": {"PUT": LEAD, "DELETE": LEAD},
    "/api/v1/namespaces/<name>/volumes/": {"GET": VIEW},
    "/api/v1/namespaces/<name>/volumes/<volume>/": {"PUT": HAND, "DELETE": HAND},
    "/api/v1/audit/": {"GET": AUDIT},
    "/namespaces/<name>/secrets/": {"GET": VIEW, "POST": LEAD},
    "/namespaces/<name>/volumes/": {"GET": VIEW},
    "/namespaces/<name>/members/": {"GET": MEMBERS},
    "/jobs/": {"GET": SIGNED_IN},
    "/jobs/bulk/": {"POST": SIGNED_IN},  # each job by the rights of its own; the answer says which were refused
    "/jobs/export.csv": {"GET": SIGNED_IN},  # of the jobs one sees
    "/jobs/views/": {"POST": SIGNED_IN},
    "/jobs/views/<view_id>/": {"POST": CHANGE},  # one that alice shares in vision
    "/jobs/new/": {"GET": SIGNED_IN, "POST": SUBMIT},
    "/jobs/forecast/": {"POST": SUBMIT},
    "/jobs/preview/": {"POST": SUBMIT},
    "/jobs/document/": {"POST": SIGNED_IN},  # says the caller's own form in other words
    "/jobs/sample/": {"POST": SUBMIT},
    "/jobs/<job_id>/": {"GET": VIEW},
    "/jobs/<job_id>/logs/": {"GET": VIEW},
    "/jobs/<job_id>/logs/raw/": {"GET": VIEW},
    "/jobs/<job_id>/workers/": {"GET": VIEW},
    "/jobs/<job_id>/events/": {"GET": VIEW},
    "/jobs/<job_id>/shell/": {"GET": SHELL},
    "/jobs/<job_id>/files/": {"GET": VIEW},
    "/jobs/<job_id>/spec/": {"GET": VIEW},
    "/jobs/<job_id>/stop/": {"POST": CHANGE},
    "/jobs/<job_id>/stop-now/": {"POST": CHANGE},
    "/jobs/<job_id>/edit/": {"POST": CHANGE},
    "/jobs/<job_id>/pin/": {"POST": VIEW},  # one's own bookmark
    "/jobs/<job_id>/unpin/": {"POST": VIEW},
    "/jobs/<job_id>/archive/": {"POST": CHANGE},
    "/jobs/<job_id>/unarchive/": {"POST": CHANGE},
    "/jobs/<job_id>/hold/": {"POST": CHANGE},
    "/jobs/<job_id>/release/": {"POST": CHANGE},
    "/audit/": {"GET": AUDIT},
    "/audit/export.csv": {"GET": AUDIT},
    "/admin/access/": {"GET": ADMIN, "POST": ADMIN},
    "/admin/access/sync/": {"POST": ADMIN},
    "/admin/access/<mapping_id>/": {"POST": ADMIN},
    "/admin/access/projects/": {"POST": ADMIN},
    "/admin/access/projects/<name>/": {"POST": ADMIN},
    "/admin/access/projects/<name>/members/": {"POST": ADMIN},
    "/admin/access/people/<user_id>/": {"POST": ADMIN},
    "/admin/access/roles/<membership_id>/": {"POST": ADMIN},
    "/admin/users/": {"GET": ADMIN},
    "/admin/users/<user_id>/": {"POST": ADMIN},
    "/api/v1/group-mappings/": {"GET": ADMIN, "POST": ADMIN},
    "/api/v1/group-mappings/<mapping_id>/": {"PATCH": ADMIN, "DELETE": ADMIN},
    "/api/v1/sync/": {"POST": ADMIN},
    "/admin/clusters/": {"GET": ADMIN, "POST": ADMIN},
    "/admin/volumes/<name>/": {"POST": HAND},
    "/admin/runtimes/": {"GET": ADMIN},
    "/admin/runtimes/new/": {"GET": ADMIN, "POST": ADMIN},
    "/admin/runtimes/<slug>/": {"GET": ADMIN, "POST": ADMIN},
    "/code/<sha256>/": {"GET": SIGNED_URL},
    "/api/v1/jobs/": {"GET": SIGNED_IN, "POST": SUBMIT},
    "/api/v1/jobs/bulk/": {"POST": SIGNED_IN},
    "/api/v1/jobs/export.csv": {"GET": SIGNED_IN},
    "/api/v1/views/": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "/api/v1/views/<view_id>/": {"GET": VIEW, "PATCH": CHANGE, "DELETE": CHANGE},
    "/api/v1/sparklines/": {"GET": SIGNED_IN},  # of the jobs one sees; others are left out
    "/api/v1/jobs/<job_id>/": {"GET": VIEW, "PATCH": CHANGE},
    "/api/v1/jobs/<job_id>/cancel/": {"POST": CHANGE},
    "/api/v1/jobs/<job_id>/hold/": {"POST": CHANGE},
    "/api/v1/jobs/<job_id>/release/": {"POST": CHANGE},
    "/api/v1/jobs/<job_id>/archive/": {"POST": CHANGE},
    "/api/v1/jobs/<job_id>/unarchive/": {"POST": CHANGE},
    "/api/v1/jobs/<job_id>/clone/": {"POST": CLONE},
    "/api/v1/jobs/<job_id>/why/": {"GET": VIEW},
    "/api/v1/jobs/<job_id>/events/": {"GET": VIEW},
    "/api/v1/jobs/<job_id>/manifest/": {"GET": VIEW},
    "/api/v1/jobs/<job_id>/logs/": {"GET": VIEW},
    "/api/v1/jobs/<job_id>/files/": {"GET": VIEW},
    "/api/v1/jobs/<job_id>/files.zip": {"GET": VIEW},
    "/api/v1/jobs/<job_id>/files/<path>": {"GET": VIEW},
    "/api/v1/jobs/<job_id>/code/": {"GET": VIEW},
    "/api/v1/drafts/": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "/api/v1/drafts/<draft_id>/": {"GET": OWNER_ONLY, "PUT": OWNER_ONLY, "DELETE": OWNER_ONLY},
    "/api/v1/forecast/": {"POST": SUBMIT},
    "/api/v1/uploads/": {"POST": SIGNED_IN},  # a content-addressed archive that only its uploaders may name
    "/api/v1/runtimes/": {"GET": SIGNED_IN, "POST": ADMIN},
    "/api/v1/runtimes/<slug>/": {"GET": SIGNED_IN, "PATCH": ADMIN},
    "/api/v1/clusters/": {"GET": SIGNED_IN},
    "/api/v1/jobs/<job_id>/series/": {"GET": VIEW},
    "/api/v1/metric-rules/test/": {"POST": SIGNED_IN},  # stores nothing
    "/jobs/<job_id>/charts/": {"GET": VIEW},
    "/jobs/<job_id>/charts/overview/": {"GET": VIEW},
    "/jobs/<job_id>/metrics/": {"GET": VIEW},
    "/jobs/<job_id>/marks/": {"GET": VIEW},
    "/jobs/<job_id>/layout/": {"POST": VIEW},  # one's own view of these charts
    "/jobs/<job_id>/layout/share/": {"POST": LEAD},
    "/api/v1/schema/": {"GET": SIGNED_IN},
    "/api/v1/docs/": {"GET": SIGNED_IN},
    "/words.js": {"GET": EVERYONE},  # translations of the scripts' words
    "/status/": {"GET": EVERYONE},
    "/healthz": {"GET": EVERYONE},
    "/readyz": {"GET": EVERYONE},
    "/metrics": {"GET": EVERYONE},  # numbers of the portal; none names a person or a namespace
    "/sdk/": {"GET": EVERYONE},
    "/sdk/<name>": {"GET": EVERYONE},
}

# What stands in front of Django: metrics.ingest_asgi.BARE_ROUTES.
BARE: dict[str, dict[str, Rule]] = {
    "/api/v1/jobs/<id>/ingest/": {"POST": ATTEMPT_TOKEN},
}

# What a socket may be opened on, and the topics one may subscribe to there.
SOCKETS: dict[str, Rule] = {
    "/ws/": SIGNED_IN,
    "/ws/jobs/<job_id>/shell/": SHELL,
}
TOPICS: dict[str, Rule] = {
    "job/<id>": VIEW,
    "points/<id>": VIEW,
    "logs/<id>/<worker>": VIEW,
    "namespace/<name>": VIEW,
    "jobs": SIGNED_IN,
    "cluster": SIGNED_IN,
    "inbox": SIGNED_IN,
}
