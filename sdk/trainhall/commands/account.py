"""login, gpus, quota, usage: who one is, and what there is to be had."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Any

from trainhall.client import Client, quote
from trainhall.errors import TrainhallError
from trainhall.settings import load, save
from trainhall.tables import age, show_json, show_table


def add_commands(verbs: Any, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("login", parents=[common], help="keep the portal's address and your token")
    verb.add_argument("url", nargs="?", help="such as https://portal.example.org")
    verb.add_argument("--token-stdin", action="store_true", help="read the token from standard input")
    verb.set_defaults(run=login)
    verb = verbs.add_parser("gpus", parents=[common], help="which GPUs there are, and how many are free")
    verb.set_defaults(run=gpus)
    verb = verbs.add_parser("quota", parents=[common], help="what your namespaces may use at one time")
    verb.add_argument("-n", "--namespace")
    verb.set_defaults(run=quota)
    verb = verbs.add_parser("usage", parents=[common], help="what a namespace has used")
    verb.add_argument("-n", "--namespace", required=True)
    verb.set_defaults(run=usage)


def login(chosen: argparse.Namespace) -> None:
    url = (chosen.url or load().get("url") or "").rstrip("/")
    if not url:
        raise TrainhallError("usage", "Say which portal: trainhall login https://portal.example.org")
    if "://" not in url:
        url = "https://" + url
    if chosen.token_stdin or not sys.stdin.isatty():
        token = sys.stdin.readline().strip()
    else:
        token = getpass.getpass("Token (make one at {}/me/tokens/): ".format(url)).strip()
    if not token:
        raise TrainhallError("usage", "No token was given.")
    me = Client(url, token).get("tokens/current/")
    path = save({"url": url, "token": token, "username": str(me.get("username", ""))})
    if chosen.json:
        show_json({**me, "url": url})
        return
    until = ", until {}".format(me["expires"]) if me.get("expires") else ""
    print(
        "Logged in to {} as {} (scope {}{}). Kept in {}.".format(url, me.get("username"), me.get("scope"), until, path)
    )


def gpus(chosen: argparse.Namespace) -> None:
    found = Client().get("clusters/")
    if chosen.json:
        show_json(found)
        return
    rows = []
    for cluster in found.get("results", []):
        have = cluster.get("gpus") or {}
        note = "virtual" if have.get("virtual") else ""
        rows.append((cluster.get("name"), have.get("free"), have.get("total"), note, age(cluster.get("seen_at"))))
    show_table(("CLUSTER", "FREE", "TOTAL", "", "SEEN"), rows)


def quota(chosen: argparse.Namespace) -> None:
    client = Client()
    if chosen.namespace:
        names = [chosen.namespace]
    else:
        names = [str(row["name"]) for row in client.get("namespaces/").get("results", [])]
    answers = [client.get("namespaces/{}/quota/".format(quote(name))) for name in names]
    if chosen.json:
        show_json({"results": answers})
        return
    limits = [answer.get("limits") or {} for answer in answers]
    columns = sorted({name for limit in limits for name in limit})
    rows = [[name, *(_limit(limit.get(column)) for column in columns)] for name, limit in zip(names, limits)]  # noqa: B905 - Python 3.8
    show_table(["NAMESPACE", *(column.upper() for column in columns)], rows)


def usage(chosen: argparse.Namespace) -> None:
    show_json(Client().get("namespaces/{}/usage/".format(quote(chosen.namespace))))


def _limit(value: Any) -> str:
    return "no limit" if value is None else str(value)
