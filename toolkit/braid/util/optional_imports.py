"""What to install for a part of Braid that needs more than joins do."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

Extra = Literal["notebooks", "data", "exact", "cloud", "docs", "dev"]


def missing_dependency_message(what: str, extra: Extra) -> str:
    """The sentence that says ``what`` is not installed and which extra brings it.

    >>> missing("scipy", "exact")
    "scipy is not installed; pip install 'braid-joins[exact]' brings it"
    """
    return f"{what} is not installed; pip install 'braid-joins[{extra}]' brings it"


class OptionalImport:
    """Imports inside ``with Needs("exact"):`` that fail name the extra that brings the package.

    Raises ModuleNotFoundError, with one sentence, for a package that is not installed.
    """

    def __init__(self, extra: Extra) -> None:
        self.extra = extra

    def __enter__(self) -> None:
        """Nothing is checked before the imports."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Turn the error of a missing package into the sentence; all others stay what they are."""
        if isinstance(error, ModuleNotFoundError) and error.name:
            package = error.name.partition(".")[0]
            if package not in ("braid", "braid_widgets"):
                raise ModuleNotFoundError(
                    missing_dependency_message(package, self.extra), name=error.name
                ) from None
