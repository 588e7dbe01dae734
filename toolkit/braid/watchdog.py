"""Alert on runs that failed, died, cannot be read or have a symptom: ``braid watchdog``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from braid.health import read_health
from braid.run_doctor import doctor
from braid.util.http_post import check_http_address, post_json

REMEDIES = {
    "failed": "mend what the error names, then resume the run",
    "died": "resume the run; nothing that was committed is lost",
}


@dataclass(frozen=True)
class RunAlert:
    """An alert on a run.

    - ``run``: its folder.
    - ``level``: "fault" or "warning".
    - ``rule``: "failed", "died", "unreadable" or a rule of ``braid.doctor``.
    - ``sentence``, ``remedy``: the symptom, and what to do.
    - ``batches``: committed batches.
    - ``time``: when it was found, in UTC.
    """

    run: str
    level: str
    rule: str
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


def find_alerts(folders: Sequence[Path], diagnoses: bool = False) -> Iterator[RunAlert]:
    """Yield an alert for each folder whose run is neither active nor ended as it should.

    ``diagnoses``: whether each fault and warning of ``braid.doctor`` is an alert too.

    Raises ValueError if a run to be diagnosed is a shared run or a hub.
    """
    time = datetime.now(UTC).isoformat(timespec="seconds")
    for folder in folders:
        try:
            health = read_health(folder)
        except ValueError as error:
            yield RunAlert(
                str(folder), "fault", "unreadable", str(error), "look at the folder", 0, time
            )
            continue
        batches = health.committed_batches
        if not health.is_healthy:
            sentence = f"{health.state}: {health.error}" if health.error else health.state
            remedy = REMEDIES[health.state]
            yield RunAlert(str(folder), "fault", health.state, sentence, remedy, batches, time)
        for finding in doctor(folder).findings if diagnoses else ():
            if finding.level != "advice":
                alert = (finding.level, finding.rule, finding.sentence, finding.remedy)
                yield RunAlert(str(folder), *alert, batches, time)


def send_alert(alert: RunAlert, url: str) -> None:
    """Send an alert by HTTP POST, in three attempts.

    Raises ValueError for another kind of URL, OSError if no attempt succeeds.
    """
    check_http_address(url, "the webhook")
    post_json(url, alert.to_json(), f"the alert on {alert.run}")
