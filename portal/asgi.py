"""What the web process serves: ingest in front, websockets by topic, Django for the rest."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings.dev")
pages = get_asgi_application()  # before anything that needs the models

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402

from jobs import routing as job_routing  # noqa: E402
from jobs.shell.socket import shells  # noqa: E402
from metrics import routing  # noqa: E402
from metrics.ingest_asgi import IngestDoor  # noqa: E402
from metrics.live import hub  # noqa: E402
from portal.arrival import Arrival  # noqa: E402
from portal.lifespan import Lifespan  # noqa: E402
from portal.origin import OnlyOurOrigin  # noqa: E402

websocket_urlpatterns = [*routing.websocket_urlpatterns, *job_routing.websocket_urlpatterns]
sockets = OnlyOurOrigin(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
hub.told_of_rights.append(shells.ask_again)
ingest = IngestDoor(ProtocolTypeRouter({"http": pages, "websocket": sockets}))
application = Lifespan(Arrival(ingest), opened=[ingest, hub])
