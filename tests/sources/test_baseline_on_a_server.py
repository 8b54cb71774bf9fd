"""A run and its baseline whose metrics are kept by one server."""

from __future__ import annotations

import gzip
import re
import urllib.request
from pathlib import Path

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.render.json import document
from flatline.verify import verify
from scenario import ROOT
from sources.servers import free_port, program, running, wait_for

PORTS = ROOT / "ports_at_a_lower_rate_on_every_host"
DAY_MS = 86_400_000


def test_each_is_asked_for_its_own_time_and_its_evidence_is_run_there(tmp_path: Path) -> None:
    """The baseline ran the day before on the same hosts; both are told apart by their logs."""
    texts = [gzip.decompress((PORTS / n / "metrics.prom.gz").read_bytes()).decode()
             for n in ("run", "baseline")]  # fmt: skip
    texts[1] = re.sub(r" (\d{13})$", lambda m: f" {int(m[1]) - DAY_MS}", texts[1], flags=re.M)
    for name, day in (("run", "2026-03-04"), ("baseline", "2026-03-03")):
        (tmp_path / name).mkdir()
        log = (PORTS / name / "job.log").read_text().replace("2026-03-04", day)
        (tmp_path / name / "job.log").write_text(log)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [program("victoria-metrics"), f"-storageDataPath={tmp_path / 'vm'}",
               f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=10y",
               "-search.latencyOffset=0s"]  # fmt: skip
    with running(command, f"{url}/api/v1/labels"):
        for text in texts:
            asked = urllib.request.Request(f"{url}/api/v1/import/prometheus", text.encode())
            urllib.request.urlopen(asked, timeout=30).read()
        urllib.request.urlopen(f"{url}/internal/force_flush", timeout=30).read()
        run, other = str(tmp_path / "run"), str(tmp_path / "baseline")
        request = Request((run,), baseline=other, prometheus=url)
        wait_for(lambda: collect(request).window is not None)
        verdict = diagnose(collect(request))
        made = document(verdict)
        failed = [c for c in verify(made, (run,), url, other) if not c.ok]

    assert (verdict.code, verdict.fault_class) == ("D2", "slow-interconnect")
    assert {f"baseline:{url}", url} <= {item["source"] for item in made["evidence"]}  # type: ignore[attr-defined]
    assert failed == []
