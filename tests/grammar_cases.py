"""Conditions inside and outside of Spark's grammar."""

from __future__ import annotations

NOT_SPARK = """
a.n BETWEEN SYMMETRIC 1 AND b.n
a.n BETWEEN ASYMMETRIC 1 AND b.n
a.n BETWEEN 1 b.n
a.n IS NULL = b.b
a.n IS NOT NULL = b.b
a.b IS TRUE IS TRUE
a.n IS NULL IS NULL
a.n IN (1) IN (b.b)
a.n BETWEEN 1 AND 2 BETWEEN b.b AND b.b
a.n IS NOT DISTINCT FROM b.n IS NULL
a.s LIKE 'x' LIKE b.s
a.b = NOT b.b
a.b <=> NOT b.b
a.b = b.n < 3
a.b = a.c < b.b
a.n ISNULL OR a.n = b.n
a.n NOTNULL AND a.n = b.n
a.n NOT NULL AND a.n = b.n
a.n IS b.n
a.n IS NOT 5 AND a.n = b.n
a.n ! IN (b.n)
a.n IS ! NULL AND a.n = b.n
a.n IN (b.n, 2,)
a.n IN (, b.n)
a.n IN b.n
a.n IN [b.n]
a.n IN ()
coalesce(a.n, b.n,) = 1
coalesce(a.n,, b.n) = 1
greatest(ALL a.n b.n) = 1
coalesce(a.n AS y, 1 z) = b.n
CASE WHEN a.b a.n ELSE 1 END = b.n
CASE WHEN a.b THEN a.n ELSE END = b.n
CASE a.n ELSE 1 END = b.n
CASE END = b.n
cast(a.n AS text) = b.s
cast(a.n AS int4) = b.n
cast(a.n AS int64) = b.n
cast(a.n AS varchar) = b.s
cast(a.n AS signed) = b.n
cast(a.n AS double precision) = b.x
cast(a.n AS int unsigned) = b.n
cast(a.n AS bigint(20)) = b.n
cast(a.t AS datetime) = b.t
cast(a.t AS timestamptz) = b.t
cast(a.t AS timestamp with time zone) = b.t
cast(a.n, bigint) = b.n
cast(a.n bigint) = b.n
a.n::int4 = b.n
int '5' = a.n AND a.n = b.n
datetime '2024-01-01 00:00:00' = a.t AND a.n = b.n
varchar 'x' = a.s AND a.n = b.n
+a.s = b.s
+a.b = b.b
a.n = b.n AND a.t > + b.t
a.s SIMILAR TO b.s
a.s GLOB b.s
a.s ~ b.s
a.s ~~ b.s
a.s !~ b.s
a.s IRLIKE b.s
a.s NOT ~~ b.s
a.n ?? b.n = 1
a.n ** 2 = b.n
a.n // 2 = b.n
a.n MOD 2 = b.n
a.b XOR b.b
a.b && b.b
a.n := b.n
a.t OVERLAPS b.t
a.t AT TIME ZONE 'UTC' = b.t
(a.n, 1) OVERLAPS (b.n, 2)
a.n = b.n AND
AND a.n = b.n
a.n = = b.n
a.n = b.n a.m
a.n = b.n AS x
a.n = b.n; a.m = b.m
a.n = b.n, a.m = b.m
a.n = b.n {# a comment of templates #}
a.n = b.n /*+ BROADCAST(a) */
a.n = 0x1F AND a.n = b.n
a.s = N'x' AND a.n = b.n
a.s = b'01' AND a.n = b.n
a.n = :x AND a.n = b.n
a.n = ? AND a.n = b.n
a.n = @x AND a.n = b.n
a.n = $1 AND a.n = b.n
a.n = b.$n
a.'n' = b.n
[a.n] = b.n
{'x': a.n} = b.n
extract(second, a.t) = b.n
extract(second a.t) = b.n
substring(a.s FOR 2) = b.s
substring(a.s FROM 1 FOR) = b.s
trim(BOTH a.s) = b.s
position(a.s, ) = b.n
overlay(a.s PLACING b.s) = b.s
interval a.n days < interval 1 day AND a.n = b.n
a.t > b.t + interval 5 + 3 minutes
a.t > b.t + interval 1 day + 2 hours
a.t > b.t + interval 5 min
a.t > b.t + interval 5 mins
a.t > b.t + interval '5 min'
a.t > b.t + interval '5 d'
a.t > b.t + interval 5
a.t > b.t + 5 days
a.t > b.t + interval (5) days
if a.b THEN a.n ELSE b.n END = 1
EXISTS a.n = b.n
NOT
()
a.n = b.n ORDER BY a.n
a.n = b.n LIMIT 1
a.n = b.n COLLATE
a.s || a.n + b.n = 'x'
a.n + b.n || a.s = 'x'
a.s LIKE b.s ESCAPE
a.s LIKE b.s ESCAPE a.s
a.s LIKE ANY a.s, b.s
a.n[1:2] = b.n
lateral a.n = b.n
a.n = b.n IGNORE NULLS
""".strip().splitlines()
"""All of them but the sums of || are refused by Spark's own parser
(tests/spark/test_dialect.py).
"""
SPARK = """
a.n BETWEEN 1 AND b.n
CASE (a.n + b.n) WHEN 1 THEN a.b ELSE b.b END
CASE (a.n) + 1 WHEN b.n THEN a.b END
(CASE (CASE a.n WHEN 1 THEN 2 END) WHEN b.n THEN a.b ELSE b.b END)
a.n = b.n AND a.b = b.b IS NULL
a.b = (a.n IS NULL) AND a.n = b.n
a.b AND NOT b.b
NOT NOT a.b AND ! b.b
a.n = b.n = b.b
a.n < b.n = b.b
a.n <=> b.n OR a.n != b.n OR a.n <> 3 OR a.n == 2
a.n IS DISTINCT FROM b.n
a.n IS NOT DISTINCT FROM b.n
a.b IS NOT TRUE OR b.b IS UNKNOWN
a.n NOT IN (b.n, -1, +2)
a.n NOT BETWEEN b.n - 1 AND b.n + 1
a.s NOT LIKE b.s ESCAPE '!'
a.s LIKE b.s AND a.s ILIKE ANY ('a', "b") OR a.s RLIKE 'x' OR a.s REGEXP 'y'
CASE WHEN a.b THEN a.n ELSE 1 END = b.n
CASE a.n WHEN 1 THEN b.n END = 1
case when a.b then case b.n when 1 then 2 end end = 1
cast(a.n AS bigint) = b.n AND cast(a.p AS decimal(10, 2)) = b.p AND try_cast(a.n AS long) = 1
cast(a.p AS decimal) = b.n AND cast(a.p AS dec(5)) = 1 AND cast(a.s AS varchar(3)) = b.s
cast(array(1) AS array<map<string, struct<x: int NOT NULL, y string>>>) IS NULL AND a.n = b.n
a.n::bigint = b.n AND a.n = 5L AND a.x = 1.5D AND a.p = 1.5BD AND a.x = 1e3 AND a.x = .5
a.t > b.t + interval 5 minutes AND a.t < b.t + INTERVAL 1 DAY 12 HOURS
a.t > b.t - interval '5' minute AND a.t > b.t - interval '5 minutes' AND a.t > b.t - interval -1 day
a.t > b.t - interval '1 2' day to hour + interval 1 day
a.d = date'2024-01-01' AND a.t > timestamp '2024-01-01 00:00:00' AND a.n = b.n
extract(second FROM a.t) = b.n AND trim(BOTH ' ' FROM a.s) = b.s AND trim(FROM a.s) = 'x'
trim(LEADING FROM a.s) = trim(' ', b.s) AND substring(a.s FROM 2 FOR 1) = substr(b.s, 1)
position('x' IN a.s) = position('x', b.s) AND overlay(a.s PLACING 'y' FROM 1 FOR 2) = b.s
exists(array(a.n), x -> x > b.n) AND aggregate(array(1), 0, (x, y) -> x + y) = a.n
named_struct('x', a.n).x = b.n AND struct(a.n AS x, b.n).x = 1 AND map('a', 1)['a'] = a.n
if(a.b, a.n, 2) = b.n AND left(a.s, 1) = right(b.s, 1) AND mod(a.n, 2) = 1 AND a.n div 2 = a.n % 2
a.n & 1 << 2 = b.n | 3 ^ ~a.n AND a.n >> 1 = 2
a.s || b.s || 'x' = 'y' 'z' AND a.s = r'x' AND a.n - -b.n > + 3
(a.n, a.m) = (b.n, b.m) AND (a.n = b.n)
`a`.`n` = b.n /* a comment */ -- another
a.end = b.interval AND a.`x y` = b.case AND end - start < interval
a.s COLLATE UTF8_LCASE = b.s
timestampdiff(HOUR, a.t, b.t) = 0 AND dateadd(day, 2, a.d) = b.d AND now() > a.t AND current_date > b.d
x'1F' = X'2f' AND a.n = b.n
json_tuple(a.s, 'x').y = b.n AND my.function(DISTINCT a.n, b.n) = 1
a.n = b.n;
""".strip().splitlines()
"""Conditions that Spark's grammar accepts; not all are valid."""
