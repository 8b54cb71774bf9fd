"""A run beside its baseline, from the two folders to the verdict and back."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.errors import UsageError
from flatline.model import Comparison, Verdict
from flatline.render.json import render
from flatline.tracks import BASELINE
from flatline.verify import verify
from scenario import ROOT, Scenario, scenarios

COMPARED = [s for s in scenarios() if s.baseline is not None]
EACH = pytest.mark.parametrize("scenario", COMPARED, ids=lambda s: s.name)
FAULTS = [s for s in COMPARED if s.expect["verdict"]["state"] == "found"]
FAULT = pytest.mark.parametrize("scenario", FAULTS, ids=lambda s: s.name)
LEAK = ROOT / "threads_leaked_since_restore"
CONFIDENT = 0.8


def judged(run: Path, baseline: Path | None) -> Verdict:
    facts = collect(Request((str(run),), baseline=str(baseline) if baseline else None))
    facts.strict = True
    return diagnose(facts)


def beside(verdict: Verdict) -> Comparison:
    assert verdict.comparison is not None
    return verdict.comparison


def document(verdict: Verdict) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(render(verdict))
    return made


# --- invariants ---------------------------------------------------------------------------------


@FAULT
def test_without_its_baseline_a_fault_is_neither_healthy_nor_another(scenario: Scenario) -> None:
    """What only a comparison shows is undetermined without one."""
    alone = judged(scenario.run, None)
    allowed = {j.finding.code for j in scenario.verdict().findings}

    assert alone.state != "healthy"
    assert alone.confidence < CONFIDENT or alone.code in allowed
    assert alone.comparison is None


@EACH
def test_the_other_way_round_nobody_is_accused(scenario: Scenario) -> None:
    """The sound run beside the bad one: it is faster, learns better, and is no fault."""
    baseline = Path(scenario.baseline or "")
    swapped = judged(baseline, scenario.run)

    assert swapped.state != "found", swapped.headline
    assert [j for j in swapped.findings if j.role == "cause"] == []


@EACH
def test_a_run_beside_itself_differs_in_nothing(scenario: Scenario) -> None:
    """No setting, no step, no signal; and no finding comes of it."""
    same = beside(judged(scenario.run, scenario.run))

    assert same.settings == ()
    assert [m.name for m in same.measures if m.differs] == []
    assert same.signals == ()


@FAULT
@pytest.mark.parametrize("left", ["job.log", "metrics.prom.gz"])
def test_a_poorer_baseline_makes_no_fault_healthy(
    scenario: Scenario, left: str, tmp_path: Path
) -> None:
    """With a part of the baseline gone the fault is found or open, never cleared or another."""
    shutil.copytree(scenario.baseline or "", tmp_path / "b")
    for file in (tmp_path / "b").iterdir():
        if file.name != left:
            file.unlink()
    verdict = judged(scenario.run, tmp_path / "b")
    known = {j.finding.code for j in scenario.verdict().findings}

    assert verdict.state != "healthy"
    assert verdict.confidence < CONFIDENT or verdict.code in known
    if scenario.name == LEAK.name:
        assert "D5" not in {r.code for r in verdict.ruled_out}


def test_a_baseline_without_metrics_is_a_gap_and_clears_nothing() -> None:
    """The verdict says what the baseline lacks; the run queue stays undecided."""
    folder = ROOT / "baseline_without_metrics"
    verdict = judged(folder / "run", folder / "baseline")

    assert any(g.reason == "the baseline holds no metrics" for g in verdict.gaps)
    assert "D5" in {u.code for u in verdict.undetermined}


def test_the_configuration_comes_first() -> None:
    """With another batch size the slower run is no fault, and the verdict says why not."""
    folder = ROOT / "queue_doubled_with_another_batch_size"
    verdict = judged(folder / "run", folder / "baseline")

    assert beside(verdict).alike is False
    assert beside(verdict).settings[0].name == "batch size"
    assert any("batch size 8.0 against 12.0" in text for text in verdict.cannot_decide)
    assert [j for j in verdict.findings if j.role == "cause"] == []


def test_a_slower_run_that_nothing_explains_is_not_healthy(tmp_path: Path) -> None:
    """The same logs without a metric: slower, set alike, and nobody knows why."""
    folder = ROOT / "power_capped_on_every_node"
    for name in ("run", "baseline"):
        text = (folder / name / "job.log").read_text().replace("/90000", "/1400")
        last = text.splitlines()[-1].partition(" INFO")[0]
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.log").write_text(
            text.replace("90000 steps planned", "1400 steps planned")
            + f"{last} INFO [rank 0] training finished: 1400 steps in 4000 s, final loss 2.1\n"
        )
    slow = judged(tmp_path / "run", tmp_path / "baseline")

    assert judged(tmp_path / "run", None).state == "healthy"
    assert slow.state == "undetermined"
    assert "14.6% slower" in slow.headline


# --- evidence -----------------------------------------------------------------------------------


def test_evidence_names_the_baseline_and_is_run_there() -> None:
    """Every citation of a source that begins so is read in the baseline, and nowhere else."""
    whole = document(judged(LEAK / "run", LEAK / "baseline"))
    theirs = {e["id"] for e in whole["evidence"] if e["source"].startswith(BASELINE)}
    target, other = str(LEAK / "run"), str(LEAK / "baseline")

    assert theirs
    assert all(check.ok for check in verify(whole, (target,), None, other))
    broken = {c.evidence for c in verify(whole, (target,), None, target) if not c.ok}
    assert theirs & broken


def test_without_the_baseline_its_evidence_does_not_hold() -> None:
    """And the reason says what to name."""
    whole = document(judged(LEAK / "run", LEAK / "baseline"))
    failed = [c for c in verify(whole, (str(LEAK / "run"),)) if not c.ok]

    assert failed
    assert all("--baseline" in check.said for check in failed)


@EACH
def test_the_document_is_one_of_the_schema(scenario: Scenario) -> None:
    """With its baseline and its differences; every id that they cite is there."""
    schema = json.loads((Path(__file__).parents[1] / "docs/verdict.schema.json").read_text())
    made = document(scenario.verdict())
    jsonschema.validate(made, schema)
    known = {item["id"] for item in made["evidence"]}

    assert made["baseline"]
    assert {name for item in made["comparison"] for name in item["cites"]} <= known


def test_a_changed_comparison_is_caught() -> None:
    """The difference at equal steps is computed anew from both logs."""
    whole = document(judged(LEAK / "run", LEAK / "baseline"))
    item = next(e for e in whole["evidence"] if e.get("method") == "equal-steps@1")
    item["value"] += 0.01
    checks = verify(whole, (str(LEAK / "run"),), None, str(LEAK / "baseline"))

    assert [c.evidence for c in checks if not c.ok] == [item["id"]]


def test_a_run_cannot_call_its_own_file_a_baseline(tmp_path: Path) -> None:
    """A file named like a citation into the baseline is spelt otherwise."""
    shutil.copy(LEAK / "run" / "job.log", tmp_path / "baseline:job.log")
    facts = collect(Request((str(tmp_path),)))

    assert [read.source for read in facts.files] == ["./baseline:job.log"]


def test_gaps_of_the_baseline_stay_its_own(tmp_path: Path) -> None:
    """They are told with the baseline, not among what is missing of the run."""
    shutil.copytree(LEAK / "baseline", tmp_path / "b")
    (tmp_path / "b" / "weights.dat").write_bytes(b"\x00\x01" * 500)
    verdict = judged(LEAK / "run", tmp_path / "b")

    assert any("weights.dat" in (gap.where or "") for gap in beside(verdict).gaps)
    assert not any("weights.dat" in (gap.where or "") for gap in verdict.gaps)


def test_secrets_of_the_baseline_are_masked(tmp_path: Path) -> None:
    """In settings that differ and in the lines that say so."""
    secret = "hf_" + "aBcDeFgHiJ" * 4
    for name in ("run", "baseline"):
        shutil.copytree(LEAK / name, tmp_path / name)
        log = tmp_path / name / "job.log"
        extra = f"0: Config param hub_token: {secret}{name}\n0: Config param remat: {name}\n"
        log.write_text(extra + log.read_text())
    told = render(judged(tmp_path / "run", tmp_path / "baseline"))

    assert "remat" in told
    assert secret not in told


def test_a_baseline_that_is_not_there_is_a_wrong_call(tmp_path: Path) -> None:
    """Not a gap: who names a run means it."""
    with pytest.raises(UsageError, match="--baseline"):
        judged(LEAK / "run", tmp_path / "nothing")


# --- what must not fool it ----------------------------------------------------------------------


def rescaled(folder: Path, by: float) -> None:
    """Every host's run queue times a factor."""
    file = folder / "metrics.prom.gz"
    lines = []
    for line in gzip.decompress(file.read_bytes()).decode().splitlines():
        if line.startswith("hw_procs_running{"):
            head, value, at = line.rsplit(" ", 2)
            line = f"{head} {float(value) * by:g} {at}"
        lines.append(line)
    file.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", mtime=0))


