"""Sessions of people who came through the provider; they end with the account, and all of them where the door is closed."""

from __future__ import annotations

from django.contrib.auth.backends import BaseBackend

from accounts.models import User


class ProviderBackend(BaseBackend):
    """Takes no password, so that the form of the sign-in page is no way in."""

    def get_user(self, user_id: int) -> User | None:
        return User.objects.filter(pk=user_id, is_active=True).first()
