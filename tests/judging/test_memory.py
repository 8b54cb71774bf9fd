"""Memory of the GPUs before an allocation failed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import T0, facts_of, sample
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.memory import Filled, filled
from flatline.model import Attempt, Place


def told(tmp_path: Path, used: float, at: float = 590, host: str | None = None) -> Filled | None:
    """Two hosts; the second's GPU climbs to so many of 80,000 MiB within ten minutes."""
    lines = []
    for n in range(0, 601, 30):
        for name, level in (("n0", 20_000.0), ("n1", used * n / 600)):
            label = f'Hostname="{name}",gpu="0"'
            lines.append(sample("DCGM_FI_DEV_FB_USED", label, level, n))
            lines.append(sample("DCGM_FI_DEV_FB_TOTAL", label, 80_000.0, n))
    facts, source = facts_of(tmp_path, lines)
    found = filled(facts, datetime.fromtimestamp(T0 + at, UTC), [Place(host=host)] if host else [])
    for cite in () if found is None else found.shows.cites:
        assert source.replay(cite) == cite.value  # type: ignore[arg-type]
    return found


def test_a_gpu_that_filled_up_is_named(tmp_path: Path) -> None:
    """With what it held and what it has."""
    found = told(tmp_path, 79_000)

    assert found is not None
    assert found.shows.text.startswith("GPU 0 on n1 was 9")
    assert len(found.shows.cites) == 2


@pytest.mark.parametrize(("used", "at", "host"), [(40_000, 590, None), (79_000, 300, None),
                                                  (79_000, 590, "n0")])  # fmt: skip
def test_half_full_says_nothing(tmp_path: Path, used: float, at: float, host: str | None) -> None:
    """Nor what came after the failure, nor another host's."""
    assert told(tmp_path, used, at, host) is None


