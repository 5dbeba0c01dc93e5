"""The site without what is for operators only, for where they have an address of their own or none (settings/operator.py)."""

from __future__ import annotations

from portal.urls import contents

urlpatterns = contents(schema_of="portal.public_urls", with_operators=False)
