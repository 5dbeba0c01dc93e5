"""Saved views: a query string of the job list with a name, for oneself or shared in a namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.http import Http404, HttpRequest, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from accounts import audit
from accounts.access import get_namespace, may, visible_namespace_ids
from accounts.disguise import hidden_in
from accounts.models import Namespace, User
from accounts.roles import Verb
from jobs.exceptions import NotAllowed, SpecError, WrongState
from jobs.lists import columns
from jobs.lists.filters import only_filter, read_filter
from jobs.models import SavedView

NAME_LENGTH, QUERY_LENGTH = 60, 1000
MOST = 200  # of one person
BUILT_IN = (
    (_lazy("My running"), "user=me&status=running%2Cstarting&sort=running"),
    (_lazy("Waiting"), "status=queued&sort=waiting"),
    (_lazy("Failed 24 h"), "status=failed&since=24h"),
)


@dataclass(frozen=True, slots=True)
class Offered:
    """A view as the list shows it; built-in ones have no id."""

    name: str
    query: str
    id: int | None = None
    namespace: str = ""
    owner: str = ""
    may_change: bool = False


def views_for(user: User) -> Any:
    """One's own, and those shared in the namespaces one may look into."""
    return _views_for(user, visible_namespace_ids(user))


def _views_for(user: User, visible: frozenset[int] | None) -> Any:
    shared = Q(namespace__isnull=False) if visible is None else Q(namespace_id__in=visible)
    return SavedView.objects.filter(Q(owner=user) | shared).select_related("owner", "namespace")


def visible_view(user: User, view_id: int) -> SavedView:
    found: SavedView | None = views_for(user).filter(pk=view_id).first() if view_id < 2**63 else None
    if found is None:
        raise Http404
    return found


def offered(user: User, *, visible: frozenset[int] | None) -> list[Offered]:
    """`visible`: the namespaces one may look into, as access.visible_namespace_ids tells them."""
    built_in = [Offered(str(name), query) for name, query in BUILT_IN]
    return built_in + [
        Offered(
            view.name,
            view.query,
            id=view.pk,
            namespace=view.namespace.slug if view.namespace else "",
            owner=view.owner.username,
            may_change=view.owner_id == user.pk,
        )
        for view in _views_for(user, visible)
    ]


def view_document(view: SavedView) -> dict[str, Any]:
    return {
        "id": view.pk,
        "name": view.name,
        "query": view.query,
        "namespace": view.namespace.slug if view.namespace else None,
        "owner": view.owner.username,
    }


def save(*, user: User, name: str, query: str, namespace: str = "", request: HttpRequest | None = None) -> SavedView:
    """Keep a view. The same name and query again is the same view."""
    name, query = _name(name), clean_query(query)
    place = _place(user, namespace)
    if earlier := SavedView.objects.filter(owner=user, name=name).select_related("owner", "namespace").first():
        if earlier.query == query and earlier.namespace_id == (place.pk if place else None):
            return earlier
        raise _name_is_taken(name)
    if SavedView.objects.filter(owner=user).count() >= MOST:
        raise WrongState(_("You have %(most)s saved views; delete one first.") % {"most": MOST})
    try:
        with transaction.atomic():
            view = SavedView.objects.create(owner=user, name=name, query=query, namespace=place)
            _audit(user, "view.save", view, before=None, after=view_document(view), request=request)
    except IntegrityError as error:  # two windows at the same moment
        raise _name_is_taken(name) from error
    return view


def change(
    view: SavedView,
    *,
    user: User,
    name: str | None = None,
    query: str | None = None,
    namespace: str | None = None,
    request: HttpRequest | None = None,
) -> SavedView:
    """Rename, share or point elsewhere; None leaves as it is, an empty namespace ends the sharing."""
    _may_change(user, view)
    if namespace is None and view.namespace is not None:
        _place(user, view.namespace.slug)  # who left it may take the view back, and tells its people nothing more
    before = view_document(view)
    if name is not None:
        view.name = _name(name)
    if query is not None:
        view.query = clean_query(query)
    if namespace is not None:
        view.namespace = _place(user, namespace)
    try:
        with transaction.atomic():
            view.save()
            after = view_document(view)
            if before["namespace"] == after["namespace"]:
                _audit(user, "view.change", view, before=before, after=after, request=request)
            else:
                # a row for each place, as who leads one of them may not know of the other
                _audit(user, "view.change", view, before=before, after=None, request=request)
                _audit(user, "view.change", view, before=None, after=after, request=request)
    except IntegrityError as error:
        raise _name_is_taken(view.name) from error
    return view


def remove(view: SavedView, *, user: User, request: HttpRequest | None = None) -> None:
    _may_change(user, view)
    with transaction.atomic():
        _audit(user, "view.delete", view, before=view_document(view), after=None, request=request)
        view.delete()


def clean_query(text: str) -> str:
    """The query string without what is no part of a view, such as the page; raise SpecError where a filter is wrong."""
    given = QueryDict(text.lstrip("?"))
    read_filter(given)
    kept = only_filter(given)
    for name in columns.PARAMETERS:
        if words := [word for value in given.getlist(name) for word in value.split(",") if word]:
            kept[name] = ",".join(words)
    query = kept.urlencode()
    if len(query) > QUERY_LENGTH:
        wrong = _("is longer than %(most)s characters") % {"most": QUERY_LENGTH}
        raise SpecError(f"query: {wrong}", fields={"query": [wrong]})
    return str(query)


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not name or len(name) > NAME_LENGTH or "\0" in name:
        words = _("must have 1 to %(most)s characters") % {"most": NAME_LENGTH}
        raise SpecError(f"name: {words}", fields={"name": [words]})
    if hidden := hidden_in(name):
        words = _("holds %(code)s, which nobody sees") % {"code": hidden}
        raise SpecError(f"name: {words}", fields={"name": [words]})
    return name


def _place(user: User, slug: str) -> Namespace | None:
    if not slug:
        return None
    try:
        namespace = get_namespace(user, slug)
    except Http404:
        words = _("there is no namespace %(name)s in which you may share") % {"name": repr(slug)}
        raise SpecError(f"namespace: {words}", fields={"namespace": [words]}) from None
    if not may(user, Verb.SUBMIT, namespace):
        raise NotAllowed(_("You may look at %(name)s, but not share views there.") % {"name": slug})
    return namespace


def _may_change(user: User, view: SavedView) -> None:
    """Raise NotAllowed unless it is one's own, or shared where one leads."""
    if view.owner_id == user.pk:
        return
    if view.namespace is None or not may(user, Verb.MANAGE, view.namespace):
        raise NotAllowed(_("Only who made this view, a lead of its namespace or an admin may do this."))


def _name_is_taken(name: str) -> WrongState:
    return WrongState(_("You have a view named %(name)s already.") % {"name": name}, fields={"name": [_("is taken")]})


def _audit(user: User, action: str, view: SavedView, *, before: Any, after: Any, request: HttpRequest | None) -> None:
    audit.record(
        user,
        action,
        target=str(view.pk or ""),
        namespace=(after or before)["namespace"] or "",
        before=before,
        after=after,
        request=request,
    )
