"""
Open a run in Grafana: its metrics behind Prometheus's HTTP API.

A TARGET is a folder or a file, of a run that is over too; several are parts
of one run. Read only, on this machine alone unless --listen says otherwise;
then callers need the token in --token-file or FLATLINE_SERVE_TOKEN. A query
without a time is answered as of the run's last sample. --dashboard prints
panels for what the target holds, to be imported in Grafana.

examples:
  flatline serve ./outputs/8308
  flatline serve ./outputs/8308 --listen 127.0.0.1:9099 --promql-compat 2
  flatline serve ./outputs/8308 --dashboard > run.json
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from flatline.cli import HEALTHY, Engine, complain, say
from flatline.errors import UsageError
from flatline.wording.untrusted import neutral

if TYPE_CHECKING:
    from flatline.serve.held import Held

USAGE = "TARGET... [--listen [HOST:]PORT] [options]"
HERE = "127.0.0.1"
_LISTEN = re.compile(r"(?:(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):)?(?P<port>\d{1,5})")


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("targets", nargs="+", metavar="TARGET", help="what holds the metrics")
    add("--listen", metavar="[HOST:]PORT", default=f"{HERE}:9099",
        help="default: 127.0.0.1:9099; port 0 takes a free one")  # fmt: skip
    add("--token-file", metavar="FILE", help="the token callers need; or FLATLINE_SERVE_TOKEN")
    add("--promql-compat", choices=("2", "3"), default="3", metavar="2|3",
        help="answer as this major release of Prometheus; default: 3")  # fmt: skip
    add("--timeout", metavar="SECONDS", default="120", help="longest a query may take")
    add("--dashboard", action="store_true", help="print a dashboard for Grafana, and end")


def run(options: argparse.Namespace, engine: Engine) -> int:
    host, port = _listen(options.listen)
    token = _token(options.token_file)
    within_s = _seconds(options.timeout)
    from flatline.serve.held import opened
    from flatline.wording.progress import Progress

    progress = Progress(sys.stderr, unit="files")
    try:
        held = opened(tuple(options.targets), 2 if options.promql_compat == "2" else 3, progress)
    finally:
        progress.clear()
    if options.dashboard:
        import orjson

        from flatline.serve.dashboard import dashboard

        name = Path(options.targets[0]).resolve().name
        say(orjson.dumps(dashboard(held.store, name), option=orjson.OPT_INDENT_2).decode() + "\n")
        return HEALTHY
    from flatline.serve.listening import Patience, Server

    with Server(held, host, port, token=token, patience=Patience(query_s=within_s)) as server:
        if not server.local:
            complain(f"flatline: others reach {host}: put TLS before it, for the token is a"
                     " password, and what the run's labels say is theirs to read")  # fmt: skip
        for gap in held.warnings:
            complain(f"flatline: {neutral(gap)}")
        complain(f"flatline: {_holds(held)}\n"
                 f"flatline: in Grafana, a Prometheus data source of {server.url}; ends with"
                 " Ctrl-C")  # fmt: skip
        _until_told(server.serve_forever, server.shutdown)
    return HEALTHY


def _holds(held: Held) -> str:
    """What is served, and when it was."""
    if held.span is None:
        return "there is no sample that says when it was taken: every answer will be empty"
    first, last = (datetime.fromtimestamp(at, UTC) for at in held.span)
    when = f"from {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S} UTC"
    return f"serving {len(held.store.names()):,} metrics {when}"


def _until_told(work: Callable[[], None], stop: Callable[[], None]) -> None:
    """Until Ctrl-C, or SIGTERM, which ends it likewise.  An exception that a signal raises is lost
    where it strikes a destructor, so none is raised: another thread stops the work."""
    import signal
    import threading

    def told(*_: object) -> None:
        threading.Thread(target=stop, daemon=True).start()

    before = {one: signal.signal(one, told) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        work()
        complain("flatline: ended")
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _listen(said: str) -> tuple[str, int]:
    found = _LISTEN.fullmatch(said)
    if found is None or int(found["port"]) > 65535:
        raise UsageError(f"--listen {said!r}: give a port, or HOST:PORT")
    return (found["host"] or HERE).strip("[]"), int(found["port"])


def _seconds(said: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", said) or float(said) == 0:
        raise UsageError(f"--timeout {said!r}: give seconds, as 120")
    return float(said)


def _token(file: str | None) -> str:
    """Never an argument: those can be read by everybody on the machine."""
    if file is None:
        return os.environ.get("FLATLINE_SERVE_TOKEN", "")
    try:
        path = Path(file).expanduser()
        if path.stat().st_mode & 0o077:
            raise UsageError(f"--token-file {file} can be read by others: chmod 600 {file}")
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"--token-file {file}: {getattr(fault, 'strerror', fault)}") from fault
    if not token:
        raise UsageError(f"--token-file {file} is empty")
    return token
