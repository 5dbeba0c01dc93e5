"""What pods fetch: the code of their attempt, by a signed URL that needs no other proof."""

from __future__ import annotations

from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_not_required
from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_GET

from jobs.credentials import verify_code
from jobs.models import Attempt, CodeArchive

CHUNK = 256 * 2**10


@login_not_required
@require_GET
def code(request: HttpRequest, sha256: str) -> StreamingHttpResponse:
    """The archive, while the attempt it was signed for lives."""
    query = {name: request.GET.get(name, "") for name in ("job", "attempt", "expires", "signature")}
    if not verify_code(sha256, query["job"], query["attempt"], query["expires"], query["signature"]):
        raise Http404
    archive = CodeArchive.objects.filter(pk=sha256).first()
    alive = Attempt.objects.filter(job_id=query["job"], number=int(query["attempt"]), ended_at=None).exists()
    if archive is None or not alive:
        raise Http404
    stored = default_storage.open(archive.storage_name)

    async def body() -> AsyncIterator[bytes]:
        try:
            while chunk := await sync_to_async(stored.read)(CHUNK):
                yield chunk
        finally:
            stored.close()

    response = StreamingHttpResponse(body(), content_type="application/gzip")
    response["Content-Length"] = str(archive.size)
    return response
