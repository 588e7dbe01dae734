"""Spark's grammar of types, numbers and intervals, over a cursor of sqlglot's tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from braid.errors import NotSparkError

_TEXTS = {
    TokenType.STRING,
    TokenType.RAW_STRING,
    TokenType.HEX_STRING,
    TokenType.NATIONAL_STRING,
    TokenType.BIT_STRING,
    TokenType.BYTE_STRING,
    TokenType.UNICODE_STRING,
    TokenType.HEREDOC_STRING,
}


class TokenCursor:
    """A position among tokens. Reading only advances it."""

    def __init__(self, tokens: Sequence[Token], at: int, sql: str) -> None:
        self.tokens, self.at, self.sql = tokens, at, sql

    def peek_word(self, ahead: int = 0) -> str:
        """Return a token in capitals; empty for a text, a quoted name, and at the end."""
        place = self.at + ahead
        if place >= len(self.tokens):
            return ""
        token = self.tokens[place]
        is_quoted = token.token_type in _TEXTS or token.token_type == TokenType.IDENTIFIER
        return "" if is_quoted else " ".join(token.text.upper().split())

    def peek_kind(self, ahead: int = 0) -> TokenType | None:
        """Return the kind of a token; None at the end."""
        place = self.at + ahead
        return self.tokens[place].token_type if place < len(self.tokens) else None

    def refuse_token(self, remedy: str = "") -> NoReturn:
        """Raise NotSparkError for the next token."""
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        problem = f"Spark's grammar has no {token.text!r} here" if token else "Something is missing"
        raise NotSparkError(f"{problem}{remedy and '; '}{remedy}", self.at)

    def has_passed(self, *words: str) -> bool:
        """Pass one of these words, and return whether it was there."""
        if self.peek_word() not in words:
            return False
        self.at += 1
        return True

    def need_word(self, *words: str) -> None:
        """Pass one of these words. Raises NotSparkError if none is there."""
        if not self.has_passed(*words):
            self.refuse_token()

    def has_passed_name(self) -> bool:
        """Pass a name, and return whether it was there."""
        is_word = bool(re.fullmatch(r"\w+", self.peek_word()))
        is_name = is_word and self.peek_kind() != TokenType.NUMBER
        is_name = is_name or self.peek_kind() == TokenType.IDENTIFIER
        self.at += is_name
        return is_name

    def need_name(self) -> None:
        """Pass a name. Raises NotSparkError if none is there."""
        if not self.has_passed_name():
            self.refuse_token()

    def has_passed_texts(self) -> bool:
        """Pass adjacent texts, which form one, and return whether one was there."""
        start = self.at
        while self.peek_kind() in (TokenType.STRING, TokenType.RAW_STRING):
            self.at += 1
        return self.at > start

    def read_list(self, read: Callable[[], object], most: int | None = None) -> None:
        """Read parts separated by commas, at most ``most``. A trailing comma is refused."""
        read()
        count = 1
        while self.peek_word() == ",":
            count += 1
            if most is not None and count > most:
                self.refuse_token(f"{most} arguments are the most")
            self.at += 1
            read()

    def skip_parenthesis(self) -> None:
        """Skip to the end of the parenthesis that has begun."""
        depth = 1
        while depth:
            if self.at >= len(self.tokens):
                self.refuse_token()
            depth += {"(": 1, ")": -1}.get(self.peek_word(), 0)
            self.at += 1


_TYPES = """
    BOOLEAN TINYINT BYTE SMALLINT SHORT INT INTEGER BIGINT LONG FLOAT REAL DOUBLE DATE TIME
    TIMESTAMP TIMESTAMP_NTZ TIMESTAMP_LTZ STRING BINARY VOID VARIANT
"""
_SIMPLE_TYPES = {*_TYPES.split()}
_DECIMALS, _SIZED_TYPES = {"DECIMAL", "DEC", "NUMERIC"}, {"CHAR", "CHARACTER", "VARCHAR"}
"""Types that may have sizes in parentheses, and types that must have one."""
_SPANS = "YEAR MONTH WEEK DAY HOUR MINUTE SECOND MILLISECOND MICROSECOND NANOSECOND"
_UNITS = {f"{unit}{s}" for unit in _SPANS.split() for s in ("", "S")}
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class TypeGrammar(TokenCursor):
    """A reader of types, numbers and intervals."""

    def read_number(self) -> None:
        """Read a number without a sign."""
        if not _NUMBER.fullmatch(self.peek_word()):
            self.refuse_token()
        self.at += 1

    def _is_amount_ahead(self, ahead: int) -> bool:
        ahead += self.peek_word(ahead) in ("+", "-")
        return self.peek_kind(ahead) in (TokenType.STRING, TokenType.NUMBER)

    def read_interval(self) -> None:
        """Read amounts with units, or a text that contains both."""
        while self._is_amount_ahead(0):
            is_signed, is_text = self.has_passed("+", "-"), self.has_passed_texts()
            if not is_text:
                self.read_number()
            if is_text and not is_signed and self.peek_word() not in _UNITS:
                self.check_units()
                return
            self.need_word(*_UNITS)
            if self.has_passed("TO"):
                self.need_word(*_UNITS)
            if self.peek_word() in ("+", "-"):
                return  # an operator after the interval

    def read_type(self) -> None:
        """Read a type."""
        word = self.peek_word()
        if self.has_passed(*_DECIMALS, *_SIZED_TYPES):
            if word in _SIZED_TYPES or self.peek_word() == "(":
                self.need_word("(")
                self.read_list(self.read_number)
                self.need_word(")")
        elif word in ("ARRAY", "MAP", "STRUCT"):
            self.at += 1
            self.need_word("<")
            self.read_list(self.read_field if word == "STRUCT" else self.read_type)
            self.need_word(">")
        elif self.has_passed("INTERVAL"):
            if self.has_passed(*_UNITS) and self.has_passed("TO"):
                self.need_word(*_UNITS)
        else:
            self.need_word(*_SIMPLE_TYPES)
            if self.has_passed("COLLATE"):
                self.need_name()

    def read_field(self) -> None:
        """Read the name and the type of a field."""
        self.need_name()
        self.has_passed(":")
        self.read_type()
        if self.has_passed("NOT"):
            self.need_word("NULL")

    def check_units(self) -> None:
        """Raise NotSparkError if the text of amounts and units just passed has unknown units."""
        self.at -= 1
        words = re.findall("[A-Z]+", self.tokens[self.at].text.upper())
        if not {*words} <= {*_UNITS, "INTERVAL"}:
            self.refuse_token()
        self.at += 1
