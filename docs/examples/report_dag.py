"""A report as a task of Airflow. A report that fails leaves the task failed."""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG("orders", schedule="0 6 * * *", start_date=datetime(2026, 1, 1), catchup=False):
    BashOperator(
        task_id="report",
        bash_command=(
            "cd /srv/braid && /opt/braid/bin/braid report orders.ipynb -f -o www/orders.html "
            '--keep 30 --index www --expect "unpaid orders <= 5" --on-change ./tell.sh'
        ),
        execution_timeout=timedelta(hours=2),
    )
