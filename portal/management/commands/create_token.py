"""`manage.py create_token USER`: a personal token for scripts and tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, transaction

from accounts import audit
from accounts.models import ApiToken, User


class Command(BaseCommand):
    help = "Print a new personal API token, and nothing else. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="The user name.")
        parser.add_argument("--scope", choices=[scope for scope, _label in ApiToken.SCOPES], default="submit")
        parser.add_argument("--days", type=int, default=90, help="Valid for so many days, at most 365.")
        parser.add_argument("--name", default="made by create_token")

    def handle(self, *_args: Any, **options: Any) -> None:
        if not 1 <= options["days"] <= 365:
            raise CommandError("--days must be from 1 to 365.")
        try:
            user = User.objects.filter(username=options["user"], is_active=True).first()
        except OperationalError as error:
            raise CommandError(f"The database does not answer; is the portal running? {error}".strip()) from error
        if user is None:
            raise CommandError(f"There is no active user {options['user']!r}.")
        with transaction.atomic():
            token, text = ApiToken.objects.create(
                user=user, expiry=timedelta(days=options["days"]), name=options["name"], scope=options["scope"]
            )
            audit.record(None, "token.create", target=user.username, after={"scope": token.scope, "name": token.name})
        self.stdout.write(text)
