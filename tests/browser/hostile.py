"""Texts that would run, hide, cover or break something if a page took them for more than text (F26)."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import psycopg

from portal.embedded.environment import DATABASE
from portal.embedded.home import find_home
from portal.embedded.postgres import Postgres
from tests.portal.running import CHECKOUT, Portal

RUN = "window.__pwned=1"
LONG = "w" * 180
PAYLOADS = {
    "script": f"<script>{RUN}</script>",
    "closing": f"</script></title></textarea></style><script>{RUN}</script>",
    "handler": f"<img src=x onerror={RUN}>",
    "attribute": f"\" autofocus onfocus={RUN} x='",
    "svg": f"<svg/onload={RUN}><a href='javascript:{RUN}'>",
    "template": "{{7*7}}{% debug %}${7*7}#{7*7}",
    "url": f"javascript:{RUN}//",
    "markdown": f"[go](javascript:{RUN}) <b onclick={RUN}>x</b>",
    "bidi": "\u202egnp.exe\u202c \u2066a\u2069 z\u200bw\u200d\ufeff",
    "object": "__proto__",
    "entity": f"&lt;script&gt;{RUN}&lt;/script&gt;&#x3c;img src=x onerror={RUN}&#x3e;",
    "long": LONG,
}
# names, tags and paths are refused with these; old names and what programs write have them all the same
DISGUISES = {
    "override": "\u202egnp.exe",
    "isolate": "\u2067evil\u2069",
    "marks": "run\u200f1\u200e",
    "width": "ru\u200bn\u2060-\ufeff1",
    "joiner": "run\u200d",
}
# only where control characters can come from: programs
FROM_PROGRAMS = {
    "ansi": f"\x1b[31m<img src=x onerror={RUN}>\x1b[0m\x1b[38;5;300m\x1b[9999C\x1b]0;title\x07",
    "link": (
        f"\x1b]8;;javascript:{RUN}\x1b\\click\x1b]8;;\x1b\\"
        f" \x1b]8;;https://example.org/' onclick={RUN}\x1b\\two\x1b]8;;\x1b\\"
    ),
    "bytes": "\\x00 \\u009b31m \u009b31mred \u0085 \u2028<script>window.__pwned=1</script>",
}
TEXTS = list(PAYLOADS.values())
# what a form's own name, tag or key may hold at most
SHORT = [text[:60] for text in TEXTS if text != PAYLOADS["bidi"]]
PROGRAM = """
import json, os, sys, time
import trainhall
texts, wild = json.load(open("texts.json"))
for step in range(60):
    trainhall.log({text: step / (number + 1) for number, text in enumerate(texts)}, step=step)
    trainhall.log({f"{text}/loss": 1.0 for text in texts[:3]}, step=step)
trainhall.progress(3, 4)
for text in [*texts, *wild]:
    sys.stdout.write(text + "\\n")
    sys.stderr.write("error: " + text + "\\n")
for variable in ("TRAINHALL_OUTPUT_DIR", "TRAINHALL_CHECKPOINT_DIR"):
    for text in texts:
        with open(os.path.join(os.environ[variable], text.replace("/", "_").encode()[:200].decode(errors="ignore")), "w") as file:
            file.write(text)
sys.stdout.flush()
class Odd(Exception):
    pass
