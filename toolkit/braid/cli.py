"""The console command ``braid``: run notebooks, inspect and repair runs."""

from __future__ import annotations

import argparse
import os
import platform
import select
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from braid import __version__
from braid.plugins import load_commands
from braid.run_commands import add_run_commands, exit_on_errors
from braid.run_views import load_view_module
from braid.util.batch_numbers import read_batch_number
from braid.util.git_checkout import git_commit
from braid.util.optional_imports import missing_dependency_message
from braid.util.package_versions import list_versions

_LAB_COMMANDS = ("report", "list", "queries", "cluster")
"""Commands that ``braid_lab`` adds, if it is installed."""
_SIGPIPE = 141
"""The exit code that a shell reports for a program whose output pipe was closed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Without ``arguments``, the command line of this process is used.

    - 0: success.
    - 1: a notebook failed, a run is unhealthy or damaged, or a package is missing.
    - 2: wrong usage (argparse raises SystemExit), or a command of the lab, which is missing.
    - 130: interrupted.
    - 141: the reader of the output has closed the pipe.
    """
    try:
        try:
            return _run_command(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _drop_output_without_reader():
            raise
        return _SIGPIPE


def _run_command(arguments: Sequence[str] | None) -> int:
    options = _make_parser().parse_args(arguments)
    if arguments is None:  # this process runs only this command
        # With this module, jsonschema spends seconds on grammars for IRIs; notebooks have none.
        sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    try:
        return int(options.command(options))
    except ModuleNotFoundError as error:
        print(f"braid: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("braid: interrupted", file=sys.stderr)
        return 130


def _drop_output_without_reader() -> bool:
    """Redirect outputs whose reader closed the pipe, as ``head`` does, to the null device.

    Return whether there was one.
    """
    gone = [out for out in (sys.stdout, sys.stderr) if _has_no_reader(out.fileno())]
    for out in gone:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, out.fileno())
        os.close(nowhere)
    return bool(gone)


def _has_no_reader(file: int) -> bool:
    """Return whether the file is a pipe whose reader has closed it."""
    poll = select.poll()
    poll.register(file, select.POLLOUT)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="braid", description="Stream joins you can watch, on Apache Spark."
    )
    parser.add_argument("--version", action="version", version=_format_version())
    parser.add_argument(
        "--versions", action=_PrintVersions, nargs=0, help="also of the packages that Braid runs on"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_plugin_commands(commands)
    inspect = commands.add_parser("inspect", help="describe a run in words, batch by batch")
    question = inspect.add_mutually_exclusive_group()
    question.add_argument("--batch", metavar="N", type=int, help="the plan of a batch, from 1")
    question.add_argument("--block", metavar="B", type=int, help="the history of a block")
    question.add_argument(
        "--why", metavar=("A", "B"), type=int, nargs=2, help="why two blocks met, or did not"
    )
    inspect.set_defaults(command=_inspect_run)
    add_run_commands(commands)
    shown = commands.add_parser(
        "watch", help="show an active or ended run in a browser on this machine"
    )
    shown.add_argument("--port", type=int, default=0, help="the port (default: any free port)")
    shown.set_defaults(command=_watch_run)
    film = commands.add_parser("replay", help="write a run as one page that plays offline")
    film.add_argument(
        "-o", dest="output", metavar="FILE", type=Path, required=True, help="the HTML file"
    )
    film.add_argument("-f", "--force", action="store_true", help="replace the file if it exists")
    film.set_defaults(command=_save_replay)
    how = commands.add_parser(
        "health", help="print the health of a run or a hub; the exit code is 1 if it failed or died"
    )
    form = how.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as a JSON object")
    form.add_argument("--prometheus", action="store_true", help="as Prometheus's text")
    how.set_defaults(command=_print_health)
    check = commands.add_parser("check", help="verify the files of a stopped run")
    back = commands.add_parser(
        "repair", help="rebuild damaged files of a stopped run, or roll it back to a batch"
    )
    for command in (how, check, back):
        command.add_argument("run", metavar="RUN", type=Path, help="a run folder")
    back.add_argument(
        "--to-batch",
        metavar="N",
        type=int,
        help="the last batch to keep, from 1; 0: none (default: keep all)",
    )
    check.add_argument(
        "--answers",
        action="store_true",
        help="also recompute the results from the input, by query if there are several, and show "
        "differences",
    )
    check.add_argument(
        "--sample",
        metavar="SHARE",
        type=float,
        default=1.0,
        help="with --answers: the share of the first stream's rows to check (default: 1)",
    )
    check.set_defaults(command=_check_run)
    back.set_defaults(command=_repair_run)
    for command in (inspect, shown, film):
        command.add_argument(
            "run", metavar="RUN", type=Path, help="a run folder, or a recording (.jsonl)"
        )
    return parser


def _add_plugin_commands(commands: Any) -> None:
    """Add the commands of installed packages. Those of the lab are refused if it is missing."""
    for add_commands in load_commands():
        add_commands(commands)
    for name in _LAB_COMMANDS:
        if name not in commands.choices:
            # No character begins an option, so that all arguments are accepted, and ignored.
            missing = commands.add_parser(name, add_help=False, prefix_chars="\0")
            missing.add_argument("arguments", nargs="*")
            missing.set_defaults(command=_refuse_lab_command)


def _refuse_lab_command(options: argparse.Namespace) -> int:
    print(f"braid: {missing_dependency_message('braid_lab', 'notebooks')}", file=sys.stderr)
    return 2


def _format_version() -> str:
    commit = git_commit()
    return f"braid {__version__}" + (f" (commit {commit})" if commit else "")


class _PrintVersions(argparse.Action):
    """Print the versions of Braid and of the packages that it runs on, and exit."""

    def __call__(self, parser: argparse.ArgumentParser, *arguments: Any) -> None:
        print(_format_version())
        for package, version in list_versions().items():
            print(package, version or "is not installed")
        print(f"Python {platform.python_version()} on {platform.system()}")
        parser.exit()


@exit_on_errors(ValueError)
def _inspect_run(options: argparse.Namespace) -> int:
    from braid.run_inspector import inspect_run

    batch = None if options.batch is None else read_batch_number(options.batch)
    print(inspect_run(options.run, batch, options.block, options.why))
    return 0


@exit_on_errors(ValueError, OSError, OverflowError)
def _watch_run(options: argparse.Namespace) -> int:
    load_view_module("server").serve_forever(options.run, options.port)
    return 0


@exit_on_errors(ValueError, OSError)
def _save_replay(options: argparse.Namespace) -> int:
    try:
        written = load_view_module("page").save_run_page(options.run, options.output, options.force)
    except FileExistsError:
        raise ValueError(f"{options.output} exists; -f replaces it") from None
    print(f"wrote {written} ({written.stat().st_size / 1e6:.1f} MB)")
    return 0


@exit_on_errors(ValueError)
def _print_health(options: argparse.Namespace) -> int:
    from braid.health import read_health

    health = read_health(options.run)
    print(
        health.to_json()
        if options.json
        else health.to_prometheus()
        if options.prometheus
        else health
    )
    return 0 if health.is_healthy else 1


@exit_on_errors(ValueError)
def _check_run(options: argparse.Namespace) -> int:
    from braid.storage.integrity import check_run, repair_hint
    from braid.storage.remote_medium import is_object_store_url
    from braid.storage.run_store import RunStore

    faults, has = check_run(options.run)
    print(*faults, sep="\n", end="\n" if faults else "")
    if not faults:
        print(f"{has}: all whole")
    elif is_object_store_url(options.run):
        print(f"{has}: restore these objects")
    else:
        print(f"{has}: {repair_hint(RunStore(options.run))}")
    if faults or not options.answers:
        return 1 if faults else 0
    return _check_answers(options)


def _check_answers(options: argparse.Namespace) -> int:
    from braid.answer_check import check_answers

    report = check_answers(options.run, options.sample)
    print(report)
    return 0 if report.is_right else 1


@exit_on_errors(ValueError, RuntimeError)
def _repair_run(options: argparse.Namespace) -> int:
    from braid.storage.integrity import repair_run

    batch = None if options.to_batch is None else read_batch_number(options.to_batch)
    for step in repair_run(options.run, batch):
        print(f"rebuilt: {step}")
    if options.to_batch is not None:
        print(f"resume {options.run} to continue after batch {options.to_batch}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
