"""Random conditions and streams.

Everything is drawn from one ``random.Random``: the fuzzer seeds it, and Hypothesis passes one whose
choices it shrinks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from fuzz.cases import Case, Stream, Tree
from fuzz.column_types import DECIMALS, LETTERS, column_type, decimal_name, random_value
from fuzz.operators import (
    ANY_CLASSES,
    FUNCTIONS,
    LENGTHENING,
    LINKS,
    LITERALS,
    NUMBERS,
    OPERATORS,
    RANGES,
)

Schemas = Mapping[str, Mapping[str, str]]
"""The types of columns by stream and name."""

_LINKING = "dhiklnpst"
"""Columns of small integers, text, dates and times."""
_GIVING: dict[str, list[str]] = {}
for _name, _operator in OPERATORS.items():
    for _class in ANY_CLASSES if _operator.gives == "T" else (_operator.gives,):
        _GIVING.setdefault(_class, []).append(_name)


def write_tree(tree: Tree, is_bare: bool = False) -> str:
    """Return the text of a condition.

    ``is_bare`` leaves out parentheses, so that the text may mean another condition than the tree.
    """
    name, *operands = tree
    if name == "col":
        return f"{operands[0]}.{operands[1]}"
    if name == "lit":
        return str(operands[0])
    texts = [write_tree(o, is_bare) for o in operands]
    if name == "call":
        return f"{texts[0]}({', '.join(texts[1:])})"
    template = OPERATORS[name].template
    if is_bare and template.startswith("("):
        template = template[1:-1]
    return template.format(*texts)


def subtrees(tree: Tree) -> Iterator[Tree]:
    """Return the operands of a node that are nodes."""
    return (o for o in tree[1:] if isinstance(o, list))


def list_columns(tree: Tree) -> set[tuple[str, str]]:
    """Return the columns that a condition reads, as (alias, name)."""
    if tree[0] == "col":
        return {(tree[1], tree[2])}
    return set().union(*map(list_columns, subtrees(tree)))


class ExpressionMaker:
    """Draws trees over ``schemas``."""

    def __init__(self, draw: random.Random, schemas: Schemas) -> None:
        self.draw, self.schemas = draw, schemas
        self.columns: dict[tuple[str, str], list[str]] = {}
        for alias, columns in schemas.items():
            for name, kind in columns.items():
                self.columns.setdefault((alias, column_type(kind).kind), []).append(name)

    def condition(self) -> Tree:
        """Return one to three conjuncts, mostly over several streams."""
        if self.draw.random() < 0.1:
            return self._ranges()
        parts = [self._conjunct() for _ in range(self.draw.choice((1, 1, 1, 2, 2, 3)))]
        tree = parts[0]
        for part in parts[1:]:
            tree = ["and", tree, part]
        return tree

    def _conjunct(self) -> Tree:
        way = self.draw.random()
        if way < 0.1:
            return self._any_function()
        if way < 0.25:
            return self._disjunction()
        return self.tree("bool", self.draw.choice((1, 2, 2, 3)), list(self.schemas))

    def tree(self, kind: str, depth: int, aliases: Sequence[str]) -> Tree:
        """Return an expression of a class of types over some streams."""
        if depth <= 0 or kind not in _GIVING or self.draw.random() < 0.1:
            return self._leaf(kind, aliases)
        names = _GIVING[kind]
        name = self.draw.choices(names, [OPERATORS[n].weight for n in names])[0]
        operator = OPERATORS[name]
        shared = kind if operator.gives == "T" else self.draw.choice(ANY_CLASSES)
        operands = operator.takes
        owners = self._owners(len(operands), aliases)
        return [
            name,
            *(
                self.operand(o, shared, depth - 1, owner)
                for o, owner in zip(operands, owners, strict=True)
            ),
        ]

    def _ranges(self) -> Tree:
        """Return comparisons of two streams that one search of sorted rows may combine.

        They are an equality, in half of the cases, and one to three ranges.
        """
        pair = self.draw.sample(list(self.schemas), 2)
        names = ["eq"] * self.draw.randrange(2)
        names += [self.draw.choice(RANGES) for _ in range(self.draw.choice((1, 2, 2, 3)))]
        self.draw.shuffle(names)
        parts = [self._compare(name, pair) for name in names]
        tree = parts[0]
        for part in parts[1:]:
            tree = ["and", tree, part]
        return tree

    def _disjunction(self) -> Tree:
        """Return an OR that indexes may find: of comparisons between columns of two streams.

        Some branches are repeated, have a second literal, or are negated.
        """
        pair = self.draw.sample(list(self.schemas), 2)
        branches = [self._branch(pair) for _ in range(self.draw.choice((2, 2, 2, 3, 4)))]
        if self.draw.random() < 0.2:
            branches.append(self.draw.choice(branches))
        tree = branches[0]
        for branch in branches[1:]:
            tree = ["or", tree, branch]
        return ["not", ["not", tree]] if self.draw.random() < 0.1 else tree

    def _branch(self, pair: Sequence[str]) -> Tree:
        """Return a comparison between two streams, sometimes with another literal."""
        tree = self._link(pair)
        if self.draw.random() < 0.4:
            way = self.draw.random()
            more = (
                self._link(pair)
                if way < 0.5
                else self.tree("bool", 1, pair[:1] if way < 0.8 else pair)
            )
            tree = ["and", tree, more] if self.draw.random() < 0.7 else ["and", more, tree]
        if self.draw.random() < 0.1:
            tree = ["not", ["not", tree]]
        return tree

    def _link(self, pair: Sequence[str]) -> Tree:
        return self._compare(self.draw.choice(LINKS), pair)

    def _compare(self, name: str, pair: Sequence[str]) -> Tree:
        """Return a comparison between two streams by an operator."""
        kind, operator = self.draw.choice(ANY_CLASSES), OPERATORS[name]
        owners = self.draw.sample(list(pair), 2)
        owners.append(owners[1])
        operands = zip(operator.takes, owners, strict=False)
        return [name, *(self.operand(what, kind, 0, [owner]) for what, owner in operands)]

    def _owners(self, count: int, aliases: Sequence[str]) -> list[Sequence[str]]:
        """Return the streams that each operand may read: mostly one each, so that they can be
        linked.
        """
        if len(aliases) < 2 or self.draw.random() < 0.3:
            return [aliases] * count
        order = self.draw.sample(list(aliases), len(aliases))
        return [[order[n % len(order)]] for n in range(count)]

    def operand(self, what: str, shared: str, depth: int, aliases: Sequence[str]) -> Tree:
        if what.startswith("="):
            return ["lit", self.draw.choice(what[1:].split("|"))]
        kind = shared if what == "T" else self.draw.choice(NUMBERS) if what == "N" else what
        return self.tree(kind, depth, aliases)

    def _leaf(self, kind: str, aliases: Sequence[str]) -> Tree:
        owned = [a for a in aliases if (a, kind) in self.columns]
        if kind in LITERALS and (not owned or self.draw.random() < 0.2):
            return ["lit", self.draw.choice(LITERALS[kind])]
        alias = self.draw.choice(owned or [a for a in self.schemas if (a, kind) in self.columns])
        return ["col", alias, self.draw.choice(self.columns[alias, kind])]

    def _any_function(self) -> Tree:
        """Return a call of any function, compared with itself over another stream or with a
        literal.
        """
        name, count = self.draw.choice(FUNCTIONS), self.draw.choice((1, 1, 1, 2, 2, 3))
        kinds = [self.draw.choice((*ANY_CLASSES, "ints")) for _ in range(count)]

        def argument(kind: str, alias: str) -> Tree:
            leaf = self._leaf(kind, [alias])
            is_length = name in LENGTHENING and kind in NUMBERS
            return ["mod", leaf, ["lit", "100"]] if is_length else leaf

        def call(alias: str) -> Tree:
            return ["call", ["lit", name], *(argument(k, alias) for k in kinds)]

        first, second = self.draw.sample(list(self.schemas), 2)
        way = self.draw.random()
        if way < 0.5:
            return [self.draw.choice(("eq", "lt", "ne")), call(first), call(second)]
        return ["is_not_null" if way < 0.7 else "is_null", call(first)]


def random_schemas(draw: random.Random, count: int = 2) -> dict[str, dict[str, str]]:
    """Return streams a, b and so on with columns of all types."""
    found = {}
    for alias in "abcd"[:count]:
        decimals = {name: decimal_name(*draw.choice(DECIMALS)) for name in "mx"}
        found[alias] = {**LETTERS, **decimals}
    return found


def random_stream(
    draw: random.Random, columns: Mapping[str, str], rows: int, batches: int
) -> Stream:
    """Return rows with few distinct values and some edges, in the order of their batches."""
    made = [[random_value(draw, kind) for kind in columns.values()] for _ in range(rows)]
    return Stream(dict(columns), made, sorted(draw.randrange(batches) for _ in range(rows)))


def random_streams(
    draw: random.Random, count: int = 2, rows: int = 6, batches: int = 3
) -> dict[str, Stream]:
    """Return streams that all have the same columns."""
    return {
        alias: random_stream(draw, columns, draw.randint(max(1, rows - 3), rows), batches)
        for alias, columns in random_schemas(draw, count).items()
    }


def random_case(draw: random.Random, streams: Mapping[str, Stream]) -> Case:
    """Return a condition over streams; one in ten is written without parentheses."""
    schemas = {alias: stream.columns for alias, stream in streams.items()}
    tree = ExpressionMaker(draw, schemas).condition()
    is_bare = draw.random() < 0.1
    return Case(dict(streams), write_tree(tree, is_bare), None if is_bare else tree)


def link_streams(draw: random.Random, case: Case) -> Case:
    """Return a case with an equality of each stream and the next before its condition.

    All are of the same column, or each of another one. Placements by value need such a case.
    """
    names = draw.sample(_LINKING, len(case.streams) - 1)
    if draw.random() < 0.5:
        names = names[:1] * len(names)
    pairs = zip(pairwise(case.streams), names, strict=True)
    links: list[Tree] = [["eq", ["col", a, name], ["col", b, name]] for (a, b), name in pairs]
    tree = case.tree
    for link in links:
        tree = tree and ["and", link, tree]
    on = " AND ".join([*map(write_tree, links), f"({case.on})"])
    return replace(case, on=on, tree=tree)


def condition(schemas: Schemas) -> st.SearchStrategy[Tree]:
    """Return conditions over the schemas, for Hypothesis."""
    return st.randoms(use_true_random=False).map(
        lambda draw: ExpressionMaker(draw, schemas).condition()
    )


def frame(columns: Mapping[str, str], rows: int = 6, batches: int = 3) -> st.SearchStrategy[Stream]:
    """Return streams of one schema, for Hypothesis."""
    return st.randoms(use_true_random=False).map(
        lambda draw: random_stream(draw, columns, draw.randint(1, rows), batches)
    )


def reduced(tree: Tree) -> Iterator[Tree]:
    """Yield smaller variants of a tree, the smallest first: a node is replaced by a subtree of
    it.
    """
    yield from subtrees(tree)
    for place, operand in enumerate(tree):
        if place and isinstance(operand, list):
            for smaller in reduced(operand):
                yield [*tree[:place], smaller, *tree[place + 1 :]]


def count_nodes(tree: Any) -> int:
    """Return the number of nodes of a tree."""
    return 1 + sum(map(count_nodes, subtrees(tree)))
