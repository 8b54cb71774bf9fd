"""Real servers on loopback, started and ended here."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CONFIG = """\
global: {{scrape_interval: {every}s, scrape_timeout: {every}s}}
scrape_configs:
- job_name: node
  static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""


@dataclass(frozen=True)
class Running:
    """A server that answers at a port."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def node_exporter(work: Path) -> Iterator[Running]:
    port = free_port()
    command = ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}"]
    with _running(command, port, "/metrics"):
        yield Running(port)


@contextmanager
def prometheus(
    work: Path, every_s: int, target: int, data: Path | None = None
) -> Iterator[Running]:
    """Prometheus that scrapes a port, over a data folder that may be there already."""
    port = free_port()
    config = work / "prometheus.yml"
    config.write_text(CONFIG.format(every=every_s, port=target), "utf-8")
    command = [
        "prometheus", f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}",
        f"--storage.tsdb.path={data or work / 'data'}", "--storage.tsdb.retention.time=10y",
    ]  # fmt: skip
    with _running(command, port, "/-/ready"):
        yield Running(port)


@contextmanager
def _running(command: list[str], port: int, path: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await(f"http://127.0.0.1:{port}{path}")
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


def _await(url: str) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(url)