@pytest.mark.parametrize(("by", "found"), [(0.62, False), (1.0, True)])
def test_a_queue_a_little_longer_is_no_leak(by: float, found: bool, tmp_path: Path) -> None:
    """A fifth more tasks in every queue at one per cent less speed: nothing is said."""
    shutil.copytree(LEAK / "run", tmp_path / "run")
    rescaled(tmp_path / "run", by)
    verdict = judged(tmp_path / "run", LEAK / "baseline")

    assert ("D5" in {j.finding.code for j in verdict.findings}) is found


def test_of_one_host_only_another_run_tells(tmp_path: Path) -> None:
    """Without peers the baseline is the only measure of a queue."""
    for name in ("run", "baseline"):
        shutil.copytree(LEAK / name, tmp_path / name)
        file = tmp_path / name / "metrics.prom.gz"
        lines = gzip.decompress(file.read_bytes()).decode().splitlines()
        kept = [line for line in lines if 'host="' not in line or 'host="mi101"' in line]
        file.write_bytes(gzip.compress("\n".join(kept).encode() + b"\n", mtime=0))

    assert judged(tmp_path / "run", None).code is None
    assert judged(tmp_path / "run", tmp_path / "baseline").code == "D5"


def test_metrics_alone_are_compared_and_not_confident(tmp_path: Path) -> None:
    """Without a log nothing tells that the runs were set alike."""
    for name in ("run", "baseline"):
        (tmp_path / name).mkdir()
        shutil.copy(LEAK / name / "metrics.prom.gz", tmp_path / name)
    verdict = judged(tmp_path / "run", tmp_path / "baseline")

    assert verdict.code == "D5"
    assert verdict.confidence < CONFIDENT
    assert beside(verdict).alike is None


