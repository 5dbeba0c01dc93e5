"""Bodies that stream: code for pods, and files for people, one by one, where they go on after a cut, or all as one zip."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Generator, Sequence
from typing import IO

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_not_required
from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header, http_date
from django.views.decorators.http import require_GET
from rest_framework.request import Request

from jobs import zipping
from jobs.credentials import verify_code
from jobs.models import Attempt, CodeArchive, Job
from jobs.ranges import Unsatisfiable, wanted_part
from jobs.run_files import Left, open_file

logger = logging.getLogger(__name__)

CHUNK = 256 * 2**10


@login_not_required
@require_GET
def code(request: HttpRequest, sha256: str) -> HttpResponseBase:
    """What pods fetch, by a signed URL that needs no other proof, while the attempt it was signed for lives."""
    query = {name: request.GET.get(name, "") for name in ("job", "attempt", "expires", "signature")}
    if not verify_code(sha256, query["job"], query["attempt"], query["expires"], query["signature"]):
        raise Http404
    archive = CodeArchive.objects.filter(pk=sha256).first()
    alive = Attempt.objects.filter(job_id=query["job"], number=int(query["attempt"]), ended_at=None).exists()
    if archive is None or not alive:
        raise Http404
    return archive_response(archive, name=f"{sha256[:12]}.tar.gz", request=request)


def archive_response(archive: CodeArchive, *, name: str, request: HttpRequest | Request) -> HttpResponseBase:
    stored = default_storage.open(archive.storage_name)
    response = _part_of(stored, size=archive.size, etag=f'"{archive.sha256}"', request=request)
    response["Content-Type"] = "application/gzip"
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return response


def file_response(file: IO[bytes], *, name: str, request: HttpRequest | Request) -> HttpResponseBase:
    """A file of a job: always saved, never shown, since it may hold anything."""
    info = os.fstat(file.fileno())
    etag = f'"{info.st_mtime_ns:x}-{info.st_size:x}"'
    response = _part_of(file, size=info.st_size, etag=etag, request=request)
    response["Last-Modified"] = http_date(info.st_mtime)
    response["Content-Type"] = "application/octet-stream"
    response["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return response


def zip_response(job: Job, files: Sequence[Left]) -> HttpResponseBase:
    """Files of a job as one zip; its exact size comes first where the job can change nothing any more."""
    entries = zipping.entries_of(files, folder=job.pk)
    pieces = zipping.stream(entries, lambda path: open_file(job, path), exact=job.is_final)
    response = StreamingHttpResponse(_all_of(pieces, job.pk), content_type="application/zip")
    if job.is_final:
        response["Content-Length"] = str(zipping.size_of(entries))
    response["Content-Disposition"] = content_disposition_header(True, f"{job.pk}-files.zip") or "attachment"
    return response


async def _all_of(pieces: Generator[bytes, None, None], job_id: str) -> AsyncIterator[bytes]:
    try:
        while piece := await sync_to_async(lambda: next(pieces, b""))():
            yield piece
    except zipping.Changed as changed:
        # short of its Content-Length, as a single file would be
        logger.warning("The zip of job %s ends early: %s changed while it was sent", job_id, changed)
    finally:
        pieces.close()


def _part_of(file: IO[bytes], *, size: int, etag: str, request: HttpRequest | Request) -> HttpResponseBase:
    header, if_range = request.headers.get("Range", ""), request.headers.get("If-Range", "")
    try:
        part = wanted_part(header, size=size, if_range=if_range, etag=etag)
    except Unsatisfiable:
        file.close()
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    start, length = (part.start, part.length) if part else (0, size)
    response = StreamingHttpResponse(_body(file, start, length), status=206 if part else 200)
    if part:
        response["Content-Range"] = part.content_range
    response["Content-Length"] = str(length)
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = etag
    return response


async def _body(file: IO[bytes], start: int, left: int) -> AsyncIterator[bytes]:
    # never the file itself: under ASGI Django would gather it in memory. A file that shrinks meanwhile ends the answer
    # short of its Content-Length, which every client notices
    try:
        await sync_to_async(file.seek)(start)
        while left and (chunk := await sync_to_async(file.read)(min(CHUNK, left))):
            left -= len(chunk)
            yield chunk
    finally:
        file.close()
