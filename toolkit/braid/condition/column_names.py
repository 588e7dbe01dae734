"""Parse a condition into a syntax tree, and resolve its columns to their exact names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import sqlglot
from sqlglot import exp

from braid.condition.spark_dialect import SparkSql, describe_sql_error, to_sql
from braid.errors import PredicateError
from braid.util.validation import format_value

_LONG = 300
"""Maximum characters of a condition in a message."""


def quote_condition(on: object) -> str:
    """Return a condition as text for a message."""
    return format_value(on, _LONG)


@contextmanager
def limit_recursion(on: str) -> Iterator[None]:
    """Raise PredicateError if processing a condition exceeds Python's recursion limit."""
    try:
        yield
    except RecursionError:
        raise PredicateError(
            f"the join condition {format_value(on)} is too deep, with {len(on):,} letters; write a "
            "long list as IN (...), or what a deep part says into a column"
        ) from None


def parse_condition(on: str) -> exp.Expr:
    """Return the syntax tree of a condition.

    Raises PredicateError unless it is one Spark SQL condition.
    """
    try:
        trees = sqlglot.parse(on, dialect=SparkSql)
        tree = trees[0] if len(trees) == 1 else None
        if tree is not None:
            to_sql(tree)  # raises if a part would be omitted later
    except sqlglot.errors.SqlglotError as error:
        raise PredicateError(
            f"the join condition {quote_condition(on)} is not valid Spark SQL: "
            f"{describe_sql_error(error)}"
        ) from None
    if tree is None:
        raise PredicateError(
            f"the join condition {quote_condition(on)} holds {len(trees)} statements; it must be "
            "one condition over alias.column"
        )
    if tree.find(exp.Query, exp.Subquery):
        raise PredicateError(
            f"the join condition {quote_condition(on)} holds a query; it must be one condition "
            "over alias.column"
        )
    if not isinstance(tree, exp.Condition):
        raise PredicateError(
            f"the join condition {quote_condition(on)} is none; it must be one condition over "
            "alias.column"
        )
    return tree


def refuse_change_columns(tree: exp.Expr, changes: Mapping[str, str]) -> None:
    """Raise PredicateError if a condition reads a change column, of those given by alias."""
    hidden = {(alias.lower(), column.lower()) for alias, column in changes.items()}
    for column in tree.find_all(exp.Column):
        if (column.table.lower(), column.name.lower()) in hidden:
            raise PredicateError(
                f"column '{column.table}.{column.name}' in the join condition is a change column, "
                "which says how a row changes and is no column of the join; leave it out of the "
                "condition"
            )


def resolve_columns(tree: exp.Expr, schemas: Mapping[str, Sequence[str]]) -> exp.Expr:
    """Return the tree with alias and exact spelling for every column.

    Raises PredicateError for an unknown or ambiguous column.
    """
    aliases = {a.lower(): a for a in schemas}
    names = {a: {n.lower(): n for n in s} for a, s in schemas.items()}

    def column(node: exp.Column) -> exp.Expr:
        parts = [p.name for p in node.parts]
        alias = aliases.get(parts[0].lower())
        if alias is None or len(parts) == 1:
            owners = [a for a, n in names.items() if parts[0].lower() in n]
            if len(owners) != 1 or (
                len(parts) > 1 and alias is None and parts[0].lower() not in names[owners[0]]
            ):
                what = f"alias {parts[0]!r}" if len(parts) > 1 else f"column {parts[0]!r}"
                say = (
                    "is in several streams, write alias.column" if len(owners) > 1 else "is unknown"
                )
                raise PredicateError(
                    f"{what} in the join condition {say}; streams and columns are: "
                    f"{_list_columns(names)}"
                )
            alias, parts = owners[0], ["", *parts]
        spelled = names[alias].get(parts[1].lower())
        if spelled is None:
            raise PredicateError(
                f"column '{alias}.{parts[1]}' in the join condition is unknown; {alias} has: "
                f"{', '.join(names[alias].values())}"
            )
        head: exp.Expr = exp.column(spelled, table=alias, quoted=True)
        for name in parts[2:]:
            head = exp.Dot(this=head, expression=exp.to_identifier(name, quoted=True))
        return head

    return tree.transform(
        lambda n: (
            column(n) if isinstance(n, exp.Column) and n.find_ancestor(exp.Column) is None else n
        )
    )


def _list_columns(names: Mapping[str, Mapping[str, str]]) -> str:
    return "; ".join(f"{a}({', '.join(n.values())})" for a, n in names.items())
