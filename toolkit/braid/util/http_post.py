"""Post JSON to a web address, in several attempts with pauses between them."""

from __future__ import annotations

from http.client import HTTPException
from urllib.request import Request, urlopen

from braid.util.clock_and_threads import current_environment

_PAUSES, _TIMEOUT = (1.0, 4.0), 10
"""Seconds between two attempts, and those after which an attempt fails."""


def check_http_address(url: str, name: str) -> None:
    """Raise ValueError unless ``url``, the value of the argument ``name``, is one of HTTP."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{name} is {url!r}; it must begin with http:// or https://")


def post_json(url: str, body: bytes, name: str) -> None:
    """Post a JSON object, ``name`` in errors, in three attempts.

    Raises OSError if no attempt succeeds.
    """
    request = Request(url, body, {"Content-Type": "application/json"})
    for pause in (*_PAUSES, None):
        try:
            with urlopen(request, timeout=_TIMEOUT):
                return
        except (OSError, HTTPException) as error:
            if pause is None:
                raise OSError(f"{url} does not take {name}: {error}") from error
            current_environment().wait_seconds(pause)
