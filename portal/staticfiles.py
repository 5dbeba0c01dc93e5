"""Static files under hashed names, with the imports of ES modules rewritten too."""

from __future__ import annotations

from django.contrib.staticfiles.storage import ManifestStaticFilesStorage
from servestatic.storage import CompressedManifestStaticFilesStorage


class HashedStaticFiles(CompressedManifestStaticFilesStorage):
    """Also compressed, for people across a network."""

    support_js_module_import_aggregation = True


class HashedOnly(ManifestStaticFilesStorage):
    support_js_module_import_aggregation = True
