"""Report which extra to install for an optional package."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

Extra = Literal["spark", "notebooks", "data", "exact", "cloud", "otel", "docs", "dev"]


def missing_dependency_message(what: str, extra: Extra) -> str:
    """Return the sentence that ``what`` is not installed and which extra provides it.

    >>> missing_dependency_message("scipy", "exact")
    "scipy is not installed; pip install 'braid-joins[exact]' brings it"
    """
    return f"{what} is not installed; pip install 'braid-joins[{extra}]' brings it"


class OptionalImport:
    """A context for optional imports, as in ``with OptionalImport("exact"):``.

    Raises ModuleNotFoundError, which names the extra, if a package is not installed.
    """

    def __init__(self, extra: Extra) -> None:
        self.extra = extra

    def __enter__(self) -> None:
        """Do nothing before the imports."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Raise the error of a missing package with the name of its extra.

        Other errors propagate unchanged.
        """
        if isinstance(error, ModuleNotFoundError) and error.name:
            package = error.name.partition(".")[0]
            if package not in ("braid", "braid_widgets"):
                raise ModuleNotFoundError(
                    missing_dependency_message(package, self.extra), name=error.name
                ) from None
