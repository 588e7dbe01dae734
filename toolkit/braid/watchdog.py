"""Alert on runs that failed, died or cannot be read: ``braid watchdog``, for cron."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

import msgspec

from braid.health import read_health

_TRIES, _TIMEOUT = 3, 10
_REMEDIES = {
    "failed": "mend what the error names, then resume the run",
    "died": "resume the run; nothing that was committed is lost",
}


@dataclass(frozen=True)
class RunAlert:
    """An alert on a run.

    - ``run``: its folder.
    - ``state``: "failed", "died" or "unreadable".
    - ``sentence``, ``remedy``: the symptom, and what to do.
    - ``batches``: committed batches.
    - ``time``: when it was found, in UTC.
    """

    run: str
    state: str
    sentence: str
    remedy: str
    batches: int
    time: str

    @property
    def text(self) -> str:
        """The alert as one line."""
        return f"{self.run}: {self.sentence}; {self.remedy}"

    def to_json(self) -> bytes:
        """Return the alert as a JSON object, with the line as ``text`` for chat programs."""
        return msgspec.json.encode({**asdict(self), "text": self.text})


def find_alerts(folders: Sequence[Path]) -> Iterator[RunAlert]:
    """Yield an alert for each folder whose run is neither active nor ended as it should."""
    time = datetime.now(UTC).isoformat(timespec="seconds")
    for folder in folders:
        try:
            health = read_health(folder)
        except ValueError as error:
            yield RunAlert(str(folder), "unreadable", str(error), "look at the folder", 0, time)
            continue
        if not health.is_healthy:
            sentence = f"{health.state}: {health.error}" if health.error else health.state
            batches, remedy = health.committed_batches, _REMEDIES[health.state]
            yield RunAlert(str(folder), health.state, sentence, remedy, batches, time)


def send_alert(alert: RunAlert, url: str) -> None:
    """Send an alert by HTTP POST, in three attempts.

    Raises ValueError for another kind of URL, OSError if no attempt succeeds.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"the webhook is {url!r}; it must begin with http:// or https://")
    request = Request(url, alert.to_json(), {"Content-Type": "application/json"})
    for left in range(_TRIES)[::-1]:
        try:
            with urlopen(request, timeout=_TIMEOUT):
                return
        except (OSError, HTTPException) as error:
            if not left:
                raise OSError(f"{url} does not take the alert on {alert.run}: {error}") from error
