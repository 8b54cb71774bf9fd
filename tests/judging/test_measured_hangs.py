"""What power, activity and the loop's own counts say of runs that froze, waited or slowed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict

START = datetime(2026, 3, 4, 8, 0, tzinfo=UTC).timestamp()
HOSTS, GPUS = ("node01", "node02"), range(8)
Level = Callable[[str, int, float], float]


def clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(START + seconds, UTC):%Y-%m-%d %H:%M:%S}"


def metrics(name: str, level: Level, length_s: int) -> str:
    rows = [f"# TYPE {name} gauge"]
    for host in HOSTS:
        for gpu in GPUS:
            for at in range(0, length_s, 15):
                value = level(host, gpu, at)
                labels = f'Hostname="{host}",gpu="{gpu}"'
                rows.append(f"{name}{{{labels}}} {value} {START + at:.0f}")
    return "\n".join(rows) + "\n"


def step(n: int, at: float, more: str = "") -> str:
    return (
        f"[{clock(at)},000] [rank0] INFO step {n}/400 loss {3 - n / 500:.4f} lr 1e-4"
        f" grad_norm 0.5{more}\n"
    )


def said(folder: Path, log: str, *texts: str) -> Verdict:
    (folder / "job-77.out").write_text(log)
    (folder / "metrics.om").write_text("".join(texts) + "# EOF\n")
    (folder / "scontrol.txt").write_text(
        "JobId=77 JobName=train\n   UserId=u(1) JobState=CANCELLED\n"
        "   StartTime=2026-03-04T08:00:00 EndTime=2026-03-04T08:50:00\n"
        "   NodeList=node[01-02]\n   NumNodes=2\n"
    )
    return diagnose(collect(Request((str(folder),))))


FROZEN = "".join(step(n, 10 * n) for n in range(1, 121)) + (
    "slurmstepd: error: *** JOB 77 ON node01 CANCELLED AT 2026-03-04T08:50:00 ***\n"
)


def test_the_card_that_idles_while_the_others_wait_is_whom_they_wait_for(tmp_path: Path) -> None:
    def power(host: str, gpu: int, at: float) -> float:
        if at <= 1200:
            return 640.0 + gpu
        return 118.0 if (host, gpu) == ("node02", 5) else 231.0 + gpu

    verdict = said(tmp_path, FROZEN, metrics("DCGM_FI_DEV_POWER_USAGE", power, 3000))

    assert verdict.code == "C2"
    assert verdict.culprits == (Place(host="node02", gpu="5"),)


def test_a_host_whose_cards_all_idle_is_named_as_a_host(tmp_path: Path) -> None:
    def power(host: str, gpu: int, at: float) -> float:
        if at <= 1200:
            return 640.0 + gpu
        return 118.0 if host == "node02" and gpu > 5 else 231.0 + gpu

    verdict = said(tmp_path, FROZEN, metrics("DCGM_FI_DEV_POWER_USAGE", power, 3000))

    assert {place.gpu for place in verdict.culprits} == {"6", "7"}


def test_where_all_idle_alike_or_one_always_did_nobody_is_named(tmp_path: Path) -> None:
    def all_idle(host: str, gpu: int, at: float) -> float:
        return 640.0 + gpu if at <= 1200 else 118.0

    def always(host: str, gpu: int, at: float) -> float:
        if (host, gpu) == ("node02", 5):
            return 118.0
        return 640.0 + gpu if at <= 1200 else 231.0

    for level in (all_idle, always):
        verdict = said(tmp_path, FROZEN, metrics("DCGM_FI_DEV_POWER_USAGE", level, 3000))
        assert verdict.code == "C2"
        assert verdict.culprits == ()


DONE = "Training completed. Do not forget to share your model on huggingface.co/models =)\n"


def loop(wait_s: float) -> str:
    line = (
        "[INFO|{at}] llamafactory.train.callbacks:143 >> {{'loss': {loss:.4f}, 'grad_norm': 0.41,"
        " 'learning_rate': 1e-04, 'epoch': {epoch:.3f}, 'data_time': {wait}, 'step_time': 8.6}}\n"
    )
    made = (
        line.format(at=clock(8.6 * n), loss=3 - n / 100, epoch=n / 200, wait=wait_s)
        for n in range(1, 201)
    )
    return "".join(made) + DONE


def test_a_loop_that_counts_its_waits_beside_idle_cards_was_starved(tmp_path: Path) -> None:
    idle = metrics("DCGM_FI_PROF_GR_ENGINE_ACTIVE", lambda host, gpu, at: 0.35, 1800)
    verdict = said(tmp_path, loop(5.2), idle)

    assert (verdict.code, verdict.fault_class, verdict.scope) == ("D1", "loader", "all")


def test_waits_beside_busy_cards_or_short_ones_starve_nothing(tmp_path: Path) -> None:
    busy = metrics("DCGM_FI_PROF_GR_ENGINE_ACTIVE", lambda host, gpu, at: 0.97, 1800)
    idle = metrics("DCGM_FI_PROF_GR_ENGINE_ACTIVE", lambda host, gpu, at: 0.6, 1800)

    assert said(tmp_path, loop(5.2), busy).code != "D1"
    assert said(tmp_path, loop(0.3), idle).code != "D1"


def test_a_sound_run_that_lost_time_to_something_unknown_is_not_surely_healthy(
    tmp_path: Path,
) -> None:
    at, rows = 0.0, []
    for n in range(1, 401):
        at += 9.0 if 150 <= n < 260 else 6.0
        rows.append(step(n, at))
    log = "".join(rows) + f"[{clock(at + 2)},000] INFO saved checkpoint at step 400\n" + DONE
    (tmp_path / "job-77.out").write_text(log)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "G1"
    assert verdict.confidence < 0.8
    assert "33% slower for a time; nothing that was read says why" in verdict.headline


def of_the_log(folder: Path, log: str) -> Verdict:
    (folder / "train.log").write_text(log)
    return diagnose(collect(Request((str(folder),))))


def averaged(every: int, first: int, waited: float, lines: int = 3) -> str:
    """Lines of means over so many iterations, without GPU metrics."""
    return "".join(
        f"{clock(60.0 * n)[:10]} {clock(60.0 * n)[11:19]} - mmengine - INFO - Epoch(train) "
        f" [1][{first + n * every}/2000]  lr: 1.0000e-02  eta: 3:41:39  time: 3.5  data_time:"
        f" {waited}  memory: 1561  grad_norm: 8.9  loss: {2.7 - n / 10:.4f}\n"
        for n in range(lines)
    )


def test_means_over_many_steps_tell_a_starved_loop(tmp_path: Path) -> None:
    """Three lines stand for sixty steps; how busy the GPUs were is not known."""
    verdict = of_the_log(tmp_path, averaged(20, 300, 2.9))
    assert (verdict.code, verdict.confidence < 0.8) == ("D1", True)
    assert "GPUs" in " ".join(verdict.cannot_decide)


@pytest.mark.parametrize(
    ("every", "first", "waited"), [(20, 300, 1.2), (1, 1, 3.2), (20, 20, 3.2)]
)
def test_what_starves_no_loop(tmp_path: Path, every: int, first: int, waited: float) -> None:
    """A third of the time; the first steps alone; one line past the warm-up."""
    lines = 2 if first == 20 else 3
    verdict = of_the_log(tmp_path, averaged(every, first, waited, lines))
    assert verdict.state == "undetermined"


@pytest.mark.parametrize(("waited", "code"), [(1.1, "D1"), (0.2, None)])
def test_steps_that_grow_by_what_they_wait_for_data(
    tmp_path: Path, waited: float, code: str | None
) -> None:
    """One second more a step, had from the waits or from elsewhere; one rank's log names no place
    and is not sure."""
    at, lines = 0.0, []
    for step in range(1, 401):
        took, wait = (2.0, 0.1) if step <= 200 else (3.0, waited)
        at += took
        lines.append(f"{clock(at)} INFO step {step}/900 loss {2 + 40 / step:.4f} step_time {took}s"
                     f" data_time {wait}s\n")  # fmt: skip
    verdict = of_the_log(tmp_path, "".join(lines))
    assert verdict.code == code
    if code:
        assert (verdict.scope, verdict.culprits, verdict.confidence < 0.8) == ("none", (), True)
        assert verdict.onset_step == 200


def undated(timed_out: str) -> str:
    """torchtitan's lines have no times; NCCL's watchdog has, and says for how long it waited."""
    steps = "".join(
        f"[rank0]:step: {n:2d}  loss:  {5 - n / 100:.4f}  memory: 60.74GiB(82.00%)  tps: 6,571"
        "  tflops: 372.86  mfu: 37.70%\n"
        for n in range(5, 125, 5)
    )
    return steps + "".join(
        f"[rank{rank}]:[E0304 08:49:00.{rank:03d} ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog"
        f" caught collective operation timeout: WorkNCCL(SeqNum=881, OpType=ALLREDUCE, NumelIn=16,"
        f" NumelOut=16, Timeout(ms)={timed_out}) ran for {timed_out} milliseconds before timing"
        " out.\n".replace("E304", "E0304")
        for rank in (0, 5, 10)
    ).replace("[E304", "[E0304")


def test_the_watchdog_says_since_when_an_undated_run_waited(tmp_path: Path) -> None:
    """For its timeout; a card that fell idle after it had reported is none."""

    def at_once(host: str, gpu: int, at: float) -> float:
        if at <= 1140:
            return 640.0 + gpu
        return 118.0 if (host, gpu) == ("node02", 5) else 231.0 + gpu

    def afterwards(host: str, gpu: int, at: float) -> float:
        if at <= 1140:
            return 640.0 + gpu
        return 118.0 if (host, gpu) == ("node02", 5) and at > 2945 else 231.0 + gpu

    def always(host: str, gpu: int, at: float) -> float:
        return 118.0 if (host, gpu) == ("node02", 5) else at_once("node01", gpu, at)

    for level, named in ((at_once, True), (afterwards, False), (always, False)):
        power = metrics("DCGM_FI_DEV_POWER_USAGE", level, 3000)
        verdict = said(tmp_path, undated("1800000"), power)
        assert verdict.code == "C2"
        assert (verdict.culprits == (Place(host="node02", gpu="5"),)) == named


@pytest.mark.parametrize(("idle_from", "named"), [(1230, True), (2400, False)])
def test_reports_without_a_time_came_no_sooner_than_their_timeout(
    tmp_path: Path, idle_from: float, named: bool
) -> None:
    """The time of the last step is none of theirs; what idles once they gave up is not waited
    for."""

    def power(host: str, gpu: int, at: float) -> float:
        if at <= 1200:
            return 640.0 + gpu
        return 118.0 if (host, gpu) == ("node02", 5) and at > idle_from else 231.0 + gpu

    timed_out = "".join(
        f"[E ProcessGroupNCCL.cpp:474] [Rank {rank}] Watchdog caught collective operation timeout:"
        " WorkNCCL(SeqNum=881, OpType=ALLREDUCE, Timeout(ms)=1000000) ran for 1000412 milliseconds"
        " before timing out.\n"
        for rank in (0, 5, 10)
    )
    log = FROZEN.replace("slurmstepd", timed_out + "slurmstepd")
    verdict = said(tmp_path, log, metrics("DCGM_FI_DEV_POWER_USAGE", power, 3000))

    assert verdict.code == "C2"
    assert (verdict.culprits == (Place(host="node02", gpu="5"),)) == named


@pytest.mark.parametrize(
    ("waits", "wanted"),
    [
        (lambda host, gpu: 118.0 if host == "node02" and gpu > 5 else 231.0 + gpu, "C2"),
        (lambda host, gpu: 231.0 + gpu, None),
        (lambda host, gpu: 640.0 + gpu, None),
    ],
)
def test_undated_steps_without_a_record_end_where_the_cards_stop_working(
    tmp_path: Path, waits: Callable[[str, int], float], wanted: str | None
) -> None:
    """A tracker's bar and no record: who idles while the others hold a kernel is waited for.
    Without such a one the log may only end before the run does."""

    def power(host: str, gpu: int, at: float) -> float:
        return 90.0 if at < 300 else 640.0 + gpu if at <= 2700 else waits(host, gpu)

    def busy(host: str, gpu: int, at: float) -> float:
        return 0.0 if at < 300 or power(host, gpu, at) < 200 else 99.0

    def active(host: str, gpu: int, at: float) -> float:
        return 0.6 if 300 <= at <= 2700 or power(host, gpu, at) > 600 else 0.01

    rows = "".join(
        f"{{'loss': {3 - n / 500:.4f}, 'grad_norm': 0.5, 'learning_rate': 1e-4, 'epoch': 0.1}}\n"
        f"  3%|▎         | {n}/4000 [{n // 6:02d}:{n % 6 * 10:02d}<11:13:08, 10.00s/it]\n"
        for n in range(1, 241)
    )
    (tmp_path / "worker-0.log").write_text(rows)
    (tmp_path / "metrics.om").write_text(
        metrics("DCGM_FI_DEV_POWER_USAGE", power, 6000)
        + metrics("DCGM_FI_DEV_GPU_UTIL", busy, 6000)
        + metrics("DCGM_FI_PROF_SM_ACTIVE", active, 6000)
        + "# EOF\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert verdict.code == wanted
    if wanted:
        assert {place.gpu for place in verdict.culprits} == {"6", "7"}
        assert verdict.confidence < 0.8


def saving(steps: int, step_s: float, save_s: float) -> tuple[str, float]:
    """A loop that prints its own clock, and saves after each fifty steps for as long."""
    at, lines = 0.0, []
    for n in range(1, steps + 1):
        at += step_s
        lines.append(f"[batch={n}/9000]:\n\t Train loss/train/total: {9 - n / 100:.4f}\n"
                     f"\t Train throughput/batches_per_sec: {1 / step_s:.4f}\n"
                     f"\t Train wall_clock/total: {at:.4f}\n")  # fmt: skip
        at += save_s if n % 50 == 0 else 0.0
    return "".join(lines), at


@pytest.mark.parametrize(
    ("waits", "works_s", "code"),
    [
        (lambda odd: 0.0 if odd else 100.0, 2400, "C2"),
        (lambda odd: 100.0, 2400, None),
        (lambda odd: 0.0, 2400, None),
        (lambda odd: 0.0 if odd else 100.0, 3600, None),
    ],
    ids=["one-idles", "all-spin", "all-idle", "worked-longer-than-it-says"],
)
def test_a_run_that_goes_on_and_whose_log_stopped(
    tmp_path: Path, waits: Callable[[bool], float], works_s: int, code: str | None
) -> None:
    """Its own clock, saves in it, is as long as the GPUs worked; since then one runs nothing."""
    text, ran = saving(240, 8.0, 110.0)
    assert ran == 2360

    def at_work(at: float) -> bool:
        return 240 <= at < 240 + works_s

    def busy(host: str, gpu: int, at: float) -> float:
        if at < 240:
            return 0.0
        return 99.0 if at_work(at) else waits((host, gpu) == ("node01", 3))

    def power(host: str, gpu: int, at: float) -> float:
        return 590.0 + gpu if at_work(at) else 112.0 if busy(host, gpu, at) < 1 else 140.0

    (tmp_path / "rank0.log").write_text(text)
    (tmp_path / "metrics.om").write_text(
        metrics("DCGM_FI_DEV_POWER_USAGE", power, 5400)
        + metrics("DCGM_FI_DEV_GPU_UTIL", busy, 5400)
        + "# EOF\n"
    )
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|Elapsed|NodeList\n"
        "5|train|RUNNING|0:0|2026-03-04T08:00:00|Unknown|01:29:45|node[01-02]\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    if code:
        assert verdict.culprits == (Place(host="node01", gpu="3"),)


@pytest.mark.parametrize(("idle", "code"), [(1, "C2"), (4, None)])
def test_one_host_of_eight_that_idles_while_the_others_spin(
    tmp_path: Path, idle: int, code: str | None
) -> None:
    """An eighth of the cards is more than a tenth; where half of them idle nobody can be said to
    wait for the rest."""
    hosts = [f"node{n:02d}" for n in range(1, 9)]

    def level(at: float, n: int, gone: float, spins: float, works: float) -> float:
        return works if 120 <= at <= 2520 else gone if at < 120 or n < idle else spins

    def series(name: str, *levels: float) -> str:
        return f"# TYPE {name} gauge\n" + "".join(
            f'{name}{{Hostname="{host}",gpu="{gpu}"}} {level(at, n, *levels)}'
            f" {START + at:.0f}\n"
            for n, host in enumerate(hosts) for gpu in range(4) for at in range(0, 4800, 30)
        )  # fmt: skip

    lines = [f"step {n}/900 loss {3 - n / 500:.4f} 10.00s/it\n" for n in range(1, 241)]
    (tmp_path / "train.log").write_text("".join(lines))
    (tmp_path / "metrics.om").write_text(
        series("DCGM_FI_DEV_POWER_USAGE", 110.0, 230.0, 640.0)
        + series("DCGM_FI_DEV_GPU_UTIL", 0.0, 100.0, 99.0)
        + "# EOF\n"
    )
    span = (datetime.fromtimestamp(START + at, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            for at in (100, 4770))  # fmt: skip
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"9|train|CANCELLED by 7|0:15|{'|'.join(span)}|node[01-08]\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == code
    if code:
        assert verdict.culprits == (Place(host="node01"),)


@pytest.mark.parametrize(
    ("step_s", "ends", "doubted"), [(4.0, 1660, False), (4.0, 2600, True), (None, 2600, False)]
)
def test_cards_that_work_far_longer_than_undated_steps_say(
    tmp_path: Path, step_s: float | None, ends: int, doubted: bool
) -> None:
    """What a third of the time went into no line says, of steps that tell how long they took."""
    took = "" if step_s is None else f" {step_s:.2f}s/it"
    lines = [f"step {n}/400 loss {3 - n / 500:.4f}{took}\n" for n in range(1, 401)]
    (tmp_path / "train.log").write_text("".join(lines) + "Training complete.\n")

    def power(host: str, gpu: int, at: float) -> float:
        return 640.0 + gpu if 60 <= at < ends else 90.0

    (tmp_path / "metrics.om").write_text(
        metrics("DCGM_FI_DEV_POWER_USAGE", power, ends + 300) + "# EOF\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "G1"
    assert any("account for 1600 s" in shown.text for shown in verdict.shows) == doubted
    assert any("no step accounts for" in text for text in verdict.cannot_decide) == doubted


STALLS = "".join(step(n, 10 * n) for n in range(1, 121)) + "".join(
    f"[1,0]<stderr>:[{clock(at)}.250117: W horovod/common/stall_inspector.cc:107] One or more"
    " tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are"
    " waiting for remainder of ranks for more than 60 seconds.\n"
    "[1,0]<stderr>:Missing ranks:\n[1,0]<stderr>:13: [grads/HorovodAllreduce_dense_1_0]\n"
    for at in range(1270, 2900, 60)
)


@pytest.mark.parametrize(
    ("idles", "gpu"),
    [(lambda host, gpu, at: (host, gpu) == ("node02", 5), "5"),
     (lambda host, gpu, at: False, None), (lambda host, gpu, at: True, None)],
    ids=["one", "none", "all"],
)  # fmt: skip
def test_a_stall_that_is_reported_again_lasts_until_it_no_longer_is(
    tmp_path: Path, idles: Callable[[str, int, float], bool], gpu: str | None
) -> None:
    """Horovod's first report comes a minute after the last step: too soon for a card to tell."""

    def power(host: str, number: int, at: float) -> float:
        if at <= 1200:
            return 640.0 + number
        return 118.0 if idles(host, number, at) else 231.0 + number

    verdict = said(tmp_path, STALLS, metrics("DCGM_FI_DEV_POWER_USAGE", power, 3000))

    assert verdict.code == "C2"
    assert [(place.rank, place.gpu) for place in verdict.culprits] == [(13, gpu)]
