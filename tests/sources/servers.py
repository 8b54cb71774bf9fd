"""Real servers on loopback for tests, started where they are installed and ended by their id."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PAGE = """\
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{{gpu="0",UUID="GPU-a",Hostname="n1"}} 1410
DCGM_FI_DEV_SM_CLOCK{{gpu="1",UUID="GPU-b",Hostname="n1"}} 200
# TYPE requests_total counter
requests_total {scrapes}
"""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@contextmanager
def exporter() -> Iterator[int]:
    """A port where two GPUs and a counter of scrapes are exported."""
    scrapes = 0

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal scrapes
            scrapes += 1
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(PAGE.format(scrapes=scrapes).encode())

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@contextmanager
def running(command: list[str], ready: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program until the block ends; the block begins when `ready` answers."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: answers(ready))
        yield process
    finally:
        process.terminate()
        process.wait(20)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def wait_for(met: Callable[[], bool], within_s: float = 30.0) -> None:
    end = time.monotonic() + within_s
    while not met():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.2)


def scraping(folder: Path, port: int) -> Path:
    """A configuration that scrapes an exporter each second."""
    path = folder / "prometheus.yml"
    path.write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: x, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
    )
    return path
