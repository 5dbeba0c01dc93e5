"""How a request proves who it is: password, session, or a personal token with a scope."""

from __future__ import annotations

from django.contrib.auth.backends import BaseBackend
from knox.auth import TokenAuthentication
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import BasePermission


class LocalBackend(BaseBackend):
    pass


class ApiTokenAuthentication(TokenAuthentication):
    pass


class ApiSessionAuthentication(SessionAuthentication):
    pass


class ScopePermission(BasePermission):
    pass
