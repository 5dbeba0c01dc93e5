"""The job list as a file for a spreadsheet."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_GET

from jobs.exceptions import SpecError
from jobs.lists.export import csv_response
from jobs.scope import person


@require_GET
def jobs_csv(request: HttpRequest) -> HttpResponseBase:
    try:
        return csv_response(request.GET, user=person(request), request=request, marked=True)
    except SpecError:  # the list says in words what is wrong
        return redirect(f"{reverse('jobs:list')}?{request.GET.urlencode()}")
