"""The operators of conditions: their operands, their results, and their text.

An operand is a class of types ("int", "text"), "T" for one class that all operands of the operator
share, "N" for any class of numbers, or "=1|2" for one of these texts.
"""

from __future__ import annotations

from typing import NamedTuple

ANY_CLASSES = ("int", "real", "decimal", "text", "date", "clock", "instant", "bytes", "bool")
"""Classes that "T" may stand for."""
NUMBERS = ("int", "real", "decimal")


class Operator(NamedTuple):
    """An operator.

    - ``gives``: the class of the result; "T": that of its operands.
    - ``weight``: its frequency.
    """

    gives: str
    template: str
    takes: tuple[str, ...]
    weight: float = 1.0


def _op(gives: str, template: str, *takes: str, weight: float = 1.0) -> Operator:
    return Operator(gives, template, takes, weight)


LINKS = (
    *("eq", "eq", "eq", "eq_numbers", "null_eq", "not_distinct", "in", "between", "within"),
    *("within_real", "lt", "ge", "lt_numbers", "ne", "near", "startswith", "until"),
    *("near_product", "near_power", "near_root", "starts_pattern"),
)
"""Operators that compare columns of two streams; most of them can be found by an index."""
RANGES = ("lt", "le", "gt", "ge", "between", "within", "within_real", "lt_numbers")
"""Those that a range of sorted rows may fulfill."""

