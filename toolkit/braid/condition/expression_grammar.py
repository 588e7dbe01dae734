"""Spark's grammar of expressions, over tokens: find where an expression ends, or refuse it.

sqlglot accepts much that Spark does not, from other dialects (``BETWEEN SYMMETRIC``, ``ISNULL``, a
trailing comma in a list), and interprets it in its own way. Text outside this grammar is therefore
never passed to it. The grammar does not check names, functions and argument types.

Source: ``SqlBaseParser.g4`` of Spark 4, ``booleanExpression`` to ``primaryExpression``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from sqlglot.tokenizer_core import Token, TokenType

from braid.condition.type_grammar import TypeGrammar
from braid.errors import NotSparkError

_EQUALITIES = {"=", "==", "<>", "!=", "<=>"}
_ORDERS = {"<", "<=", ">", ">="}
_SUMS, _BITS = {"+", "-"}, {"&", "|", "^", "<<", ">>"}
_OPERATORS = {*_EQUALITIES, *_ORDERS, *_SUMS, *_BITS, "||", "*", "/", "%", "DIV"}
_SIDES = {"BOTH", "LEADING", "TRAILING"}
_QUERIES = {"SELECT", "WITH", "VALUES", "FROM", "TABLE"}
_WORDED: Mapping[str, tuple[str, ...]] = {
    "POSITION": ("IN",),
    "SUBSTR": ("FROM", "FOR"),
    "SUBSTRING": ("FROM", "FOR"),
    "OVERLAY": ("PLACING", "FROM", "FOR"),
}
"""Functions with keywords between their arguments. FOR is optional."""
_TAKE_ONE = """
    ARRAY_AGG BOOLEAN COLLECT_LIST DATE DOUBLE FLOAT INT SIZE STRING TIMESTAMP TIMESTAMP_LTZ
    TIMESTAMP_NTZ
"""
_TAKE_TWO = """
    CEIL CEILING DIV FIRST FLOOR LAST LISTAGG LTRIM MAX_BY MIN_BY MOD PERCENTILE RTRIM STRING_AGG
    TO_DATE TRY_ELEMENT_AT
"""
_TAKE_THREE = """
    APPROX_PERCENTILE CHARINDEX DATEDIFF DATE_DIFF ILIKE LOCATE PERCENTILE_APPROX POSITION
