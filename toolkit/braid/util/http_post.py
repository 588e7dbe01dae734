"""Post JSON to a web address, in several attempts."""

from __future__ import annotations

from http.client import HTTPException
from urllib.request import Request, urlopen

_TRIES, _TIMEOUT = 3, 10


def check_http_address(url: str, name: str) -> None:
    """Raise ValueError unless ``url``, the value of the argument ``name``, is one of HTTP."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{name} is {url!r}; it must begin with http:// or https://")


def post_json(url: str, body: bytes, name: str) -> None:
    """Post a JSON object, ``name`` in errors, in three attempts.

    Raises OSError if no attempt succeeds.
    """
    request = Request(url, body, {"Content-Type": "application/json"})
    for left in range(_TRIES)[::-1]:
        try:
            with urlopen(request, timeout=_TIMEOUT):
                return
        except (OSError, HTTPException) as error:
            if not left:
                raise OSError(f"{url} does not take {name}: {error}") from error
