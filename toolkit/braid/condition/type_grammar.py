"""Spark's grammar of types, numbers and intervals, over tokens."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import TokenType

from braid.condition.token_cursor import TokenCursor

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