def test_threads_are_counted_where_an_exporter_counts_them(tmp_path: Path) -> None:
    """node_exporter's `processes` collector beside the other: the leak is said in threads too."""
    begin = 1_772_611_200
    for name, threads in (("run", 3118), ("baseline", 3101)):
        shutil.copytree(LEAK / name, tmp_path / name)
        lines = ["# TYPE node_processes_threads gauge", "# TYPE node_load1 gauge"]
        lines += [
            f'node_processes_threads{{instance="mi{host}:9100"}} {threads + (at // 60 + host) % 3}'
            f" {(begin + at) * 1000}"
            for host in range(101, 125)
            for at in range(0, 4200, 60)
        ]
        lines.append(f'node_load1{{instance="mi101:9100"}} 3 {begin * 1000}')
        (tmp_path / name / "node.prom").write_text("\n".join(lines) + "\n")
    verdict = judged(tmp_path / "run", tmp_path / "baseline")

    assert verdict.code == "D5"
    assert any(claim.text.startswith("Threads on all 24 hosts: 3119") for claim in verdict.shows)


def test_a_host_that_moved_alone_is_listed_and_not_accused(tmp_path: Path) -> None:
    """One of 24 sends a third less over RDMA than it did; throughput is the same."""
    quiet = ROOT / "queue_doubled_and_pace_holds"
    shutil.copytree(quiet / "baseline", tmp_path / "run")
    file = tmp_path / "run" / "metrics.prom.gz"
    lines = []
    for line in gzip.decompress(file.read_bytes()).decode().splitlines():
        if line.startswith("hw_rdma_tx_bytes_total{") and 'host="mi103"' in line:
            head, value, at = line.rsplit(" ", 2)
            line = f"{head} {float(value) * 0.6:g} {at}"
        lines.append(line)
    file.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", mtime=0))
    verdict = judged(tmp_path / "run", quiet / "baseline")

    moved = [(change.signal, change.hosts) for change in beside(verdict).signals]
    assert moved == [("rdma_transmit_bytes_total", ("mi103",))]
    assert [j for j in verdict.findings if j.role == "cause"] == []