@pytest.mark.parametrize(
    ("levels", "gpu"),
    [({"0": 20_000, "1": 79_000}, "1"), ({"0": 78_000, "1": 79_000}, None),
     ({"0": 20_000, "1": 60_000}, None)],
    ids=["one", "two", "none"],
)  # fmt: skip
def test_the_only_card_that_was_ever_full_where_nothing_dates_it(
    tmp_path: Path, levels: dict[str, float], gpu: str | None
) -> None:
    """A log without times, and a card that has room again long before the metrics end."""
    prom = [
        sample(metric, f'Hostname="n1",gpu="{number}"', value, at)
        for at in range(0, 6001, 30)
        for number, level in levels.items()
        for metric, value in (("DCGM_FI_DEV_FB_USED", level if at < 3000 else 20_000),
                              ("DCGM_FI_DEV_FB_TOTAL", 80_000))
    ]  # fmt: skip
    facts_of(tmp_path, prom)
    steps = "".join(f"step {n}/900 loss {3 - n / 90:.4f}\n" for n in range(1, 60))
    (tmp_path / "train.log").write_text(steps + OOM.format(0).removeprefix("[rank5]: ") + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "B1"
    assert [p.gpu for p in verdict.culprits] == ([gpu] if gpu else [])


def failed(
    tmp_path: Path, levels: dict[str, float], line: str, total: str = "DCGM_FI_DEV_FB_TOTAL"
) -> list[tuple[str | None, str | None]]:
    """The culprits where each GPU of one host held so many of 80,000 MiB as a line was printed."""
    prom = [
        sample(metric, f'Hostname="n1",gpu="{gpu}"', value, n)
        for n in range(0, 601, 30)
        for gpu, level in levels.items()
        for metric, value in (("DCGM_FI_DEV_FB_USED", level), (total, 80_000.0))
    ]
    facts_of(tmp_path, prom)
    when = datetime.fromtimestamp(T0 + 590, UTC).strftime("%Y-%m-%d %H:%M:%S")
    nccl = "n1:77:78 [3] NCCL INFO comm 0x55 rank 5 nranks 8 cudaDev 3 busId 1b000 - Init COMPLETE"
    (tmp_path / "train.log").write_text(f"{nccl}\n{when},000 {line}\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert verdict.code == "B1"
    return [(place.host, place.gpu) for place in verdict.culprits]


OOM = "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {} has"


def test_the_only_full_card_is_the_one(tmp_path: Path) -> None:
    """Whatever number the process counts it by."""
    said = OOM.format(0)
    assert failed(tmp_path, {"0": 30_000, "3": 79_000}, said) == [("n1", "3")]


@pytest.mark.parametrize(("node", "named"), [("n1.example.org", "3"), ("n2.example.org", None)])
def test_an_exporter_may_spell_the_host_with_its_domain(
    tmp_path: Path, node: str, named: str | None
) -> None:
    """And the job's record and its log without it; another host's card is none of it."""
    prom = [
        sample(metric, f'Hostname="{node}",gpu="3"', value, n)
        for n in range(0, 601, 30)
        for metric, value in (("DCGM_FI_DEV_FB_USED", 79_000), ("DCGM_FI_DEV_FB_TOTAL", 80_000.0))
    ]
    facts, _ = facts_of(tmp_path, prom, attempts=(Attempt(0, "unknown", hosts=("n1", "n2")),))
    found = filled(facts, datetime.fromtimestamp(T0 + 590, UTC), [Place(host="n1")])

    assert (found and found.gpus[0].gpu) == named


@pytest.mark.parametrize(("card", "named"), [(3, "3"), (1, None), (0, "0")])
def test_of_several_full_cards_the_number_tells(
    tmp_path: Path, card: int, named: str | None
) -> None:
    """Where the exporter found that one full."""
    levels = {"0": 78_000.0, "1": 30_000.0, "3": 79_000.0}
    assert failed(tmp_path, levels, OOM.format(card)) == [("n1", named)]


@pytest.mark.parametrize(("least", "named"), [(74_000, [("n1", "3")]), (60_000, [("n1", "3")])])
def test_cards_that_are_all_full_are_told_apart_by_the_number(
    tmp_path: Path, least: float, named: list[tuple[str, str]]
) -> None:
    """As where one has room: to be full is what an allocator's cache does to every card."""
    levels = {"0": 78_000, "1": least, "3": 79_000}
    assert failed(tmp_path, levels, OOM.format(3)) == named


SAID = (
    "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 6 has a"
    " total capacity of {} of which 1.02 GiB is free. Process 88123 has 17.87 GiB memory in use."
    " Including non-PyTorch memory, this process has 59.23 GiB memory in use."
)


@pytest.mark.parametrize(
    ("size", "levels", "named"),
    [
        ("78.12 GiB", {"0": 60_000, "3": 79_000}, "3"),
        ("78.12 GiB", {"0": 79_500, "3": 79_000}, None),
        ("78.12 GiB", {"0": 60_000, "3": 62_000}, None),
        ("39.39 GiB", {"0": 60_000, "3": 79_000}, None),
    ],
)
def test_the_allocator_says_the_total_that_an_exporter_does_not(
    tmp_path: Path, size: str, levels: dict[str, float], named: str | None
) -> None:
    """dcgm-exporter's own list has no total; two full cards, none, and cards of another size tell
    no card."""
    found = failed(tmp_path, levels, SAID.format(size), total="DCGM_FI_DEV_FB_FREE")

    assert found == [("n1", named)]


CLASSIC = (
    "RuntimeError: CUDA out of memory. Tried to allocate 132.00 MiB (GPU 0; 31.75 GiB total"
    " capacity; {own} already allocated; 91.75 MiB free; {own} reserved in total by PyTorch)"
)
LATER = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
    " capacity of 79.15 GiB of which 1.21 GiB is free. Including non-PyTorch memory, this process"
    " has {own} memory in use."
)


@pytest.mark.parametrize(
    ("line", "own", "others"),
    [
        (CLASSIC, "422.00 MiB", True),
        (CLASSIC, "30.10 GiB", False),
        (LATER, "20.00 GiB", True),
        (LATER, "77.93 GiB", False),
    ],
)
def test_what_is_missing_of_a_card_is_held_by_others(
    tmp_path: Path, line: str, own: str, others: bool
) -> None:
    """Whose they are is not known: ranks of the run may share a card."""
    (tmp_path / "train.log").write_text(line.format(own=own) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))
    assert verdict.code == "B1"
    assert (verdict.attribution == "unknown") == others
    assert any("others hold" in one.text for one in verdict.implies) == others
    assert any("what else holds" in one.text for one in verdict.actions) == others


