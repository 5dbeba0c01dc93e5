"""What people type on the pages of this app."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import ApiToken
from accounts.tokens import LONGEST_DAYS, USUAL_DAYS


class LoginForm(forms.Form):
    """The password is taken as typed: blanks at its ends belong to it."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True, "autocapitalize": "none"}),
    )
    password = forms.CharField(
        label=_("Password"),
        max_length=4096,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    keep = forms.BooleanField(label=_("Keep me signed in for 12 h on this device"), required=False, initial=True)


class TokenForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=100)
    scope = forms.ChoiceField(label=_("May"), choices=ApiToken.SCOPES, initial="submit")
    days = forms.IntegerField(label=_("Days"), min_value=1, max_value=LONGEST_DAYS, initial=USUAL_DAYS)
    namespace = forms.ChoiceField(label=_("Works in"), required=False)

    def __init__(self, *given: Any, namespaces: Iterable[str], **more: Any) -> None:
        super().__init__(*given, **more)
        field = cast(forms.ChoiceField, self.fields["namespace"])
        field.choices = [("", _("all my namespaces")), *((slug, slug) for slug in namespaces)]