def test_what_a_slower_run_costs_is_told() -> None:
    """How many times as long as its baseline."""
    folder = ROOT / "power_capped_on_every_node"
    impact = judged(folder / "run", folder / "baseline").impact

    assert impact is not None
    assert impact.slowdown_ratio == pytest.approx(1.171, abs=0.003)


def test_on_other_nodes_one_per_cent_is_not_confident(tmp_path: Path) -> None:
    """Repeats on other nodes differ by two per cent: the queue alone does not make it sure."""
    shutil.copytree(LEAK / "run", tmp_path / "run")
    file = tmp_path / "run" / "metrics.prom.gz"
    text = gzip.decompress(file.read_bytes()).replace(b'host="mi', b'host="xi')
    file.write_bytes(gzip.compress(text, mtime=0))
    verdict = judged(tmp_path / "run", LEAK / "baseline")

    assert verdict.code == "D5"
    assert verdict.confidence < CONFIDENT
    assert any("other ones" in text for text in verdict.cannot_decide)


def test_names_of_hosts_change_nothing_but_names(tmp_path: Path) -> None:
    """Both runs on hosts called otherwise: the same verdict, as sure."""
    for name in ("run", "baseline"):
        shutil.copytree(LEAK / name, tmp_path / name)
        file = tmp_path / name / "metrics.prom.gz"
        text = gzip.decompress(file.read_bytes()).replace(b'host="mi', b'host="worker')
        file.write_bytes(gzip.compress(text, mtime=0))
    verdict = judged(tmp_path / "run", tmp_path / "baseline")
    known = judged(LEAK / "run", LEAK / "baseline")

    assert (verdict.code, verdict.confidence) == (known.code, known.confidence)


# --- surfaces -----------------------------------------------------------------------------------


def test_every_surface_tells_the_comparison() -> None:
    """The same numbers in text, Markdown and HTML as in the document."""
    from flatline.exhibit import exhibit
    from flatline.render import format_named, html
    from flatline.render.text import Look
    from flatline.render.text import render as text

    facts = collect(Request((str(LEAK / "run"),), baseline=str(LEAK / "baseline")))
    verdict = diagnose(facts)
    page = html.illustrate(verdict, exhibit(facts, verdict))
    for shown in (text(verdict), format_named("markdown").render(verdict), page):
        assert "Compared with a baseline" in shown
        assert "3,262" in shown
        assert "3,295" in shown
        assert "+94%" in shown
    assert page.count('class="curve theirs"') == 3
    for width in (40, 60, 80, 120):
        assert max(map(len, text(verdict, Look(width)).splitlines())) <= max(width, 60)


def test_hostile_settings_stay_text() -> None:
    """What a log sets cannot steer a terminal, leave a table or become markup."""
    from flatline.render import format_named

    verdict = judged(LEAK / "run", LEAK / "baseline")
    one = beside(verdict).settings[0]
    hostile = replace(one, name="a|b\x1b[2J", ours="<script>x</script>", theirs="`|`\n# h")
    compared = replace(beside(verdict), settings=(hostile,))
    poisoned = replace(verdict, comparison=compared)

    assert "\x1b" not in format_named("text").render(poisoned)
    assert "<script>x" not in format_named("html").render(poisoned)
    marked = format_named("markdown").render(poisoned)
    assert "\n# h" not in marked
    assert "\x1b" not in marked


@pytest.mark.parametrize(
    ("run", "other"),
    [
        ("queue_doubled_and_pace_holds", "ports_at_a_lower_rate_and_pace_holds"),
        ("slurm_completed", "loss_scale_overflows_at_start"),
        ("ddp_reaches_planned_end", "hf_trainer_reaches_its_end"),
    ],
)
def test_another_program_is_no_baseline_of_speed(run: str, other: str) -> None:
    """Steps printed by another program, or a loss of another course, are other work."""
    verdict = judged(ROOT / run / "run", ROOT / other / "run")

    assert beside(verdict).alike is False
    assert verdict.state == "healthy"
