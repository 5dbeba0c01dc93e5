"""Static files under hashed names, with the imports of ES modules rewritten too."""

from __future__ import annotations

from django.contrib.staticfiles.storage import ManifestStaticFilesStorage
from servestatic.storage import CompressedManifestStaticFilesStorage

PASSES = 20  # a module's name holds what it imports: as many passes as the longest chain of imports


class HashedStaticFiles(CompressedManifestStaticFilesStorage):
    """Also compressed, for people across a network."""

    support_js_module_import_aggregation = True
    max_post_process_passes = PASSES


class HashedOnly(ManifestStaticFilesStorage):
    support_js_module_import_aggregation = True
    max_post_process_passes = PASSES
