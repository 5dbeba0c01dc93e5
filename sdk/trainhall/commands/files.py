"""files, cp: what a job left, and how to have it here."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from trainhall.client import Client
from trainhall.errors import TrainhallError
from trainhall.packing import readable
from trainhall.tables import age, show_json, show_table

KINDS = ("checkpoint", "output", "events")


def add_commands(verbs: Any, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("files", parents=[common], help="what a job left")
    verb.add_argument("job")
    verb.add_argument("--kind", choices=KINDS, help="only these")
    verb.set_defaults(run=files)
    verb = verbs.add_parser(
        "cp",
        parents=[common],
        help="fetch files of a job",
        description="trainhall cp JOB:out/model.pt . fetches one file, JOB:ckpt a folder, JOB: everything. "
        "A download that broke off goes on where it was.",
    )
    verb.add_argument("source", metavar="JOB:PATH")
    verb.add_argument("destination", metavar="DEST")
    verb.add_argument("--force", action="store_true", help="replace what is there")
    verb.set_defaults(run=cp)


def files(chosen: argparse.Namespace) -> None:
    from trainhall.downloads import list_files

    client = Client()
    listing = list_files(client.job(chosen.job))
    found = [file for file in listing.get("results", []) if chosen.kind in (None, file["kind"])]
    if chosen.json:
        show_json({**listing, "results": found})
        return
    show_table(
        ("PATH", "SIZE", "AGE"), [(file["path"], readable(file["size"]), age(file["modified"])) for file in found]
    )
    if listing.get("is_cut"):
        print("trainhall: there are more than are listed.", file=sys.stderr)
    if listing.get("removed_at"):
        print("trainhall: they were removed at {}.".format(listing["removed_at"]), file=sys.stderr)
    elif found and listing.get("kept_until"):
        print("trainhall: they are kept until {}.".format(listing["kept_until"]), file=sys.stderr)


def cp(chosen: argparse.Namespace) -> None:
    from trainhall.downloads import download, list_files, refuse_to_replace, wanted_of

    job_id, colon, path = chosen.source.partition(":")
    if not (job_id and colon):
        raise TrainhallError("usage", "Say which file of which job: trainhall cp JOB:out/model.pt .")
    client = Client()
    client.agent = "trainhall-cli/0.1"
    wanted = wanted_of(list_files(client.job(job_id)), path, chosen.destination)
    for one in wanted:  # before the first byte, so that a refusal leaves nothing half done
        refuse_to_replace(one.target, force=chosen.force)
    if len(wanted) > 1:
        total = readable(sum(one.size for one in wanted))
        print("{} files, {}".format(len(wanted), total), file=sys.stderr)
    done = []
    for one in wanted:
        size = download(client, job_id, one, force=chosen.force)
        done.append({"path": one.path, "target": one.target, "size": size})
        if not chosen.json:
            print("{}  {}".format(one.target, readable(size)))
    if chosen.json:
        show_json({"results": done})
