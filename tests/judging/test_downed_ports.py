"""The port that failed with the network, and those that had failed before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from families.fleet import T0, facts_of, sample
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.claims import claim
from flatline.judging.downed_ports import Downed, downed
from flatline.model import Attempt, Finding, LogCite, QueryCite

FAILED = 1200.0
Count = Callable[[str, float], float]
"""(host, seconds) -> a counter of its one port."""


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(T0 + seconds, UTC)


def judged(tmp_path: Path, **metrics: Count) -> Downed | None:
    """Three hosts read every 15 s; the log tells of the failure at FAILED."""
    lines = [
        sample(f"node_infiniband_{name}", f'instance="n{n}:9100",device="mlx5_0",port="1",job="x"',
               count(f"n{n}", seconds), seconds)
        for name, count in metrics.items()
        for n in range(3)
        for seconds in range(0, 1400, 15)
    ]  # fmt: skip
    began = (Attempt(0, "failed", started_at=at(0), ended_at=at(FAILED + 60)),)
    facts, source = facts_of(tmp_path, lines, attempts=began)
    told = LogCite("job.log", 9, "gave up", at=at(FAILED))
    found = downed(
        facts,
        Finding("C5", "gave up", shows=(claim("x", told),), implies=(), strength=0.8,
                attribution="infrastructure", onset=at(FAILED)),
    )  # fmt: skip
    for cite in () if found is None else found.shows[0].cites:
        assert isinstance(cite, QueryCite)
        assert source.replay(cite) == cite.value
    return found


def step(host: str, when: float, old: float = 0.0) -> Count:
    """One more on a host from a moment on, beside what all have had since boot."""
    return lambda name, seconds: old + (name == host and seconds >= when)


def test_a_port_that_went_down_minutes_before(tmp_path: Path) -> None:
    """An adapter sends again for a while before it gives up."""
    found = judged(tmp_path, link_downed_total=step("n1", FAILED - 130, old=2))

    assert found is not None
    assert found.hosts == ("n1",)
    assert "went down" in found.shows[0].text


@pytest.mark.parametrize("when", [-1.0, 300.0, FAILED + 130])
def test_a_port_that_went_down_at_another_time(tmp_path: Path, when: float) -> None:
    """Before the run, long before the failure, or after it."""
    assert judged(tmp_path, link_downed_total=step("n1", when)) is None


def test_a_port_that_flaps_all_the_run(tmp_path: Path) -> None:
    """It does so in any five minutes, and the run went on before."""
    flaps: Count = lambda host, seconds: (seconds // 120) * (host == "n1")  # noqa: E731

    assert judged(tmp_path, link_downed_total=flaps) is None


def test_a_port_that_had_gone_down_once_before(tmp_path: Path) -> None:
    """It did more often as the network failed."""
    count: Count = lambda host, seconds: (  # noqa: E731
        (seconds > 200) + 2.0 * (seconds > FAILED - 100) if host == "n1" else 0.0
    )
    found = judged(tmp_path, link_downed_total=count)

    assert found is not None
    assert found.hosts == ("n1",)


def test_a_port_that_is_down_all_the_time_is_not_in_use(tmp_path: Path) -> None:
    """Only one that was up can have failed."""
    assert judged(tmp_path, state_id=lambda host, seconds: 1.0 if host == "n1" else 4.0) is None


def test_a_port_that_is_no_longer_active(tmp_path: Path) -> None:
    """Its state tells, where no counter is read."""
    found = judged(
        tmp_path,
        state_id=lambda host, seconds: 1.0 if host == "n2" and seconds > FAILED - 20 else 4.0,
    )

    assert found is not None
    assert found.hosts == ("n2",)


def test_all_ports_down_are_told_together(tmp_path: Path) -> None:
    """What they share is at fault; the family names none of them."""
    found = judged(tmp_path, link_downed_total=lambda host, seconds: float(seconds > FAILED - 20))

    assert found is not None
    assert found.hosts == ("n0", "n1", "n2")


def rate(fast: float, usual: float = 0.0) -> Count:
    """Errors a second: on n1 `fast` in the last two minutes before the failure, else `usual`."""
    return lambda host, seconds: (
        (usual * seconds + fast * max(0.0, min(seconds, FAILED) - (FAILED - 120)))
        if host == "n1" else 0.0
    ) // 1  # fmt: skip


def test_a_burst_of_symbol_errors(tmp_path: Path) -> None:
    """The port did not go down, and no other received errors then."""
    found = judged(tmp_path, symbol_error_total=rate(1.0))

    assert found is not None
    assert found.hosts == ("n1",)


@pytest.mark.parametrize(("fast", "usual"), [(0.03, 0.0), (0.2, 0.4)])
def test_errors_that_are_no_burst(tmp_path: Path, fast: float, usual: float) -> None:
    """A few, or as many as the port has always received."""
    assert judged(tmp_path, symbol_error_total=rate(fast, usual)) is None


ENDS = (
    "pod01:7100:7400 [1] NCCL WARN NET/IB : Got completion from peer {peer}<41000> with"
    " status=IBV_WC_RETRY_EXC_ERR(12) opcode=0 len=0 vendor err 129 (Send) hca mlx5_1\n"
)
ETHERNET = "igb 0000:c1:00.0 eno1: igb: eno1 NIC Link is Down"
NO_PEER = (
    "pod01:7100:7400 [1] NCCL WARN NET/OFI Request 0x7e01c0 completed with error. RC: 5. Error: 5"
    " (Input/output error). Completed length: 0, Request: {{ dev: 1, direction: RECV }}\n"
)
SLINGSHOT = "cxi_core 0000:dd:00.0: hsn3: CXI_EVENT_LINK_DOWN"
INFINIBAND = "mlx5_core 0000:41:00.0 enp65s0f0np0: Link down"


def blamed(
    folder: Path,
    peer: str,
    fell: float | None = None,
    kernel: str = "",
    ends: str = ENDS,
    lost: tuple[tuple[str, float], ...] = (("pod02", 1170),),
) -> list[str | None]:
    """Hosts blamed for a transport's last line, with steps up to 1150 s; the port of pod02 goes
    down at `fell`, and kernels tell of a link when it was `lost`."""

    def stamp(seconds: float) -> str:
        return f"{datetime(2026, 3, 4, 8, tzinfo=UTC) + timedelta(seconds=seconds):%FT%T}"

    steps = [f"{stamp(25 * n)} step {n * 10}/9000 loss {2 + 1 / (n + 1):.4f}\n" for n in range(47)]
    (folder / "job.log").write_text("".join(steps) + ends.format(peer=peer))
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        f"42|train|FAILED|1:0|{stamp(0)}|{stamp(1260)}|pod[01-04]\n"
    )
    began = datetime(2026, 3, 4, 8, tzinfo=UTC).timestamp()
    lines = [
        f'node_infiniband_link_downed_total{{instance="pod0{n}:9100",device="mlx5_1",port="1"}}'
        f" {int(n == 2 and fell is not None and second >= fell)} {int((began + second) * 1000)}\n"
        for n in range(1, 5)
        for second in range(0, 1300, 15)
    ]
    (folder / "metrics.prom").write_text("".join(lines))
    for host, when in lost if kernel else ():
        said = [(60.0 * n, "audit: type=1400") for n in range(19)] + [(when, kernel)]
        (folder / f"{host}.dmesg").write_text(
            "".join(f"{stamp(at)},000000+00:00 {text}\n" for at, text in sorted(said))
        )
    verdict = diagnose(collect(Request((str(folder),))))
    assert verdict.code == "C5"
    return [place.host for place in verdict.culprits]


@pytest.mark.parametrize(
    ("peer", "fell", "hosts"),
    [
        ("10.4.3.3", 1155, ["pod02"]),
        ("10.4.3.3", 960, []),
        ("pod03", 1155, []),
        ("pod02", 1155, ["pod02"]),
    ],
    ids=["as it gave up", "steps were made after", "at no end of the path", "at an end"],
)
def test_whose_port_it_was(tmp_path: Path, peer: str, fell: float, hosts: list[str]) -> None:
    assert blamed(tmp_path, peer, fell) == hosts


@pytest.mark.parametrize(("kernel", "hosts"), [(INFINIBAND, ["pod02"]), (ETHERNET, [])])
def test_an_adapter_for_management_carries_no_rdma(
    tmp_path: Path, kernel: str, hosts: list[str]
) -> None:
    assert blamed(tmp_path, "10.4.3.3", kernel=kernel) == hosts


@pytest.mark.parametrize(
    ("lost", "hosts"),
    [
        ((("pod02", 1170),), ["pod02"]),
        ((("pod02", 1125),), ["pod02"]),
        ((("pod01", 1170),), ["pod01"]),
        ((("pod02", 1170), ("pod03", 1171)), ["pod01"]),
        ((("pod02", 300),), ["pod01"]),
        ((("pod02", 1500),), ["pod01"]),
        ((("pod09", 1170),), ["pod01"]),
    ],
    ids=["at the other end", "as the last steps were printed", "its own", "of several",
         "steps were made after", "after the end", "of another run"],
)  # fmt: skip
def test_whose_kernel_lost_a_link_as_a_transport_named_nobody(
    tmp_path: Path, lost: tuple[tuple[str, float], ...], hosts: list[str]
) -> None:
    """Else the host that tells of it is all there is."""
    assert blamed(tmp_path, "", kernel=SLINGSHOT, ends=NO_PEER, lost=lost) == hosts