"""
_MOST_ARGUMENTS = {
    name: most
    for most, names in enumerate((_TAKE_ONE, _TAKE_TWO, _TAKE_THREE), 1)
    for name in names.split()
}
"""Maximum number of arguments of functions whose further arguments sqlglot would drop."""
_SUFFIXES = {"L", "S", "Y", "D", "F", "BD"}
"""Suffixes that sqlglot uses for the type of a number."""
_CONNECTORS = "AND AS BETWEEN ELSE FROM HAVING IN IS LIKE ON OR SELECT THEN WHEN WHERE"
_NO_NAMES = {*_CONNECTORS.split()}
"""Keywords that begin no expression, although Spark accepts some of them as columns."""
_PREFIXES = {"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "X"}
"""Keywords before a text that make it a constant of another type."""


def find_end(tokens: Sequence[Token], start: int, sql: str) -> int:
    """Return the position after the expression that begins at ``start``.

    Raises NotSparkError if Spark's grammar has none there.
    """
    reader = _Reader(tokens, start, sql)
    reader.read_expression()
    return reader.at


class _Reader(TypeGrammar):
    """A reader of tokens by the grammar. It builds no tree."""

    def skip_star(self) -> None:
        """Skip the clauses of a star, which have their own error messages."""
        while self.peek_word() in ("EXCEPT", "REPLACE", "RENAME") and self.peek_word(1) == "(":
            self.at += 2
            self.skip_parenthesis()

    # Booleans

    def read_expression(self) -> None:
        while True:
            while self.has_passed("NOT", "!"):
                pass
            self.read_value()
            self.read_predicate()
            if not self.has_passed("AND", "OR"):
                return

    def read_predicate(self) -> None:
        """Read the one predicate that may follow a value."""
        if self.has_passed("IS"):
            self.read_is()
            return
        is_negated = self.has_passed("NOT")
        rule = self._PREDICATES.get(self.peek_word())
        if rule is not None:
            self.at += 1
            rule(self)
        elif is_negated:
            self.refuse_token()

    def read_is(self) -> None:
        self.has_passed("NOT")
        if self.has_passed("DISTINCT"):
            self.need_word("FROM")
            self.read_value()
        else:
            self.need_word("NULL", "TRUE", "FALSE", "UNKNOWN")

    def read_between(self) -> None:
        if self.peek_word() in ("SYMMETRIC", "ASYMMETRIC") and self.peek_word(1) != "AND":
            self.refuse_token()
        self.read_value()
        self.need_word("AND")
        self.read_value()

    def read_in(self) -> None:
        self.need_word("(")
        self.read_members()

    def read_members(self) -> None:
        """Read a list of expressions or a query, and the closing parenthesis."""
        if self.has_passed_query():
            return
        self.read_list(self.read_expression)
        self.need_word(")")

    def has_passed_query(self) -> bool:
        """Read a query and the closing parenthesis, if a query is next."""
        is_query = self.peek_word() in _QUERIES and self.peek_word(1) not in (".", ",", ")")
        if is_query:
            self.skip_parenthesis()
        return is_query

    def read_like(self) -> None:
        if self.peek_word() in ("ANY", "SOME", "ALL") and self.peek_word(1) == "(":
            self.at += 2
            self.read_members()
            return
        self.read_value()
        if self.has_passed("ESCAPE") and not self.has_passed_texts():
            self.refuse_token()

    # Values

    def read_value(self) -> None:
        """Read operands with operators between them."""
        seen: set[str] = set()
        self.read_operand()
        while (sign := self.read_sign()) in _OPERATORS:
            if sign in _ORDERS and seen & _EQUALITIES:
                self.refuse_token("a comparison beside another needs parentheses")
            seen = seen & _EQUALITIES if sign in {*_EQUALITIES, *_ORDERS, *_BITS} else seen
            seen.add(sign)
            if "||" in seen and seen & _SUMS:
                self.refuse_token("|| beside + or - needs parentheses")
            self.at += len(sign) if sign in ("<<", ">>") else 1
            self.read_operand()

    def read_sign(self) -> str:
        """Return the next operator. sqlglot has two tokens for a shift."""
        pair = self.peek_word() + self.peek_word(1)
        if pair not in ("<<", ">>"):
            return self.peek_word()
        is_shift = self.tokens[self.at].end + 1 == self.tokens[self.at + 1].start
        return pair if is_shift else self.peek_word()

    def read_operand(self) -> None:
        while self.has_passed("-", "~"):
            pass
        if self.peek_word() == "+" and self.peek_kind(1) != TokenType.NUMBER:
            self.refuse_token("a sign + stands before numbers only")
        self.has_passed("+")
        self.read_primary()
        while self.has_passed_postfix():
            pass

    def has_passed_postfix(self) -> bool:
        """Read what may follow a primary: a field, an element, a cast."""
        if self.has_passed("."):
            if self.has_passed("*"):
                self.skip_star()
            else:
                self.need_name()
            if self.has_passed("("):
                self.read_arguments("")
        elif self.has_passed("["):
            self.read_value()
            self.need_word("]")
        elif self.has_passed("::"):
            if not self.has_passed(*_SUFFIXES):
                self.read_type()
        elif self.has_passed("COLLATE", ":"):
            self.need_name()
        else:
            return False
        return True

    def read_primary(self) -> None:
        if self.has_passed("("):
            self.read_members()
        elif self.peek_kind() == TokenType.NUMBER:
            self.read_number()
        elif self.peek_word() == "." and self.peek_kind(1) == TokenType.NUMBER:
            self.at += 2
        elif self.is_binary_ahead():
            self.at += 1
        elif self.has_passed("*"):
            self.skip_star()
        elif self.has_passed_texts():
            return
        elif self.peek_word() == "NOT":
            self.refuse_token("NOT beside an operator needs parentheses")
        else:
            self.read_named()

    def is_binary_ahead(self) -> bool:
        """Return whether X'..' is next. sqlglot accepts 0x.. for the same."""
        is_hexadecimal = self.peek_kind() == TokenType.HEX_STRING
        return is_hexadecimal and self.sql[self.tokens[self.at].start] in "xX"

    def read_named(self) -> None:
        """Read what begins with a word: a column, a function, a constant, CASE, or an interval."""
        word = self.peek_word()
        if word == "CASE" and self.peek_word(1) != ".":
            self.read_case()
        elif word == "INTERVAL" and self._is_amount_ahead(1):
            self.at += 1
            self.read_interval()
        elif word in _PREFIXES and self.peek_kind(1) == TokenType.STRING:
            self.at += 2
        else:
            if word in _NO_NAMES:
                self.refuse_token()
            self.need_name()
            if self.has_passed("("):
                self.read_arguments(word)
                self.read_suffixes()

    def read_case(self) -> None:
        self.at += 1
        if self.peek_word() != "WHEN":
            self.read_expression()
        self.need_word("WHEN")
        self.at -= 1
        while self.has_passed("WHEN"):
            self.read_expression()
            self.need_word("THEN")
            self.read_expression()
        if self.has_passed("ELSE"):
            self.read_expression()
        self.need_word("END")

    # Functions

    def read_arguments(self, function: str) -> None:
        """Read the arguments of a function and the closing parenthesis."""
        if self.has_passed(")") or (function == "EXISTS" and self.has_passed_query()):
            return
        if function in ("CAST", "TRY_CAST"):
            self.read_expression()
            self.need_word("AS")
            self.read_type()
        elif function == "EXTRACT":
            self.need_name()
            self.need_word("FROM")
            self.read_value()
        elif function == "TRIM" and self.is_side_ahead():
            self.has_passed(*_SIDES)
            self.read_from()
        elif function in _WORDED or function == "TRIM":
            self.read_worded(_WORDED.get(function, ("FROM",)))
        else:
            self.has_passed("DISTINCT", "ALL")
            read = self.read_field_value if function == "STRUCT" else self.read_argument
            self.read_list(read, _MOST_ARGUMENTS.get(function))
            if self.has_passed("IGNORE", "RESPECT"):
                self.need_word("NULLS")
        self.need_word(")")

    def is_side_ahead(self) -> bool:
        """Return whether a side or FROM is next, and not a column of that name."""
        is_side = self.peek_word() in _SIDES and self.peek_word(1) not in (",", ")", ".")
        return is_side or self.peek_word() == "FROM"

    def read_from(self) -> None:
        if self.peek_word() != "FROM":
            self.read_value()
        self.need_word("FROM")
        self.read_value()

    def read_worded(self, words: Sequence[str]) -> None:
        """Read arguments separated by these keywords, or by commas."""
        self.read_value()
        if self.peek_word() != words[0]:
            if self.has_passed(","):
                self.read_list(self.read_argument, 2)
            return
        for word in words:
            if word == "FOR" and self.peek_word() != "FOR":
                return
            self.need_word(word)
            self.read_value()

    def read_argument(self) -> None:
        """Read an expression, optionally with a name before it, or a lambda."""
        if self.peek_word(1) in ("->", "=>"):
            self.need_name()
            self.at += 1
        elif self.peek_word() == "(" and (end := self.find_lambda()):
            self.at = end
        self.read_expression()

    def read_field_value(self) -> None:
        """Read an expression, optionally with a name after it."""
        self.read_expression()
        if self.has_passed("AS"):
            self.need_name()

    def find_lambda(self) -> int:
        """Return the position after ``(x, y) ->``; 0 if there is none."""
        start = self.at
        try:
            self.at += 1
            self.read_list(self.need_name)
            self.need_word(")")
            self.need_word("->")
            return self.at
        except NotSparkError:
            return 0
        finally:
            self.at = start

    def read_suffixes(self) -> None:
        """Read what may follow the call of an aggregate."""
        while True:
            if self.peek_word() in ("WITHIN GROUP", "FILTER", "OVER") and self.peek_word(1) == "(":
                self.at += 2
                self.skip_parenthesis()
            elif self.peek_word() in ("IGNORE", "RESPECT") and self.peek_word(1) == "NULLS":
                self.at += 2
            else:
                return

    _PREDICATES: ClassVar[Mapping[str, Callable[[_Reader], None]]] = {
        "BETWEEN": read_between,
        "IN": read_in,
        "LIKE": read_like,
        "ILIKE": read_like,
        "RLIKE": read_value,
        "REGEXP": read_value,
    }