OPERATORS: dict[str, Operator] = {
    # Truth.
    "and": _op("bool", "({0} AND {1})", "bool", "bool", weight=1.5),
    "or": _op("bool", "({0} OR {1})", "bool", "bool", weight=1.5),
    "not": _op("bool", "(NOT {0})", "bool", weight=1.5),
    "bang": _op("bool", "(! {0})", "bool", weight=0.3),
    "eq": _op("bool", "({0} = {1})", "T", "T", weight=5),
    "eq_numbers": _op("bool", "({0} = {1})", "N", "N", weight=2),
    "eqeq": _op("bool", "({0} == {1})", "T", "T", weight=0.3),
    "ne": _op("bool", "({0} <> {1})", "T", "T"),
    "bang_eq": _op("bool", "({0} != {1})", "T", "T", weight=0.3),
    "lt": _op("bool", "({0} < {1})", "T", "T", weight=3),
    "le": _op("bool", "({0} <= {1})", "T", "T", weight=2),
    "gt": _op("bool", "({0} > {1})", "T", "T", weight=3),
    "ge": _op("bool", "({0} >= {1})", "T", "T", weight=2),
    "lt_numbers": _op("bool", "({0} < {1})", "N", "N", weight=2),
    "ge_numbers": _op("bool", "({0} >= {1})", "N", "N"),
    "eq_arrays": _op("bool", "({0} = {1})", "ints", "ints", weight=0.7),
    "null_eq_texts": _op("bool", "({0} <=> {1})", "texts", "texts", weight=0.4),
    "eq_structs": _op("bool", "({0} = {1})", "struct", "struct", weight=0.7),
    "eq_pairs": _op("bool", "({0} = {1})", "pair", "turned", weight=0.4),
    "null_eq_pairs": _op("bool", "({0} <=> {1})", "turned", "pair", weight=0.3),
    "eq_day": _op("bool", "({0} = {1})", "date", "clock", weight=0.7),
    "lt_day": _op("bool", "({0} < {1})", "instant", "date", weight=0.7),
    "near_times": _op(
        "bool",
        "({0} BETWEEN {1} - INTERVAL 1 HOUR AND {1} + INTERVAL 2 HOURS)",
        *("instant", "instant"),
        weight=0.7,
    ),
    "elapsed": _op(
        "bool",
        "(timestampdiff({0}, {1}, {2}) <= {3})",
        *("=SECOND|HOUR|DAY", "instant", "instant", "=-1|0|3"),
        weight=0.5,
    ),
    "null_eq": _op("bool", "({0} <=> {1})", "T", "T", weight=2),
    "distinct": _op("bool", "({0} IS DISTINCT FROM {1})", "T", "T", weight=0.5),
    "not_distinct": _op("bool", "({0} IS NOT DISTINCT FROM {1})", "T", "T", weight=0.5),
    "is_null": _op("bool", "({0} IS NULL)", "T"),
    "is_not_null": _op("bool", "({0} IS NOT NULL)", "T"),
    "is_true": _op("bool", "({0} IS TRUE)", "bool", weight=0.4),
    "is_not_true": _op("bool", "({0} IS NOT TRUE)", "bool", weight=0.4),
    "is_false": _op("bool", "({0} IS FALSE)", "bool", weight=0.3),
    "is_not_false": _op("bool", "({0} IS NOT FALSE)", "bool", weight=0.3),
    "is_unknown": _op("bool", "({0} IS UNKNOWN)", "bool", weight=0.2),
    "between": _op("bool", "({0} BETWEEN {1} AND {2})", "T", "T", "T", weight=2),
    "not_between": _op("bool", "({0} NOT BETWEEN {1} AND {2})", "T", "T", "T"),
    "in": _op("bool", "({0} IN ({1}, {2}))", "T", "T", "T"),
    "not_in": _op("bool", "({0} NOT IN ({1}, {2}))", "T", "T", "T"),
    "within": _op("bool", "(abs({0} - {1}) <= {2})", "int", "int", "=0|1|2|5", weight=1.5),
    "within_real": _op("bool", "(abs({0} - {1}) < {2})", "real", "real", "=0.5|1|2e0"),
    "farther": _op("bool", "(abs({0} - {1}) > {2})", "int", "int", "=0|1|2", weight=0.5),
    "near_product": _op(
        "bool", "(({0} - {1}) * ({0} - {1}) + ({2} - {1}) * ({2} - {1}) <= 4)", "real", "real", "real", weight=0.5
    ),
    "near_power": _op("bool", "(power({0} - {1}, 2) < {2})", "N", "N", "=0|1|6.25|9e0", weight=0.5),
    "near_root": _op("bool", "(sqrt(power({0} - {1}, 2)) <= {2})", "real", "real", "=0|1|2.5", weight=0.3),
    "starts_pattern": _op("bool", "({0} LIKE concat({1}, '%'))", "text", "text", weight=0.7),
    "starts_bars": _op("bool", "({0} LIKE {1} || '%')", "text", "text", weight=0.5),
    "like": _op("bool", "({0} LIKE {1})", "text", "text"),
    "not_like": _op("bool", "({0} NOT LIKE {1})", "text", "text"),
    "like_escape": _op("bool", "({0} LIKE {1} ESCAPE '!')", "text", "text", weight=0.4),
    "not_like_escape": _op("bool", "({0} NOT LIKE {1} ESCAPE '!')", "text", "text", weight=0.4),
    "ilike": _op("bool", "({0} ILIKE {1})", "text", "text", weight=0.5),
    "not_ilike": _op("bool", "({0} NOT ILIKE {1})", "text", "text", weight=0.5),
    "like_any": _op("bool", "({0} LIKE ANY ({1}, 'a%'))", "text", "text", weight=0.2),
    "like_all": _op("bool", "({0} LIKE ALL ({1}, 'a%'))", "text", "text", weight=0.2),
    "not_like_any": _op("bool", "({0} NOT LIKE ANY ({1}, 'a%'))", "text", "text", weight=0.2),
    "rlike": _op("bool", "({0} RLIKE {1})", "text", "='a.*'|'^b'|'b$'|'[ab]+'", weight=0.4),
    "not_rlike": _op("bool", "({0} NOT RLIKE {1})", "text", "='a.*'|'^b'", weight=0.3),
    "startswith": _op("bool", "startswith({0}, {1})", "text", "text"),
    "endswith": _op("bool", "endswith({0}, {1})", "text", "text"),
    "contains": _op("bool", "contains({0}, {1})", "text", "text"),
    "near": _op("bool", "(levenshtein({0}, {1}) <= {2})", "text", "text", "=0|1|2"),
    "isnan": _op("bool", "isnan({0})", "real"),
    "array_contains": _op("bool", "array_contains({0}, {1})", "ints", "int"),
    "arrays_overlap": _op("bool", "arrays_overlap({0}, {1})", "ints", "ints", weight=0.4),
    "share": _op("bool", "(size(array_intersect({0}, {1})) >= {2})", "ints", "ints", "=0|1|2"),
    "share_texts": _op("bool", "(size(array_intersect({0}, {1})) > 0)", "texts", "texts"),
    "until": _op("bool", "({0} - {1} < {2})", "instant", "instant", "=INTERVAL 1 SECOND|INTERVAL 5 DAYS"),
    "until_clock": _op("bool", "({0} - {1} <= {2})", "clock", "clock", "=INTERVAL 1 HOUR|INTERVAL 0 SECONDS"),
    # Choices.
    "if": _op("T", "if({0}, {1}, {2})", "bool", "T", "T"),
    "case": _op("T", "(CASE WHEN {0} THEN {1} ELSE {2} END)", "bool", "T", "T"),
    "case_open": _op("T", "(CASE WHEN {0} THEN {1} END)", "bool", "T", weight=0.5),
    "case_value": _op("T", "(CASE {0} WHEN 1 THEN {1} ELSE {2} END)", "int", "T", "T", weight=0.5),
    "coalesce": _op("T", "coalesce({0}, {1})", "T", "T"),
    "ifnull": _op("T", "ifnull({0}, {1})", "T", "T", weight=0.3),
    "nvl": _op("T", "nvl({0}, {1})", "T", "T", weight=0.3),
    "nvl2": _op("T", "nvl2({0}, {1}, {2})", "T", "T", "T", weight=0.2),
    "nullif": _op("T", "nullif({0}, {1})", "T", "T", weight=0.5),
    "greatest": _op("T", "greatest({0}, {1})", "T", "T"),
    "greatest_of_one": _op("T", "greatest({0})", "T", weight=0.1),
    "least_of_one": _op("T", "least({0})", "T", weight=0.1),
    "least": _op("T", "least({0}, {1})", "T", "T"),
    # Integers.
    "add": _op("int", "({0} + {1})", "int", "int", weight=2),
    "subtract": _op("int", "({0} - {1})", "int", "int", weight=2),
    "multiply": _op("int", "({0} * {1})", "int", "int"),
    "negate": _op("int", "(- {0})", "int"),
    "plus": _op("int", "(+ {0})", "int", weight=0.2),
    "abs": _op("int", "abs({0})", "int"),
    "div": _op("int", "({0} div {1})", "int", "int", weight=0.7),
    "mod": _op("int", "({0} % {1})", "int", "int", weight=0.7),
    "mod_call": _op("int", "mod({0}, {1})", "int", "=2|3|-2", weight=0.3),
    "pmod": _op("int", "pmod({0}, {1})", "int", "=2|3|-2", weight=0.3),
    "bit_and": _op("int", "({0} & {1})", "int", "int", weight=0.5),
    "bit_or": _op("int", "({0} | {1})", "int", "int", weight=0.5),
    "bit_xor": _op("int", "({0} ^ {1})", "int", "int", weight=0.5),
    "bit_not": _op("int", "(~ {0})", "int", weight=0.5),
    "shift": _op("int", "shiftleft({0}, {1})", "int", "=1|2", weight=0.2),
    "length": _op("int", "length({0})", "text"),
    "position": _op("int", "instr({0}, {1})", "text", "text", weight=0.5),
    "locate": _op("int", "locate({0}, {1}, 2)", "text", "text", weight=0.2),
    "position_in": _op("int", "position({0} IN {1})", "text", "text", weight=0.2),
    "ascii": _op("int", "ascii({0})", "text", weight=0.2),
    "size": _op("int", "size({0})", "ints"),
    "size_distinct": _op("int", "size(array_distinct({0}))", "ints", weight=0.5),
    "datediff": _op("int", "datediff({0}, {1})", "date", "date"),
    "datediff_unit": _op("int", "datediff(DAY, {0}, {1})", "date", "date", weight=0.2),
    "unix_date": _op("int", "unix_date({0})", "date", weight=0.5),
    "unix_micros": _op("int", "unix_micros({0})", "instant", weight=0.5),
    "year": _op("int", "year({0})", "date"),
    "month": _op("int", "month({0})", "instant", weight=0.5),
    "day": _op("int", "day({0})", "clock", weight=0.5),
    "dayofmonth": _op("int", "dayofmonth({0})", "date", weight=0.3),
    "hour": _op("int", "hour({0})", "instant", weight=0.5),
    "minute": _op("int", "minute({0})", "clock", weight=0.5),
    "second": _op("int", "second({0})", "instant", weight=0.5),
    "extract": _op("int", "extract({0} FROM {1})", "=YEAR|DAY|QUARTER|WEEK|DOW", "date", weight=0.3),
    "floor": _op("int", "floor({0})", "real", weight=0.5),
    "ceil": _op("int", "ceil({0})", "real", weight=0.5),
    "to_bigint": _op("int", "cast({0} as bigint)", "int"),
    "to_int": _op("int", "cast({0} as int)", "N", weight=0.5),
    "try_to_int": _op("int", "try_cast({0} as int)", "text", weight=0.2),
    "colon_cast": _op("int", "({0} :: bigint)", "int", weight=0.2),
    "field": _op("int", "{0}.k", "struct", weight=0.5),
    "field_apart": _op("int", "({0}).K", "struct", weight=0.3),
    "required_field": _op("int", "{0}.id", "required", weight=0.5),
    # Reals.
    "add_real": _op("real", "({0} + {1})", "real", "N"),
    "subtract_real": _op("real", "({0} - {1})", "N", "real"),
    "multiply_real": _op("real", "({0} * {1})", "real", "N"),
    "divide": _op("real", "({0} / {1})", "int", "N", weight=0.7),
    "divide_real": _op("real", "({0} / {1})", "real", "real", weight=0.7),
    "negate_real": _op("real", "(- {0})", "real"),
    "abs_real": _op("real", "abs({0})", "real"),
    "sqrt": _op("real", "sqrt({0})", "N", weight=0.4),
    "power": _op("real", "power({0}, {1})", "N", "N", weight=0.6),
    "power_of": _op("real", "pow({0}, {1})", "real", "=2|0.5|-1|3|double('inf')|double('-inf')|double('NaN')", weight=0.3),
    "atan2": _op("real", "atan2({0}, {1})", "real", "real", weight=0.6),
    "sin": _op("real", "sin({0})", "N", weight=0.2),
    "cos": _op("real", "cos({0})", "N", weight=0.2),
    "asin": _op("real", "asin({0})", "N", weight=0.2),
    "acos": _op("real", "acos({0})", "N", weight=0.2),
    "atan": _op("real", "atan({0})", "N", weight=0.2),
    "tan": _op("real", "tan({0})", "N", weight=0.2),
    "exp": _op("real", "exp({0})", "N", weight=0.2),
    "round": _op("real", "round({0}, {1})", "real", "=0|1|2|-1", weight=0.5),
    "bround": _op("real", "bround({0}, 1)", "real", weight=0.2),
    "sign": _op("real", "sign({0})", "N", weight=0.3),
    "ln": _op("real", "ln({0})", "real", weight=0.3),
    "to_double": _op("real", "cast({0} as double)", "N"),
    # Decimals.
    "add_decimal": _op("decimal", "({0} + {1})", "decimal", "decimal", weight=1.5),
    "subtract_decimal": _op("decimal", "({0} - {1})", "decimal", "int", weight=1.5),
    "multiply_decimal": _op("decimal", "({0} * {1})", "decimal", "decimal"),
    "divide_decimal": _op("decimal", "({0} / {1})", "decimal", "int", weight=0.3),
    "extract_second": _op("decimal", "extract(SECOND FROM {0})", "instant", weight=0.3),
    "mod_decimal": _op("decimal", "({0} % {1})", "decimal", "=2|0.5|3", weight=0.3),
    "negate_decimal": _op("decimal", "(- {0})", "decimal"),
    "abs_decimal": _op("decimal", "abs({0})", "decimal"),
    "floor_decimal": _op("decimal", "floor({0})", "decimal", weight=0.4),
    "floor_digits": _op("decimal", "floor({0}, 1)", "decimal", weight=0.2),
    "to_decimal": _op("decimal", "cast({0} as decimal(12,2))", "N", weight=0.3),
    # Text.
    "concat": _op("text", "concat({0}, {1})", "text", "text"),
    "pipes": _op("text", "({0} || {1})", "text", "text"),
    "substring": _op("text", "substring({0}, {1}, {2})", "text", "=1|2|0|-1|1.7|-1.5D", "=1|2|-1|1.5"),
    "substring_words": _op("text", "substring({0} FROM 2 FOR 1)", "text", weight=0.3),
    "substring_rest": _op("text", "substr({0}, 2)", "text", weight=0.3),
    "left": _op("text", "left({0}, {1})", "text", "=0|1|2|1.5|-0.5|1e0|2L", weight=0.5),
    "right": _op("text", "right({0}, {1})", "text", "=0|1|2|1.5|0.5D", weight=0.5),
    "replace": _op("text", "replace({0}, 'a', 'b')", "text", weight=0.5),
    "overlay": _op("text", "overlay({0} PLACING 'x' FROM 1)", "text", weight=0.2),
    "lower": _op("text", "lower({0})", "text", weight=0.5),
    "upper": _op("text", "upper({0})", "text", weight=0.5),
    "trim": _op("text", "trim({0})", "text", weight=0.3),
    "trim_words": _op("text", "trim(LEADING 'a' FROM {0})", "text", weight=0.3),
    "text_of": _op("text", "cast({0} as string)", "int", weight=0.5),
    "field_text": _op("text", "({0}).s", "struct", weight=0.3),
    # Time.
    "date_plus": _op("date", "({0} + {1})", "date", "=1|40|-3", weight=0.7),
    "date_minus": _op("date", "({0} - {1})", "date", "=1|40"),
    "date_add": _op("date", "date_add({0}, {1})", "date", "=1|-1", weight=0.3),
    "date_later": _op("date", "({0} + INTERVAL 3 DAYS)", "date", weight=0.3),
    "to_date": _op("date", "to_date({0})", "instant", weight=0.7),
    "cast_date": _op("date", "cast({0} as date)", "clock", weight=0.5),
    "later": _op("instant", "({0} + {1})", "instant", "=INTERVAL 1 SECOND|INTERVAL 2 DAYS|INTERVAL 90 MINUTES"),
    "earlier": _op("clock", "({0} - {1})", "clock", "=INTERVAL 1 SECOND|INTERVAL 2 DAYS"),
    "months_later": _op("clock", "({0} + INTERVAL 1 MONTH)", "clock", weight=0.2),
    "truncated": _op("instant", "date_trunc({0}, {1})", "='HOUR'|'DAY'", "instant", weight=0.2),
    "compact": _op("ints", "array_compact({0})", "ints", weight=0.5),
}  # fmt: skip
"""Operators by name; the name is the first element of a node."""

