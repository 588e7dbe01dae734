"""Commands that explain runs and alert on them: why, doctor, serve, watchdog, bundle."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

Command = Callable[[argparse.Namespace], int]


def add_run_commands(commands: Any) -> None:
    """Add the commands to the parser's subparsers."""
    _add_why_command(commands)
    _add_doctor_command(commands)
    _add_serve_command(commands)
    _add_watchdog_command(commands)
    _add_bundle_commands(commands)


def _add_why_command(commands: Any) -> None:
    why = commands.add_parser("why", help="explain why rows are joined in a run, or are not")
    why.add_argument("run", metavar="RUN", type=Path, help="a run folder")
    why.add_argument(
        "--row",
        metavar=("ALIAS", "CONDITION"),
        nargs=2,
        action="append",
        required=True,
        help='the rows of a stream, such as: --row o "id = 7" (repeat it for other streams)',
    )
    why.add_argument(
        "--limit", metavar="N", type=int, default=20, help="rows of each stream (default: 20)"
    )
    why.add_argument("--query", metavar="NAME", help="the query of a shared run or a hub")
    why.add_argument("--blocks", action="store_true", help="say which blocks and hosts have them")
    why.add_argument("--json", action="store_true", help="as a JSON object")
    why.set_defaults(command=_explain_rows)


def _add_doctor_command(commands: Any) -> None:
    cure = commands.add_parser(
        "doctor", help="say what is wrong with a run; the exit code is 1 after a warning"
    )
    cure.add_argument("run", metavar="RUN", type=Path, help="a run folder")
    cure.add_argument("--only", metavar="RULE", nargs="+", help="the rules to apply")
    cure.add_argument("--json", action="store_true", help="as a JSON object")
    cure.set_defaults(command=_diagnose_run)


def _add_serve_command(commands: Any) -> None:
    serve = commands.add_parser(
        "serve", help="serve /metrics and /health of runs over HTTP on this machine"
    )
    serve.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="run folders")
    serve.add_argument("--port", type=int, default=0, help="the port (default: any free port)")
    serve.set_defaults(command=_serve_health)


def _add_watchdog_command(commands: Any) -> None:
    dog = commands.add_parser(
        "watchdog", help="report runs that failed or died, for cron; the exit code is 1 if one did"
    )
    dog.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="run folders")
    dog.add_argument(
        "--doctor", action="store_true", help="report the faults and warnings of doctor too"
    )
    dog.add_argument("--webhook", metavar="URL", help="an address that each alert is posted to")
    dog.set_defaults(command=_report_dead_runs)


def _add_bundle_commands(commands: Any) -> None:
    pack = commands.add_parser(
        "bundle", help="write what others need to understand a run into one file, without its rows"
    )
    pack.add_argument("run", metavar="RUN", type=Path, help="a run folder")
    pack.add_argument(
        "-o", dest="output", metavar="FILE", type=Path, help="the file (default: RUN.braid.zip)"
    )
    pack.add_argument("--data", action="store_true", help="with all rows of a run of tables")
    pack.add_argument("--last", metavar="N", type=int, help="the last batches (default: all)")
    pack.add_argument("-f", "--force", action="store_true", help="replace the file if it exists")
    pack.set_defaults(command=_bundle_run)
    back = commands.add_parser("unbundle", help="make a run folder of a bundle with data")
    back.add_argument("bundle", metavar="FILE", type=Path, help="a bundle")
    back.add_argument("folder", metavar="FOLDER", type=Path, help="the new run folder")
    back.set_defaults(command=_unbundle_run)


def exit_on_errors(*errors: type[Exception]) -> Callable[[Command], Command]:
    """Return a decorator for commands that print these errors as one line and return 2."""

    def refuse_errors(command: Command) -> Command:
        @wraps(command)
        def run_command(options: argparse.Namespace) -> int:
            try:
                return command(options)
            except BrokenPipeError:  # an OSError that `main` handles
                raise
            except errors as error:
                print(f"braid: {error}", file=sys.stderr)
                return 2

        return run_command

    return refuse_errors


@exit_on_errors(ValueError)
def _diagnose_run(options: argparse.Namespace) -> int:
    from braid.run_doctor import doctor

    diagnosis = doctor(options.run, options.only)
    print(diagnosis.to_json() if options.json else diagnosis)
    return 0 if diagnosis.is_sound else 1


@exit_on_errors(ValueError, OSError, OverflowError)
def _serve_health(options: argparse.Namespace) -> int:
    from braid.health_server import make_health_server

    with make_health_server(options.runs, options.port) as server:
        print(f"http://127.0.0.1:{server.server_port}/metrics, end with Ctrl-C", flush=True)
        server.serve_forever()
    return 0


@exit_on_errors(ValueError, OSError)
def _report_dead_runs(options: argparse.Namespace) -> int:
    from braid.watchdog import find_alerts, send_alert

    alerts = [*find_alerts(options.runs, options.doctor)]
    for alert in alerts:
        print(alert.text)
    for alert in alerts if options.webhook is not None else ():
        send_alert(alert, options.webhook)
    return 1 if alerts else 0


@exit_on_errors(ValueError)
def _explain_rows(options: argparse.Namespace) -> int:
    from braid.tuple_explanation import why

    answer = why(options.run, dict(options.row), options.limit, options.query, options.blocks)
    print(answer.to_json() if options.json else answer)
    return 0


@exit_on_errors(ValueError, OSError, RuntimeError)
def _bundle_run(options: argparse.Namespace) -> int:
    from braid.run_bundle import bundle

    try:
        print(bundle(options.run, options.output, options.data, options.last, options.force))
    except FileExistsError as error:
        raise ValueError(f"{error}; -f replaces it") from None
    return 0


@exit_on_errors(ValueError, OSError)
def _unbundle_run(options: argparse.Namespace) -> int:
    from braid.run_bundle import unbundle

    print(f"made {unbundle(options.bundle, options.folder)}; StreamJoin.resume continues the run")
    return 0
