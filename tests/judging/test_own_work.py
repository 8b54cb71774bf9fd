"""Which of a few ranks is slow in its own work, by the times that each prints of its steps."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.printed_waits import waits_least
from flatline.model import Verdict

Own = Callable[[int, int], float]
STEPS = 40


def times(own: Own, step: int, ranks: int, seed: int) -> list[tuple[float, float]]:
    """(own, wait) in seconds of each rank: all end the step with the one that works longest."""
    noise = random.Random(seed * 1000 + step)
    spent = [own(rank, step) * noise.uniform(0.92, 1.08) for rank in range(ranks)]
    return [(one, max(spent) - one + 0.005) for one in spent]


def in_lines(folder: Path, own: Own, ranks: int, form: str) -> None:
    rows = []
    for step in range(STEPS):
        for rank, (work, wait) in enumerate(times(own, step, ranks, 1)):
            loss = 8 - step * 0.1 + rank * 0.01
            rows.append(form.format(rank=rank, step=step, work=work, wait=wait, loss=loss,
                                    ms=work * 1000, whole=work + wait))  # fmt: skip
    (folder / "train.log").write_text("\n".join(rows) + "\n")


def in_files(folder: Path, own: Own, ranks: int) -> None:
    for rank in range(ranks):
        rows = []
        for step in range(STEPS):
            work, wait = times(own, step, ranks, 1)[rank]
            rows.append(json.dumps({"rank": rank, "step": step, "loss": 8 - step * 0.1,
                                    "time/forward_s": work, "allreduce_s": wait}))  # fmt: skip
        (folder / f"metrics_rank{rank}.jsonl").write_text("\n".join(rows) + "\n")


def in_tables(folder: Path, own: Own, ranks: int) -> None:
    text = ""
    for step in range(STEPS):
        text += f"step {step}/{STEPS} loss {8 - step * 0.1:.3f}\n"
        if step % 4 == 3:
            text += "   rank  compute[s]  allreduce[s]\n"
            for rank, (work, wait) in enumerate(times(own, step, ranks, 1)):
                text += f"   {rank:4d}  {work:10.3f}  {wait:12.3f}\n"
    (folder / "train.log").write_text(text)


def verdict(folder: Path) -> Verdict:
    return diagnose(collect(Request((str(folder),))))


def late(rank: int, step: int) -> float:
    """Rank 1 from the twelfth step on."""
    return 0.9 if rank == 1 and step >= 12 else 0.2


FORMS = [
    "[rank{rank}] step {step}/40 loss {loss:.3f} forward {work:.3f}s sync {wait:.3f}s",
    "rank={rank} iter {step} loss: {loss:.3f} fwd_ms: {ms:.1f} allreduce: {wait:.4f}",
    "[03-02 10:00:00 node{rank}:{rank}] iter {step}/40 loss {loss:.3f} data {work:.3f}s"
    " wait {wait:.3f}s",
    "[rank{rank}] step {step}/40 loss {loss:.3f} fwd_bwd=0.800s d2h_h2d={work:.3f}s"
    " sync_wait={wait:.3f}s",
]


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("form", FORMS)
def test_one_of_a_few_ranks_becomes_slow(tmp_path: Path, form: str, ranks: int) -> None:
    """Told by lines with labels, and not with confidence but by the waits of four."""
    in_lines(tmp_path, late, ranks, form)
    told = verdict(tmp_path)

    assert (told.code, told.fault_class) == ("D3", "late-rank")
    assert [place.rank for place in told.culprits] == [1]
    assert ranks == 4 or told.confidence < 0.8


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("write", [in_files, in_tables])
def test_the_same_in_rows_and_tables(
    tmp_path: Path, write: Callable[[Path, Own, int], None], ranks: int
) -> None:
    write(tmp_path, lambda rank, step: 0.9 if rank == 1 else 0.2, ranks)
    told = verdict(tmp_path)

    if write is in_tables or ranks < 4:  # with four, the waits alone tell it already
        assert any("design" in one for one in told.cannot_decide)
        assert told.confidence < 0.8
    assert (told.code, [place.rank for place in told.culprits]) == ("D3", [1])


def test_without_waits_only_a_rank_that_became_slow(tmp_path: Path) -> None:
    """One that always has more to do may be a stage of a pipeline."""
    form = "[rank{rank}] step {step}/40 loss {loss:.3f} compute {work:.3f}s"
    in_lines(tmp_path, late, 3, form)
    assert verdict(tmp_path).code == "D3"

    in_lines(tmp_path, lambda rank, step: 0.9 if rank == 1 else 0.2, 3, form)
    assert verdict(tmp_path).code != "D3"


@pytest.mark.parametrize(
    "own",
    [
        lambda rank, step: 0.2,
        lambda rank, step: 0.9 if rank == step % 3 else 0.2,
        lambda rank, step: 0.9 if rank == 1 and step % 10 == 0 else 0.2,
        lambda rank, step: 0.9 if rank == 1 and step >= 38 else 0.2,
        lambda rank, step: 0.9 if step >= 12 else 0.2,
        lambda rank, step: 0.215 if rank == 1 else 0.2,
    ],
    ids=["alike", "each in turn", "now and then", "in two steps", "all of them", "a little"],
)  # fmt: skip
@pytest.mark.parametrize("write", [*FORMS[:2], "tables"])
def test_ranks_of_which_none_is_the_slow_one(tmp_path: Path, own: Own, write: str) -> None:
    if write == "tables":
        in_tables(tmp_path, own, 3)
    else:
        in_lines(tmp_path, own, 3, write)

    assert verdict(tmp_path).code != "D3"


@pytest.mark.parametrize(
    "form",
    [
        "[rank{rank}] step {step}/40 loss {loss:.3f} backward {work:.3f}s",
        "[rank{rank}] step {step}/40 loss {loss:.3f} step_time {whole:.3f}s",
        "[rank{rank}] step {step}/40 loss {loss:.3f} forward {whole:.3f}s",
        "step {step}/40 loss {loss:.3f} forward {work:.3f}s sync {wait:.3f}s",
        "[rank{rank}] epoch 1 loss {loss:.3f} data {work:.3f}s sync {wait:.3f}s",
    ],
    ids=["with the wait in it", "whole steps", "ends together", "no rank", "no step"],
)  # fmt: skip
def test_times_that_name_nobody(tmp_path: Path, form: str) -> None:
    """What holds the wait for the others, or is of nobody known."""
    in_lines(tmp_path, late, 3, form)

    assert verdict(tmp_path).code != "D3"


def test_a_rank_that_works_longer_and_is_not_waited_for(tmp_path: Path) -> None:
    """From its first step on, while the others wait no longer than it does."""
    rows = []
    for step in range(STEPS):
        for rank in range(3):
            work = 0.5 if rank == 0 else 0.2
            loss, wait = 8 - step * 0.1, 0.1 + (step * 7 + rank * 5) % 13 / 1000
            rows.append(
                f"[rank{rank}] step {step}/40 loss {loss:.3f} data {work:.3f}s sync {wait:.3f}s"
            )
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")

    assert verdict(tmp_path).code != "D3"


def test_hostile_rows_are_passed_over(tmp_path: Path) -> None:
    """Numbers beyond measure, nested objects, and tables without an end."""
    (tmp_path / "train.log").write_text(
        '{"rank": 1e999, "step": NaN, "forward": Infinity}\n' * 3
        + "[" * 2000 + "\n" + '{"a":' * 900 + "\n"
        + "rank compute[s]\n" + "99999999999999999999 1\n" + "1 " * 400 + "\n"
        + "rank=1 step 99999999999999999999 forward 1e9\n"
    )  # fmt: skip

    assert verdict(tmp_path).code is None


@pytest.mark.parametrize(("more", "code"), [(0.12, "D3"), (0.02, "G1")])
def test_reports_that_name_no_step(tmp_path: Path, more: float, code: str) -> None:
    """They are of the step printed before, and tell of parts of it: what one is longer by has to
    be much of the whole step."""
    at, text = datetime(2026, 3, 1, 8, tzinfo=UTC), ""
    for step in range(20, 400, 20):
        at += timedelta(seconds=30)
        text += f"{at:%Y-%m-%d %H:%M:%S} [R0] step {step}/400 loss {8 - step * 0.01:.3f}\n"
        for rank in range(8) if step % 40 == 0 else ():
            late = more if rank == 5 else 0.0
            text += (f"{at:%Y-%m-%d %H:%M:%S} [R{rank}] avg over 40 it: data {0.02 + late:.3f} |"
                     f" fwd+bwd 1.201 | sync {0.22 - late:.3f}\n")  # fmt: skip
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        "9|RUNNING|0:0|2026-03-01T08:00:00|Unknown|2|n[1-2]\n"
    )
    (tmp_path / "train.log").write_text(text)

    told = verdict(tmp_path)

    assert told.code == code
    assert [place.rank for place in told.culprits] == ([5] if code == "D3" else [])


HOSTS = (("[rank 0] host vx1 gpus 0..1: fast", "[rank 2] host vx2 gpus 0..1: fast",
          "[rank 4] host ow9 gpus 0..1: old"))  # fmt: skip
SPLIT = "data 0.010 fwd+bwd {work:.3f} grad_sync_wait {wait:.3f}"


def of_hosts(folder: Path, head: tuple[str, ...], own: Own, parts: str) -> Verdict:
    """Six ranks on three hosts; every 20 steps each reports the parts of a step."""
    at, text = datetime(2026, 3, 1, 8, tzinfo=UTC), "".join(f"{line}\n" for line in head)
    for step in range(20, 800, 20):
        at += timedelta(seconds=20)
        text += f"{at:%Y-%m-%d %H:%M:%S} [rank 0] step {step}/2000 loss {8 - step * 0.005:.3f}\n"
        for rank, (work, wait) in enumerate(times(own, step, 6, 3)) if step % 40 == 0 else ():
            said = parts.format(work=work, wait=wait, whole=work + wait)
            text += f"{at:%Y-%m-%d %H:%M:%S} [rank {rank}] timers over 40 it: {said}\n"
    (folder / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|AllocTRES|NodeList\n"
        "9|RUNNING|0:0|2026-03-01T08:00:00|Unknown|3|gres/gpu=6,node=3|vx1,vx2,ow9\n"
    )
    (folder / "train.log").write_text(text)
    return verdict(folder)


def old(rank: int, step: int) -> float:
    return 0.9 if rank >= 4 else 0.5


def test_all_ranks_of_a_slow_host(tmp_path: Path) -> None:
    """One rank of each host told where it is; both passes stand in one number."""
    told = of_hosts(tmp_path, HOSTS, old, SPLIT)

    assert told.code == "D3"
    assert [(place.rank, place.host) for place in told.culprits] == [(4, "ow9"), (5, "ow9")]
    assert told.confidence < 0.8
    assert any("design" in one for one in told.cannot_decide)


def test_the_slow_host_beside_ranks_of_hosts_unknown(tmp_path: Path) -> None:
    """Where the others run does not matter."""
    named = tuple(f"[rank {rank}] host ow9 gpus 0..1: old" for rank in (4, 5))
    told = of_hosts(tmp_path, (*named, HOSTS[0], "[rank 1] host vx1 gpus 0..1: fast"), old, SPLIT)

    assert told.code == "D3"
    assert [(place.rank, place.host) for place in told.culprits] == [(4, "ow9"), (5, "ow9")]


@pytest.mark.parametrize(
    ("head", "own", "parts"),
    [
        (HOSTS, lambda rank, step: 0.5, SPLIT),
        (HOSTS, lambda rank, step: 0.9 if rank in (3, 4) else 0.5, SPLIT),
        (HOSTS, lambda rank, step: 0.9 if rank >= 2 else 0.5, SPLIT),
        ((), old, SPLIT),
        (HOSTS, old, "data 0.010 fwd+bwd {work:.3f} opt 0.019"),
        (HOSTS, old, "data 0.010 fwd+bwd {whole:.3f} grad_sync_wait 0.01"),
        (HOSTS, old, "data 0.010 fwd+bwd {work:.3f} grad_sync_wait 0.02"),
    ],
    ids=["alike", "of two hosts", "most hosts", "no hosts", "no waits", "the wait in the passes",
         "nobody waits"],
)  # fmt: skip
def test_ranks_that_are_no_slow_host(
    tmp_path: Path, head: tuple[str, ...], own: Own, parts: str
) -> None:
    assert of_hosts(tmp_path, head, own, parts).code != "D3"


def test_each_host_of_many_writes_a_file_of_its_ranks(tmp_path: Path) -> None:
    """Rank 27 of 64 waits for its data since the middle, and both passes take 2.5 s."""
    began = datetime(2026, 3, 4, 8, tzinfo=UTC)
    steps, files = list[str](), {host: list[str]() for host in range(8)}
    for step in range(STEPS):
        late = 3.2 if step >= STEPS // 2 else 0.05
        at = (began + timedelta(seconds=6 * step)).isoformat()
        steps.append(f"{at} step={step} loss={8 - step * 0.1:.2f} step_time={2.6 + late:.3f}s")
        for rank in range(64):
            data = late if rank == 27 else 0.05
            row = {"rank": rank, "step": step, "t_data": data, "t_fwd_bwd": 2.5,
                   "t_sync_wait": 0.05 + late - data}  # fmt: skip
            files[rank // 8].append(json.dumps(row))
    (tmp_path / "train.log").write_text("\n".join(steps) + "\n")
    for host, rows in files.items():
        (tmp_path / f"timing_gpu{host:02d}.jsonl").write_text("\n".join(rows) + "\n")
    found = verdict(tmp_path)

    assert (found.code, [place.rank for place in found.culprits]) == ("D3", [27])
    assert "5" in found.headline.rpartition("%")[0][-2:-1]  # of 5.8 s that a step takes then


@pytest.mark.parametrize(
    ("forward", "backward", "ranks"),
    [
        (lambda r: 2.24 if r == 6 else 1.01, lambda r: 2.17 if r == 6 else 3.4, [6]),
        (lambda r: 1.2 if r == 6 else 1.01, lambda r: 3.21 if r == 6 else 3.4, []),
        (lambda r: 2.24 if r > 3 else 1.01, lambda r: 2.17 if r > 3 else 3.4, []),  # a stage
        (lambda r: 1.01, lambda r: 3.4, []),
    ],
    ids=["it is late", "by little", "half of them", "alike"],
)
def test_timers_of_all_ranks_of_megatron(
    tmp_path: Path, forward: Callable[[int], float], backward: Callable[[int], float],
    ranks: list[int],
) -> None:  # fmt: skip
    """Each timer, and below it a line for each rank."""
    noise, lines = random.Random(2), ["using world size: 8, data-parallel size: 8"]
    for step in range(1, 241):
        lines.append(
            f" iteration {step:8d}/   20000 | consumed samples: {256 * step:12d} | elapsed time"
            f" per iteration (ms): 4600.0 | lm loss: {8 - step / 60:.6E} | grad norm: 0.336 |"
        )
        if step % 10:
            continue
        lines.append("times across ranks (ms):")
        for name, took in (("forward-backward", lambda r: 4.5), ("forward-compute", forward),
                           ("backward-compute", backward)):  # fmt: skip
            lines.append(f"  {name}:")
            lines += [f"     rank {rank:2d}: {took(rank) * noise.uniform(990, 1010):.2f}"
                      for rank in range(8)]  # fmt: skip
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    found = verdict(tmp_path)

    assert [place.rank for place in found.culprits] == ranks
    assert (found.code == "D3") == bool(ranks)


@pytest.mark.parametrize(
    ("told", "world", "named"),
    [("vx1", 6, "ow9"), (None, 6, None), ("vx2", 6, None)],
    ids=["in the order of the nodes", "no host is known", "in another order"],
)
def test_the_host_in_the_order_of_the_nodes(
    tmp_path: Path, told: str | None, world: int, named: str | None
) -> None:
    """Where the ranks of some host are known, and lie so."""
    head = tuple(
        f"{told}:410{rank}:411{rank} [{rank}] NCCL INFO comm 0x55 rank {rank} nranks {world}"
        f" cudaDev {rank} nvmlDev {rank} busId 1b000 commId 0x8f3d2c11 - Init COMPLETE"
        for rank in (0, 1) if told
    )  # fmt: skip
    found = of_hosts(tmp_path, head, old, SPLIT)

    assert (found.code == "D3") is (named is not None)
    assert {place.host for place in found.culprits} == ({named} if named else set())


def test_unlabelled_lines_are_no_rank(tmp_path: Path) -> None:
    """Several ranks' may be among them: what waits least of these is nobody."""
    rows = []
    for step in range(STEPS):
        for rank, (work, wait) in enumerate(times(lambda r, s: 0.5, step, 8, 5)):
            label = f"[rank {rank}] " if rank > 3 else ""
            said = 0.01 if rank == step % 4 else wait
            rows.append(f"{label}step {step} loss {8 - step * 0.1:.3f} fwd+bwd {1e3 * work:.0f} ms"
                        f" allreduce wait {1e3 * said:.0f} ms step 900 ms")  # fmt: skip
    (tmp_path / "n1.log").write_text("\n".join(rows) + "\n")
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        "9|RUNNING|0:0|2026-03-01T08:00:00|Unknown|2|n[1-2]\n"
    )

    assert verdict(tmp_path).code != "D3"


