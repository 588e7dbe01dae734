"""A report as an asset of Dagster, every morning. A report that fails leaves its run failed."""

import subprocess

import dagster

COMMAND = (
    "cd /srv/braid && /opt/braid/bin/braid report orders.ipynb -f -o www/orders.html "
    '--keep 30 --index www --expect "unpaid orders <= 5" --on-change ./tell.sh'
)


@dagster.asset(retry_policy=dagster.RetryPolicy(max_retries=1))
def orders_report() -> None:
    """Run the report again if it failed, with 1, but not if it was refused, with 2."""
    code = subprocess.run(["/bin/sh", "-c", COMMAND]).returncode
    if code:
        raise dagster.Failure(f"braid report: exit code {code}", allow_retries=code != 2)


definitions = dagster.Definitions(
    assets=[orders_report],
    schedules=[
        dagster.ScheduleDefinition("orders", target=[orders_report], cron_schedule="0 6 * * *")
    ],
)
