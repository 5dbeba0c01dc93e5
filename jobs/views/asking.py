"""What the form asks while one types: will it start, what does it become, and how do its two sides stay in step."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.models import Namespace
from jobs import lineage, shared_volumes, submission
from jobs.exceptions import JobError, SpecError
from jobs.form import code_names, posted
from jobs.form.commandline import submit_line
from jobs.form.fields import Fields, fields_of
from jobs.outlook import look_ahead
from jobs.parsing import Parsed
from jobs.preview import manifests_to_be
from jobs.quoting import fill_in, places
from jobs.reading import Document
from jobs.scope import person
from jobs.views.new import parent_in
from jobs.yaml_text import to_yaml


def _asked(request: HttpRequest) -> tuple[Parsed, Namespace]:
    """The form as it stands, without its files: what forecast and preview ask about."""
    values = posted.typed(request.POST)
    # neither answer depends on the values of secrets, which a clone or a draft comes without
    secrets = [(name, value or "-") for name, value in posted.pairs_of(request.POST, "secret")]
    parsed = submission.check(posted.document_in(values, secrets=secrets))
    namespace = submission.namespace_to_submit(person(request), parsed.spec.namespace)
    shared_volumes.filled_in(parsed.spec, namespace=namespace, user=person(request))
    return parsed, namespace


@require_POST
def job_forecast(request: HttpRequest) -> HttpResponse:
    """Fragment: will the job of the form start now?"""
    try:
        parsed, namespace = _asked(request)
        will = look_ahead(parsed, namespace=namespace, user=person(request))
    except JobError as error:
        wrong = posted.errors_by_field(error.fields)
        is_untouched = set(wrong) == {"command"} and not request.POST.get("command", "").strip()
        about = {"problem": posted.sentence(error.message), "wrong": wrong, "is_untouched": is_untouched}
        return render(request, "jobs/_forecast.html", {"forecast": None, **about})
    return render(request, "jobs/_forecast.html", {"forecast": will, "spec": parsed.spec, "namespace": namespace})


@require_POST
def job_preview(request: HttpRequest) -> HttpResponse:
    """Fragment: the exact objects the form becomes."""
    try:
        parsed, namespace = _asked(request)
        shown = manifests_to_be(parsed, namespace=namespace, user=person(request))
    except JobError as error:
        return render(request, "jobs/_manifest.html", {"manifest": "", "problem": error.message})
    return render(request, "jobs/_manifest.html", {"manifest": to_yaml(shown)})


@require_POST
def job_document(request: HttpRequest) -> JsonResponse:
    """The side of the form that was not changed last: the YAML of its fields, or the fields of its YAML; and what the
    document says in other words: its command filled in, the command line, and what its parent has otherwise."""
    values = posted.typed(request.POST)
    by_yaml, pasted = values["written"] == "yaml", bool(values["env_text"].strip())
    answer: dict[str, Any] = {"errors": {}, "command": "", "hints": [], "changes": None, "cli": "", "extra": []}
    try:
        document = posted.document_in(values, secrets=posted.pairs_of(request.POST, "secret"))
        if by_yaml or pasted:
            answer["fields"] = fields_of(posted.without_secrets(document.data))
        if by_yaml:
            answer |= _typed_secrets(document, values)
        else:
            answer["yaml"] = posted.shown_yaml(values, document)
    except SpecError as error:
        by_field = posted.errors_by_field(error.fields) or {"form": [error.message]}
        return JsonResponse({**answer, "errors": by_field})
    try:
        spec = submission.check(document).spec
        if spec.volumes:
            user = person(request)
            namespace = submission.namespace_to_submit(user, spec.namespace)
            shared_volumes.filled_in(spec, namespace=namespace, user=user)
    except JobError as error:
        answer["errors"] = posted.errors_by_field(error.fields) or {"form": [posted.sentence(error.message)]}
        if by_yaml:
            wrong = [(field, text) for field, texts in error.fields.items() for text in texts]
            answer["yaml_errors"] = [f"{field}: {posted.plain(text)}" for field, text in wrong]
    answer["command"], answer["hints"] = _rendered(document.data)
    names = code_names.names_of(person(request), document.data)
    answer["hints"] += code_names.missing(document.data.get("command"), names)
    answer["cli"] = submit_line(document.data)
    answer["extra"] = posted.extra_shown(fields_of(document.data), answer["errors"])
    if parent := parent_in(person(request), values):
        answer["changes"] = lineage.as_document(lineage.changes_from(parent, document.data))
    return JsonResponse(answer)


def _typed_secrets(document: Document, values: Fields) -> dict[str, Any]:
    """Values of secrets that were written into the YAML move to their fields, which do not show them."""
    found = posted.secrets_in(document)
    text = document.without_values_of_secrets()
    moved = {name: value for name, value in found.items() if value in values["yaml"]}
    return {"secrets": moved, "yaml": text} if moved else {}


def _rendered(data: dict[str, Any]) -> tuple[str, list[str]]:
    """The command as the shell gets it, where it can be said; and parameters that it does not use."""
    command, parameters = data.get("command"), data.get("parameters") or {}
    if not isinstance(command, str) or not isinstance(parameters, dict):
        return "", []
    used = {place.name for place in places(command)}
    hints = [
        _("The command does not use the parameter %(name)s: write {{%(name)s}} where it belongs.") % {"name": name}
        for name in parameters
        if name and name not in used
    ]
    try:
        return fill_in(command, parameters) if used else "", hints
    except (KeyError, ValueError):
        return "", hints  # the errors name it
