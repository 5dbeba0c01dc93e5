"""REST of the files a job left and of the code it ran; downloads stream and resume."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from jobs.api.jobs import ANY_OBJECT
from jobs.documents import iso
from jobs.downloads import archive_response, file_response, zip_response
from jobs.exceptions import ClusterUnavailable, WrongState
from jobs.keeping import kept_until
from jobs.run_files import KINDS, list_files, open_file
from jobs.scope import visible_job
from jobs.zipping import MOST_FILES, TooManyFiles


class JobFilesView(APIView):
    @extend_schema(operation_id="jobs_files", responses={200: ANY_OBJECT, 404: ANY_OBJECT})
    def get(self, request: Request, job_id: str) -> Response:
        """What it left: path, kind (checkpoint, output, events), size in bytes, and where to fetch it."""
        job = visible_job(request, job_id)
        listing = list_files(job)
        return Response(
            {
                "results": [
                    {
                        "path": file.path,
                        "kind": file.kind,
                        "size": file.size,
                        "modified": iso(file.modified),
                        "step": file.step,
                        "url": f"{settings.TRAINHALL_URL}{reverse('api-jobs:job-file', args=[job.pk, file.path])}",
                    }
                    for file in listing.files
                ],
                "is_cut": listing.is_cut,
                "total_size": listing.total,
                "zip_url": f"{settings.TRAINHALL_URL}{reverse('api-jobs:job-files-zip', args=[job.pk])}",
                "problem": listing.problem,
                "kept_until": iso(kept_until(job)),
                "removed_at": iso(job.cleaned_at),
            }
        )


class JobFilesZipView(APIView):
    @extend_schema(
        operation_id="jobs_files_zip",
        parameters=[OpenApiParameter("kind", str, enum=list(KINDS.values()), description="Only these; else all.")],
        responses={(200, "application/zip"): OpenApiTypes.BINARY, 404: ANY_OBJECT, 409: ANY_OBJECT, 413: ANY_OBJECT},
    )
    def get(self, request: Request, job_id: str) -> HttpResponseBase:
        """All it left as one zip, made while it is sent. Of a job that is over its exact size comes first."""
        job = visible_job(request, job_id)
        listing = list_files(job, limit=MOST_FILES)
        if listing.problem:
            raise ClusterUnavailable(listing.problem)
        kind = request.query_params.get("kind")
        files = [file for file in listing.files if kind in (None, "", file.kind)]
        if not files:
            raise WrongState(_("There is no such file."))
        if listing.is_cut:
            raise TooManyFiles
        return zip_response(job, files)


class JobFileView(APIView):
    @extend_schema(
        operation_id="jobs_file",
        responses={200: OpenApiTypes.BINARY, 206: OpenApiTypes.BINARY, 404: ANY_OBJECT, 416: None},
    )
    def get(self, request: Request, job_id: str, path: str) -> HttpResponseBase:
        """One file, or the part that a Range header asks for."""
        job = visible_job(request, job_id)
        try:
            file = open_file(job, path)
        except FileNotFoundError as error:
            raise Http404 from error
        return file_response(file, name=path.rpartition("/")[2], request=request)


class JobCodeView(APIView):
    @extend_schema(operation_id="jobs_code", responses={200: OpenApiTypes.BINARY, 404: ANY_OBJECT})
    def get(self, request: Request, job_id: str) -> HttpResponseBase:
        """The code it ran, as a tar.gz."""
        job = visible_job(request, job_id)
        if job.code is None:
            raise Http404
        return archive_response(job.code, name=f"{job.pk}-code.tar.gz", request=request)
