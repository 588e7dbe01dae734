"""The fuzzer's command: ``python -m fuzz --seed 1 --minutes 5``."""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from braid.core.event_jsonl import LOGGER

from fuzz.campaign import Campaign, Finding, Report
from fuzz.cases import Case, encode, load, save
from fuzz.hub_campaign import StatementCampaign
from fuzz.query_campaign import check_plans, find_wrong_answers
from fuzz.replay import list_outcomes

FOUND = Path("runs/fuzz")
"""Folders of the cases found, by kind of case."""


def main() -> int:
    """Run the fuzzer with these arguments. Return 1 if a wrong answer was found."""
    given = _arguments()
    LOGGER.setLevel(logging.CRITICAL)
    if given.queries or given.plans:
        return _run_queries(given)
    with open_spark(given.spark and not given.statements) as spark:
        if given.case is not None:
            return _replay(given.case, spark)
        if given.statements:
            found = StatementCampaign(given.seed).run(given.minutes, given.count)
            print(found)
            for case in found.wrong:
                _keep(case, case.why)
            return int(bool(found.wrong))
        campaign = Campaign(given.seed, spark)
        report = campaign.run(given.minutes, given.count)
    _print(report, given.seed)
    return int(bool(report.findings))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, help="how long it runs")
    parser.add_argument("--count", type=int, help="how many conditions or statements it tries")
    parser.add_argument("--case", type=Path, help="a JSON file, which is tried again")
    parser.add_argument("--statements", action="store_true", help="statements of a hub")
    parser.add_argument(
        "--queries", action="store_true", help="runs of every kind: joins, shared joins and hubs"
    )
    parser.add_argument(
        "--plans", action="store_true", help="plans of joins of every kind, without their runs"
    )
    parser.add_argument("--no-spark", dest="spark", action="store_false", help="start no Spark")
    given = parser.parse_args()
    if given.minutes is None and given.count is None:
        given.minutes = 1.0
    return given


@contextlib.contextmanager
def open_spark(is_wanted: bool) -> Iterator[Any]:
    if not is_wanted:
        yield None
        return
    import conftest  # noqa: F401  its settings of Spark's JVM
    from braid.spark_session import session

    gc.enable()

    options = "-Xss8m -XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError"  # else it hangs
    spark = session("braid-fuzz", cores=2, spark_driver_extraJavaOptions=options)
    try:
        yield spark
    finally:
        spark.stop()


def _run_queries(given: argparse.Namespace) -> int:
    runs = wrong = 0
    checks = (check_plans,) if given.plans else ()
    for seed, sentence in find_wrong_answers(given.seed, given.minutes, given.count, checks):
        runs, wrong = runs + 1, wrong + bool(sentence)
        if sentence:
            print(f"seed {seed}: {sentence}")
    print(f"{runs:,} runs of every kind; {wrong} wrong")
    return int(bool(wrong))


def _replay(path: Path, spark: Any) -> int:
    case = load(path)
    wrong = False
    for route, sentence in list_outcomes(case, spark).items():
        print(f"{route}: {sentence or 'right'}")
        wrong |= bool(sentence)
    return int(wrong)


def _print(report: Report, seed: int) -> None:
    print(
        f"seed {seed}: {report.conditions:,} conditions in {report.seconds:.0f} s, "
        f"{report.rate:.1f} a second; {len(report.findings)} wrong"
    )
    for (route, kind), count in sorted(report.verdicts.items()):
        print(f"  {route}: {count:,} {kind}")
    for sentence, count in report.refusals.most_common(12):
        print(f"  refused {count:,} times: {sentence}")
    for finding in report.findings:
        _tell(finding)


def _tell(finding: Finding) -> None:
    _keep(finding.shrunk, f"{finding.route}: {finding.wrong}")


def _keep(case: Any, wrong: str) -> None:
    name = hashlib.sha256(encode(case)).hexdigest()[:10]
    save(case, FOUND / f"{name}.json")
    text = case.on if isinstance(case, Case) else case.statement
    print(f"\n{wrong}\n  {text}\n  make fuzz CASE={FOUND / name}.json")


if __name__ == "__main__":
    sys.exit(main())
