"""submit: from a file, or from options and a command, to a job."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, Dict, List

from trainhall.client import Client, Job
from trainhall.commands.watching import follow
from trainhall.documents import Document, command_of, read_document, read_files
from trainhall.errors import TrainhallError
from trainhall.tables import show_json

USAGE_CODES = {"usage", "bad_document", "two_codes", "not_text", "bad_code", "code_too_large", "yaml_as_it_is"}
LISTED_ABOVE = 10 * 2**20  # bytes; from there the biggest files are named

# option, field of the document, type
SIMPLE = (
    ("--namespace", "namespace", str),
    ("--name", "name", str),
    ("--runtime", "runtime", str),
    ("--image", "image", str),
    ("--launcher", "launcher", str),
    ("--priority", "priority", str),
    ("--time-limit", "time_limit", str),
    ("--stop-grace", "stop_grace", str),
    ("--retries", "retries", int),
)
RESOURCES = (
    ("--workers", "workers", int),
    ("--gpus", "gpus", int),
    ("--gpu-type", "gpu_type", str),
    ("--cpus", "cpus", str),
    ("--memory", "memory", str),
    ("--shm", "shm", str),
    ("--parameter-servers", "parameter_servers", int),
)


def add_commands(verbs: Any, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser(
        "submit",
        parents=[common],
        help="submit a job",
        usage="trainhall submit [job.yaml] [options] [-- command …]",
        description="Submit a job document, or options and a command after --.",
    )
    verb.add_argument("file", nargs="?", help="a job document: JSON, or YAML, which is sent as it is")
    for option, field, kind in SIMPLE:
        short = ["-n"] if field == "namespace" else []
        verb.add_argument(*short, option, type=kind, dest="field_" + field, metavar=field.upper())
    for option, field, kind in RESOURCES:
        verb.add_argument(option, type=kind, dest="resource_" + field, metavar=field.upper())
    verb.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    verb.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="for {{NAME}} in the command")
    verb.add_argument(
        "--secret", action="append", default=[], metavar="NAME", help="its value is taken from your own environment"
    )
    verb.add_argument(
        "--volume",
        action="append",
        default=[],
        metavar="NAME[:PATH][:ro]",
        help="one that the namespace is offered; without PATH where it is offered",
    )
    verb.add_argument("--tag", action="append", default=[])
    verb.add_argument("--notify", action="append", default=[], choices=["started", "finished", "failed"])
    verb.add_argument("--no-preemption", action="store_true", help="never stopped for another job")
    verb.add_argument(
        "--code", action="append", default=[], metavar="FILE_OR_DIR", help="text files go inline, a folder is packed"
    )
    verb.add_argument("--git", metavar="URL", help="code from a git repository")
    verb.add_argument("--ref", help="branch, tag or commit of it")
    verb.add_argument("--explain", action="store_true", help="say when it would start; submit nothing")
    verb.add_argument("--wait", action="store_true", help="show the logs and end with the job's exit code")
    verb.set_defaults(run=submit)


def submit(chosen: argparse.Namespace) -> int:
    options = fields_of(chosen)
    if not chosen.file and not options:
        raise TrainhallError("usage", "Give a job document, or options and a command: trainhall submit --help")
    document = read_document(chosen.file) if chosen.file else Document({})
    if options and document.data is None:
        raise TrainhallError(
            "usage",
            "{} is YAML, which is sent as it is: change it there. With it only --code, --git, --wait, --explain and --json "
            "can be used; {} cannot.".format(chosen.file, ", ".join(sorted(options))),
        )
    if options:
        document = Document(merged(document.data or {}, options))
    client = Client()
    client.agent = "trainhall-cli/0.1"
    document = add_code(client, document, chosen)
    if chosen.explain:
        return explain(client, document, chosen.json)
    job = client.submit(document)
    announce(job, chosen.json and not chosen.wait)
    return follow(job, as_json=chosen.json) if chosen.wait else 0


def fields_of(chosen: argparse.Namespace) -> Dict[str, Any]:
    """The options as a part of a job document."""
    fields: Dict[str, Any] = {}
    for name, value in vars(chosen).items():
        if name.startswith("field_") and value is not None:
            fields[name[len("field_") :]] = value
    resources = {
        name[len("resource_") :]: value
        for name, value in vars(chosen).items()
        if name.startswith("resource_") and value is not None
    }
    if resources:
        fields["resources"] = resources
    if chosen.env:
        fields["env"] = dict(_pair(text, "--env") for text in chosen.env)
    if chosen.param:
        fields["parameters"] = {name: _scalar(text) for name, text in (_pair(text, "--param") for text in chosen.param)}
    if chosen.secret:
        fields["secrets"] = {name: {"value": from_environment(name)} for name in chosen.secret}
    if chosen.volume:
        fields["volumes"] = [_volume(text) for text in chosen.volume]
    if chosen.tag:
        fields["tags"] = chosen.tag
    if chosen.notify:
        fields["notify"] = chosen.notify
    if chosen.no_preemption:
        fields["preemptible"] = False
    if chosen.command_words:
        fields["command"] = command_of(chosen.command_words)
    return fields


def _volume(text: str) -> Dict[str, Any]:
    name, *places = text.split(":")
    mode = places.pop() if places and places[-1] in ("ro", "rw") else ""
    if not name or len(places) > 1 or "" in places:
        raise TrainhallError("usage", "--volume takes NAME, NAME:PATH or NAME:PATH:ro, not {!r}.".format(text))
    volume: Dict[str, Any] = {"name": name}
    if places:
        volume["path"] = places[0]
    if mode:
        volume["read_only"] = mode == "ro"
    return volume


def merged(document: Dict[str, Any], options: Dict[str, Any]) -> Dict[str, Any]:
    """The options win; resources, env, parameters and secrets are joined name by name."""
    result = dict(document)
    for name, value in options.items():
        before = document.get(name)
        result[name] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def add_code(client: Client, document: Document, chosen: argparse.Namespace) -> Document:
    if chosen.git:
        if chosen.code:
            raise TrainhallError("usage", "Use --code or --git, not both.")
        return document.with_code({"git": chosen.git, **({"ref": chosen.ref} if chosen.ref else {})})
    if not chosen.code:
        return document
    folders = [path for path in chosen.code if os.path.isdir(path)]
    if not folders:
        return document.with_code({"files": read_files(chosen.code)})
    if len(chosen.code) > 1:
        raise TrainhallError("usage", "--code takes one folder, or files; not both.")
    document.with_code({})  # a document that names code already is refused before anything is sent
    if chosen.explain:
        return document  # when it starts does not depend on the code
    return document.with_code({"upload": send_folder(client, folders[0])})


def send_folder(client: Client, folder: str) -> str:
    from trainhall.packing import biggest_of, pack, readable

    packed = pack(folder)
    print("{}: {} files, {}".format(folder, len(packed.files), readable(packed.size)), file=sys.stderr)
    if packed.size > LISTED_ABOVE:
        for path, size in biggest_of(packed.files, 10):
            print("  {:>9}  {}".format(readable(size), path), file=sys.stderr)
    for path in packed.skipped:
        print("  left out: {} is a link to somewhere else".format(path), file=sys.stderr)
    return str(client.send_archive(packed.body)["sha256"])


def explain(client: Client, document: Document, as_json: bool) -> int:
    said = client.explain(document)
    if as_json:
        show_json(said)
    else:
        for reason in said.get("reasons", []):
            print(reason.get("text", ""))
        if said.get("alternatives"):
            print("What would fit: {}.".format("; ".join(said["alternatives"])))
        if said.get("charts"):
            print("Its charts, until somebody makes a layout of their own: {}".format(" ".join(said["charts"])))
        print("")
        print(document.text.rstrip() if document.data is None else document.encode().decode())
    return 1 if said.get("verdict") == "never" else 0


def announce(job: Job, as_json: bool) -> None:
    if as_json:
        show_json(job.data)
        return
    # with --wait standard output is the job's own
    print(job.id)
    print(job.url, file=sys.stderr)
    print("{}{}".format(job.status, ": " + job.reason if job.reason else ""), file=sys.stderr)


def _pair(text: str, option: str) -> List[str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise TrainhallError("usage", "{} takes NAME=VALUE, not {!r}.".format(option, text))
    return [name, value]


def _scalar(text: str) -> Any:
    """A number where it reads as one and is written the way it was typed; else the text."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if str(value) == text:
            return value
    return {"true": True, "false": False}.get(text, text)


def from_environment(name: str) -> str:
    try:
        return os.environ[name]
    except KeyError:
        raise TrainhallError("usage", "--secret {0}: your environment has no {0}.".format(name)) from None
