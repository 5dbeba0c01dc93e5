"""`manage.py create_admin NAME`: an account of the portal's own with all rights, for the first day and for outages."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, transaction

from accounts import audit, people
from accounts.models import User
from accounts.roles import SiteRole

SHORTEST = 12  # characters of a password


class Command(BaseCommand):
    help = "Make a local admin, who needs no directory; asks for the password, or reads it from standard input."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="The user name; none that the directory knows.")

    def handle(self, *_args: Any, **options: Any) -> None:
        name = options["user"]
        try:
            if User.objects.filter(username=name).exists():
                raise CommandError(f"There is an account {name!r} already.")
        except OperationalError as error:
            raise CommandError(f"The database does not answer: {error}".strip()) from error
        password = _password()
        if len(password) < SHORTEST:
            raise CommandError(f"The password needs at least {SHORTEST} characters.")
        with transaction.atomic():
            person = people.ensure_person(name, password=password, display_name=name, site_role=SiteRole.ADMIN)
            audit.record(None, "user.create", target=person.username, after={"site_role": "admin", "source": "local"})
        self.stdout.write(f"{person.username} is an admin of the site.")


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password = getpass("Password: ")
    if password != getpass("Again: "):
        raise CommandError("The two are not the same.")
    return password
