"""Answer a stored case by every route and compare it with its right verdict."""

from __future__ import annotations

from typing import Any

from fuzz import routes
from fuzz.campaign import Campaign
from fuzz.cases import Case, StatementCase
from fuzz.outcomes import Answer


def list_outcomes(case: Case | StatementCase, spark: Any = None) -> dict[str, str]:
    """Return the fault of each route's answer in a line, empty if it has none."""
    if isinstance(case, StatementCase):
        from fuzz.hub_campaign import wrong_answers

        return {"hub": wrong_answers([case]).get(0, "")}
    answers = {"tables": routes.table_kernels(case), "table run": routes.table_run(case)}
    if spark is not None:
        answers["Spark kernels"] = routes.SparkKernels(spark, case).answers([case.on])[0]
        answers["process run"] = routes.process_run(spark, case)
    return {route: wrong_verdict(case, answer, spark) for route, answer in answers.items()}


def wrong_verdict(case: Case, answer: Answer, spark: Any = None) -> str:
    """Return the fault of an answer by the oracles and by the verdict stored with the case."""
    campaign = Campaign(0, spark)
    truth = campaign.quiet_truth(case)
    if wrong := campaign.wrong(case, answer, truth):
        return wrong
    if answer.kind in ("refused", "crashed") or case.verdict == "either":
        return ""
    wanted = {"equal": "rows", "fails": "failed", "refused": "refused"}[case.verdict]
    return (
        ""
        if answer.kind == wanted
        else f"it is {answer.kind} where the case is kept as {case.verdict}"
    )