time.sleep(float(os.environ["SLEEP"]))
raise Odd(" ".join([*texts, *wild]))
"""


@dataclass
class Planted:
    failed: str
    running: str
    stopped: str
    fetched: str
    draft: str


def plant(portal: Portal) -> Planted:
    """Hostile texts through every door there is for text."""
    alice = portal.manage("create_token", "alice", "--scope", "admin").stdout.strip()
    texts = {f"k{number}": text for number, text in enumerate(TEXTS)}

    def rest(path: str, document: Any, *, method: str = "POST") -> Any:
        return call(portal, method, path, document, token=alice)

    runtime = {
        "slug": "hostile",
        "title": TEXTS[0],
        "description": "\n".join(TEXTS),
        "image": "busybox",
        "launchers": ["plain"],
        "defaults": {"env": {"FROM_RUNTIME": TEXTS[2]}},
        "deprecation": "".join(TEXTS[:4])[:300],
        "metric_rules": [{"pattern": r"<script>(?P<value>[0-9.]+)", "group": TEXTS[2]}],
    }
    status, body = portal.visitor("admin").ask("POST", "/api/v1/runtimes/", document=runtime)
    assert status == 201, body[:800]
    with psycopg.connect(database(portal)) as connection:  # no door writes these: the directory and the cluster do
        connection.execute("UPDATE accounts_namespace SET description = %s WHERE slug = 'vision'", [TEXTS[2]])
    script = f"{TEXTS[0][:40].replace('/', '_')}.py"

    def submit(name: str, sleep: str) -> str:
        document = {
            "namespace": "vision",
            "runtime": "hostile",
            "name": name,
            "command": f"python train.py # {' '.join(TEXTS)}",
            "code": {
                "files": {
                    "train.py": PROGRAM,
                    "texts.json": json.dumps([TEXTS, [*FROM_PROGRAMS.values(), *DISGUISES.values()]]),
                    script: TEXTS[1],
                }
            },
            "parameters": {**texts, "__proto__": TEXTS[4]},
            "env": {**{name.upper(): text for name, text in texts.items()}, "SLEEP": sleep, "__proto__": TEXTS[3]},
            "tags": SHORT,
            "resources": {"cpus": "20m", "memory": "128Mi"},
            "stop_grace": "1s",
        }
        return str(rest("jobs/", document)["id"])

    failed, running = submit(TEXTS[2], "0"), submit("".join(TEXTS)[:200], "600")
    rest(f"jobs/{failed}/", {"notes": "\n\n".join(TEXTS)}, method="PATCH")
    plain = {"namespace": "vision", "runtime": "shell", "command": "sleep 600", "priority": "low", "stop_grace": "1s"}
    stopped = rest("jobs/", {**plain, "name": "to be disguised"})["id"]
    with psycopg.connect(database(portal)) as connection:  # as names were before they were refused
        tags = list(DISGUISES.values())
        values = [f"{PAYLOADS['bidi']} {' '.join(tags)}", json.dumps(tags), "\n\n".join(tags), stopped]
        connection.execute("UPDATE jobs_job SET name = %s, tags = %s, notes = %s WHERE id = %s", values)
    rest(f"jobs/{stopped}/cancel/", {"reason": "".join(TEXTS)[:500]})
    for number, text in enumerate(SHORT):
        place = f"https://git.invalid/{quote(text)}"
        code = {"git": place, "ref": re.sub(r"[\s~^:?*\[\\]|\.\.", "", text)}
        fetched = rest("jobs/", {**plain, "name": text, "code": code})["id"]
        query = f"q={quote(text)}&tag={quote(text)}"
        rest("views/", {"name": text, "query": query, "namespace": "vision" if number % 2 else ""})
    fields = {
        **dict.fromkeys(
            ("name", "command", "script_name", "script", "git_url", "git_ref", "tags", "cpus", "memory"), TEXTS[1]
        ),
        "runtime": TEXTS[0],
    }
    draft = rest("drafts/", {**fields, "param": [{"name": text, "value": text} for text in TEXTS]})["id"]
    portal.wait_for(failed, "failed", seconds=120)
    portal.wait_for(running, "running", seconds=120)
    portal.wait_for(stopped, "cancelled", seconds=60)
    with psycopg.connect(database(portal)) as connection:
        cluster = " ".join([*TEXTS, *FROM_PROGRAMS.values()])
        for job in (failed, running):
            insert = (
                "INSERT INTO jobs_jobevent (job_id, at, kind, attempt, old, new, reason_code, reason, actor)"
                " VALUES (%s, now(), 'cluster', 1, '', '', %s, %s, %s)"
            )
            connection.execute(insert, [job, PAYLOADS["handler"][:40], cluster, PAYLOADS["svg"]])
            workers = (
                "UPDATE jobs_worker SET message = %s, reason = %s"
                " WHERE attempt_id IN (SELECT id FROM jobs_attempt WHERE job_id = %s)"
            )
            connection.execute(workers, [cluster, PAYLOADS["handler"], job])
    return Planted(failed, running, stopped, fetched, draft)


def database(portal: Portal) -> str:
    return Postgres(find_home(CHECKOUT, portal.environment, uid=os.geteuid())).url(DATABASE)


def call(portal: Portal, method: str, path: str, document: Any, *, token: str) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{portal.port}/api/v1/{path}",
        data=json.dumps(document).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{path}: {error.code} {error.read()[:800]!r}") from error