BARE = (
    "Traceback (most recent call last):\n"
    '  File "/app/train.py", line 208, in main\n'
    "    loss.backward()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 2 has a total"
    " capacity of 78.12 GiB of which 512.00 MiB is free.\n"
)
FAILED = """\
[{n}]:
  time      : 2023-11-14_22:23:10
  host      : {host}
  rank      : {rank} (local_rank: {local})
  exitcode  : {code} (pid: 41877)
  error_file: <N/A>
"""


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ((), [("n1", "2")]),
        (((1, "n0", 3, 3, 1),), []),
        (((1, "n0", 3, 3, -15),), [("n1", "2")]),
    ],
)
def test_the_one_process_that_failed_is_the_one_without_memory(
    tmp_path: Path, others: tuple[tuple[object, ...], ...], named: list[tuple[str, str]]
) -> None:
    """By the launcher's summary, where the traceback carries no rank; of two nobody is named, but
    one that the launcher ended did not fail."""
    prom = [
        sample(metric, f'Hostname="{host}",gpu="{gpu}"', value, n)
        for n in range(0, 601, 30) for host in ("n0", "n1") for gpu in "0123"
        for metric, value in (("DCGM_FI_DEV_FB_USED", 79_000.0 if gpu == "2" else 70_000.0),
                              ("DCGM_FI_DEV_FB_TOTAL", 80_000.0))
    ]  # fmt: skip
    facts_of(tmp_path, prom)
    steps = "".join(f"2023-11-14T22:{15 + n // 6}:{n % 6}0Z step {n} loss {3 - n / 90}\n"
                    for n in range(48))  # fmt: skip
    closing = "W1114 22:23:09 77 api.py:900] Sending process 41877 closing signal SIGTERM\n"
    said = FAILED.format(n=0, host="n1", rank=6, local=2, code=1)
    rest = "".join(
        (closing if code == -15 else "") + FAILED.format(n=n, host=host, rank=rank, local=local,
                                                       code=code)
        for n, host, rank, local, code in others
    )  # fmt: skip
    (tmp_path / "train.log").write_text(
        f"{steps}{BARE}train.py FAILED\nFailures:\n{rest}"
        f"Root Cause (first observed failure):\n{said}"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "B1"
    assert [(place.host, place.gpu) for place in verdict.culprits] == named


@pytest.mark.parametrize(("rank", "card", "named"), [(3, 3, "3"), (0, 0, None), (6, 0, None),
                                                     (None, 0, None)])  # fmt: skip
def test_of_a_host_that_only_the_metrics_name(
    tmp_path: Path, rank: int | None, card: int, named: str | None
) -> None:
    """A process that was given one card calls it 0, whichever it is: of several full ones it is
    told where the rank counts to it."""
    prom = [
        sample(metric, f'Hostname="n1",gpu="{gpu}"', value, n)
        for n in range(0, 601, 30)
        for gpu in range(8)
        for metric, value in (
            ("DCGM_FI_DEV_FB_USED", 79_000.0),
            ("DCGM_FI_DEV_FB_TOTAL", 80_000.0),
        )
    ]
    facts_of(tmp_path, prom)
    when = datetime.fromtimestamp(T0 + 590, UTC).strftime("%Y-%m-%d %H:%M:%S")
    label = "" if rank is None else f"[rank{rank}]: "
    line = OOM.format(card).removeprefix("[rank5]: ")
    (tmp_path / "train.log").write_text(f"{label}{when},000 {line}\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert verdict.code == "B1"
    assert next((place.gpu for place in verdict.culprits), None) == named


INSIDE = (
    "[rank12]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.32 GiB. GPU 4 has a"
    " total capacity of 139.72 GiB of which 3.05 GiB is free. {} Of the allocated memory 32.61 GiB"
    " is allocated by PyTorch, and 1.02 GiB is reserved by PyTorch but unallocated."
)
HELD = "Process {} has {} memory in use."


@pytest.mark.parametrize(
    ("held", "blamed"),
    [
        (("101.76 GiB", "34.88 GiB"), "infrastructure"),
        (("34.88 GiB", "101.76 GiB"), "infrastructure"),
        (("34.88 GiB",), "job"),  # its own, by the number it has outside
        (("40.00 GiB", "60.00 GiB", "34.88 GiB"), "unknown"),  # two others: ranks, perhaps
        (("34.88 GiB", "35.10 GiB", "60.00 GiB"), "job"),  # two are as large as this one
        (("12.00 GiB", "34.88 GiB"), "job"),
    ],
)
def test_another_process_beside_this_one_in_a_container(
    tmp_path: Path, held: tuple[str, ...], blamed: str
) -> None:
    """Its own memory is listed under a pid that it does not know itself."""
    said = " ".join(HELD.format(3311842 + n, size) for n, size in enumerate(held))
    (tmp_path / "train.log").write_text(INSIDE.format(said) + "\n")
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.attribution) == ("B1", blamed)


@pytest.mark.parametrize(
    ("cards", "gpus", "named"),
    [(8, 16, "4"), (8, 8, None), (4, 8, None), (8, None, "4"), (16, None, None)],
    ids=[
        "all of both hosts",
        "half of each",
        "fewer cards than that number",
        "by its launcher",
        "maybe half of each",
    ],
)
def test_the_card_by_its_number_where_the_job_has_all(
    tmp_path: Path, cards: int, gpus: int | None, named: str | None
) -> None:
    """Rank 12 of two hosts of eight counts to card 4, as torchrun does where no record says how
    many GPUs the job has."""
    tres = f"gres/gpu={gpus}" if gpus else "cpu=96"
    (tmp_path / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList|AllocTRES\n"
        f"6|t|FAILED|1:0|2023-11-14T22:13:20|2023-11-14T22:23:30|2|n[0-1]|{tres}\n"
    )
    (tmp_path / "metrics.prom").write_text("\n".join(
        sample("DCGM_FI_DEV_FB_USED", f'Hostname="n{host}",gpu="{gpu}"', 30_000, n)
        for n in range(0, 601, 30) for host in range(2) for gpu in range(cards)
    ) + "\n")  # fmt: skip
    text = INSIDE.format(HELD.format(9, "101.76 GiB")) + "\n" + FAILED
    (tmp_path / "slurm-6.out").write_text(text.format(n=0, host="n1", rank=12, local=4, code=1))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert [place.gpu for place in verdict.culprits] == [named]


@pytest.mark.parametrize(("takes", "named"), [(8, "3"), (4, None), (0, None)])
def test_the_card_by_its_number_where_processes_take_all(
    tmp_path: Path, takes: int, named: str | None
) -> None:
    """The record counts no GPUs, but each process says which one it takes."""
    (tmp_path / "sacct.psv").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NNodes|NodeList\n"
        "6|t|FAILED|1:0|2023-11-14T22:13:20|2023-11-14T22:23:30|1|n0\n"
    )
    (tmp_path / "metrics.prom").write_text("\n".join(
        sample("DCGM_FI_DEV_FB_USED", f'Hostname="n0",gpu="{gpu}"', 30_000, n)
        for n in range(0, 601, 30) for gpu in range(8)
    ) + "\n")  # fmt: skip
    head = "".join(
        f"09/12/2024 15:44:07 - WARNING - __main__ - Process rank: {n}, device: cuda:{n},"
        " n_gpu: 1, distributed training: True, 16-bits training: False\n" for n in range(takes)
    )  # fmt: skip
    said = INSIDE.replace("rank12", "rank3").replace("GPU 4", "GPU 3")
    text = head + said.format(HELD.format(9, "101.76 GiB")) + "\n" + FAILED
    (tmp_path / "slurm-6.out").write_text(text.format(n=0, host="n0", rank=3, local=3, code=1))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert [place.gpu for place in verdict.culprits] == [named]
