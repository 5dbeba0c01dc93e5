"""Moments as people type them: 10m for ten minutes ago, 12:03, 2026-11-30 12:03, each in the time zone of this machine."""

import re
from datetime import datetime, timedelta, timezone
from typing import Optional

_AGO = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9})s)?")
_CLOCK = re.compile(r"\d\d?:\d\d(?::\d\d)?")


def moment(text: Optional[str]) -> Optional[str]:
    """With its zone, so that the portal understands it; what is no moment goes as it is, for the portal to refuse."""
    text = (text or "").strip()
    if not text:
        return None
    now = datetime.now(timezone.utc)
    ago = _AGO.fullmatch(text.lower())
    if ago:
        days, hours, minutes, seconds = (int(part or 0) for part in ago.groups())
        return (now - timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)).isoformat()
    if _CLOCK.fullmatch(text):
        text = "{} {}".format(now.astimezone().date(), text.zfill(5) if text.count(":") == 1 else text.zfill(8))
    try:
        return datetime.fromisoformat(text).astimezone().isoformat()
    except ValueError:
        return text