@pytest.mark.parametrize(
    ("own", "apart"),
    [(old, True), (lambda rank, step: 0.5, False),
     (lambda rank, step: 0.9 if rank == step // 40 % 6 else 0.5, False)],
    ids=["a host's", "alike", "another each time"],
)  # fmt: skip
def test_some_ranks_wait_less_than_all_others(tmp_path: Path, own: Own, apart: bool) -> None:
    """Wherever they run: that keeps a run from being called sound with confidence."""
    rows = [
        f"[rank {rank}] step {step} loss {8 - step * 0.1:.3f} iter_time={work + wait:.3f}"
        f" sync_wait={wait:.3f}"
        for step in range(STEPS)
        for rank, (work, wait) in enumerate(times(own, step * 20, 6, 3))
    ]
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")

    assert waits_least(collect(Request((str(tmp_path),)))) is apart


def own_parts(folder: Path, own: Own, waits: bool = True) -> Verdict:
    """A log for each of eight ranks, with the parts of every twentieth step, which lie close."""
    began, noise = datetime(2026, 3, 4, 8, tzinfo=UTC), random.Random(4)
    logs = [[f"{began:%Y-%m-%d %H:%M:%S} r{rank:02d} pid={70 + rank} host=hg7 cuda={rank} world=8"]
            for rank in range(8)]  # fmt: skip
    at = began
    for step in range(20, 2420, 20):
        spent = [own(rank, step) + noise.uniform(-0.006, 0.006) for rank in range(8)]
        at += timedelta(seconds=20 * (max(spent) + 0.1))
        for rank, work in enumerate(spent):
            wait = max(spent) - work + 0.07 if waits else 0.07
            logs[rank].append(
                f"{at:%Y-%m-%d %H:%M:%S} r{rank:02d} it={step} loss={6 - step / 700:.4f}"
                f" data=0.007 fwd_bwd={work:.3f} grad_sync={wait:.3f} step={max(spent) + 0.1:.3f}"
            )
    for rank, lines in enumerate(logs):
        (folder / f"rank{rank:02d}.log").write_text("\n".join(lines) + "\n")
    return verdict(folder)


def test_a_rank_that_takes_a_sixth_longer_since(tmp_path: Path) -> None:
    """By less than own work scatters elsewhere, but the others wait for it since."""
    told = own_parts(tmp_path, lambda rank, step: 0.82 if rank == 6 and step > 900 else 0.7)

    assert (told.code, [place.rank for place in told.culprits]) == ("D3", [6])
    assert told.confidence < 0.8


@pytest.mark.parametrize(
    ("own", "waits"),
    [
        (lambda rank, step: 0.82 if rank == 6 else 0.7, True),
        (lambda rank, step: 0.82 if rank == 6 and step > 900 else 0.7, False),
        (lambda rank, step: 0.73 if rank == 6 and step > 900 else 0.7, True),
        (lambda rank, step: 0.82 if step > 900 else 0.7, True),
    ],
    ids=["by design", "nobody waits", "at no cost", "all of them"],
)
def test_ranks_none_of_which_became_late(tmp_path: Path, own: Own, waits: bool) -> None:
    assert own_parts(tmp_path, own, waits).code != "D3"