LITERALS: dict[str, tuple[str, ...]] = {
    "bool": ("true", "false", "NULL"),
    "int": ("0", "1", "2", "3", "-1", "127", "2147483647", "9223372036854775807"),
    "real": ("0.5D", "1e0", "0D", "-1.5D", "2.0D"),
    "decimal": ("0.5", "1.00", "2.0", "0.01"),
    "text": (
        "'a'",
        "'ab'",
        "''",
        "'a%'",
        "'_b'",
        "'%b%'",
        "'a!%'",
        "'A'",
        r"'a\\b'",
        r"'a\\%'",
        r"'\''",
        "''''",
        r"'\u0061'",
        r"'a\tb'",
        r"'\%'",
    ),
    "bytes": ("X'61'", "X''"),
    "date": ("DATE '2024-03-01'", "DATE '2024-02-29'"),
    "clock": ("TIMESTAMP_NTZ '2024-03-01 00:00:00'",),
    "instant": ("TIMESTAMP '2024-03-01 00:00:00'", "TIMESTAMP '2024-03-01 12:30:00.000007'"),
}
"""Texts of literals by class."""

_FUNCTIONS = """
    acosh array_append array_distinct array_except array_join array_max array_min array_position
    array_remove array_repeat array_size array_sort array_union arrays_zip asinh atanh base64 bin
    bit_count bit_length bool cardinality cbrt char char_length chr concat_ws conv cosh cot crc32
    csc date_format date_from_unix_date date_sub dayofweek dayofyear decode degrees e elt encode
    equal_null exp expm1 factorial find_in_set format_number format_string from_unixtime
    getbit hash hex hypot initcap isnotnull isnull last_day lcase log10 log1p log2 lpad ltrim
    make_date make_timestamp mask md5 months_between nanvl next_day nullifzero octet_length parse_url
    pi pow quarter radians regexp_count regexp_extract regexp_replace regexp_substr repeat reverse
    rint rpad rtrim sec sequence sha1 sha2 shiftright signum sinh slice sort_array soundex space
    split split_part substring_index tan tanh timestamp_micros timestamp_seconds to_char
    to_number to_timestamp to_unix_timestamp translate trunc try_add try_divide try_subtract
    try_to_number typeof unbase64 unhex unix_millis unix_seconds unix_timestamp url_encode weekday
    weekofyear width_bucket xxhash64 zeroifnull
"""
FUNCTIONS = tuple(_FUNCTIONS.split())
"""Spark functions that no operator above writes; each is tested with random arguments."""
LENGTHENING = ("array_repeat", "lpad", "repeat", "rpad", "sequence", "space")
"""Functions with a result length given by a number; a large number would exhaust the memory."""
