"""A cursor over sqlglot's tokens that refuses unexpected ones."""

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
