"""Which GPU a PCI address is, where something that was read says both."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from families.fleet import facts_of, sample
from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.judging.addresses import NAMED, address, bus_id, by_kernel, carded, numbered
from flatline.judging.claims import claim
from flatline.model import Finding, LogCite, Match, Place, Signature
from flatline.rank_hosts import COMMUNICATOR

UUIDS = [f"GPU-746b9f64-7895-183e-c070-5c9ff1f8086{n}" for n in range(4)]
BUSES = ("1b", "3d", "bd", "db")
DEVICE = "PCI:0000:bd:00"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("PCI:0000:bd:00", (0, 0xBD, 0)),
        ("0000:bd:00.0:", (0, 0xBD, 0)),
        ("00000000:BD:00.0", (0, 0xBD, 0)),
        ("0001:00:1f.0", (1, 0, 0x1F)),
        ("bd:00", (0, 0xBD, 0)),
        ("mlx5_2", None),
        ("node02:9400", None),
        ("12:34:56", None),
    ],
)
def test_an_address_however_it_is_spelled(text: str, wanted: tuple[int, ...] | None) -> None:
    """By the driver, the exporter and the kernel."""
    assert address(text) == wanted


def test_the_digits_of_nccl_are_the_same_address() -> None:
    """Without colons, the function last, and no leading zeros."""
    assert bus_id("bd000") == address("0000:bd:00.0")
    assert bus_id("101f0") == address("0000:10:1f.0")
    assert bus_id("1001f0") == address("0001:00:1f.0")


def told(tmp_path: Path, labels: str, *matches: Match) -> str | None:
    """The index of the GPU at DEVICE of n1; each card's series on two hosts carry these labels."""
    lines = [
        sample("DCGM_FI_DEV_POWER_USAGE", f'gpu="{gpu}",Hostname="{host}"'
               + labels.format(bus=BUSES[gpu].upper(), uuid=UUIDS[gpu],
                               bare=UUIDS[gpu][4:]), 400.0, at)
        for gpu in range(4) for host in ("n1", "n2") for at in (0, 30, 60)
    ]  # fmt: skip
    facts, source = facts_of(tmp_path, lines, matches=matches)
    place = Place(host="n1", device=DEVICE)
    said = claim("Xid 79", LogCite("dmesg", 1, "NVRM: Xid 79", place))
    found = Finding("B2", "lost", shows=(said,), implies=(), strength=0.9,
                    attribution="infrastructure", culprits=(place,))  # fmt: skip
    out = numbered(facts, found)
    for cite in (cite for shown in out.shows[1:] for cite in shown.cites):
        assert isinstance(cite, LogCite) or source.replay(cite) == cite.value
    return out.culprits[0].gpu


def match(name: str, host: str, **groups: str) -> Match:
    signature = Signature(name, "nvidia", "marker", "", "", "", ("x",))
    return Match(signature, LogCite("dmesg", 2, "GPU", Place(host=host)), groups)


def by_driver(host: str, device: str = DEVICE) -> Match:
    return match(NAMED, host, device=device, uuid=UUIDS[2])


def by_nccl(host: str, nvml: str, bus: str = "bd000") -> Match:
    return match(COMMUNICATOR, host, comm_rank="5", comm_size="8", nvml=nvml, bus=bus)


def test_an_exporters_label_tells(tmp_path: Path) -> None:
    """dcgm-exporter's, with eight digits of the domain."""
    assert told(tmp_path, ',pci_bus_id="00000000:{bus}:00.0"') == "2"


def test_the_drivers_uuid_and_an_exporters_label_tell_together(tmp_path: Path) -> None:
    """Older exporters carry no address."""
    assert told(tmp_path, ',UUID="{uuid}"', by_driver("n1")) == "2"


def test_an_exporter_may_cut_the_uuid(tmp_path: Path) -> None:
    """nvidia_gpu_exporter leaves out its beginning."""
    assert told(tmp_path, ',uuid="{bare}"', by_driver("n1")) == "2"


def test_nccl_tells(tmp_path: Path) -> None:
    """By its line on the communicator."""
    assert told(tmp_path, "", by_nccl("n1", "2")) == "2"


@pytest.mark.parametrize(
    ("labels", "matches"),
    [
        ("", ()),
        (',UUID="{uuid}"', ()),
        (',UUID="{uuid}"', (by_driver("n2"),)),
        (',UUID="{uuid}"', (by_driver("n1", "PCI:0000:3d:00"),)),
        ("", (by_nccl("n2", "2"),)),
        ("", (by_nccl("n1", "1", "3d000"),)),
        (',pci_bus_id="00000000:{bus}:00.0"', (by_nccl("n1", "6"),)),
    ],
    ids=["nothing", "no uuid", "other host", "other card", "nccl elsewhere", "nccl of another",
         "they differ"],
)  # fmt: skip
def test_what_tells_no_index(tmp_path: Path, labels: str, matches: tuple[Match, ...]) -> None:
    """Nothing is counted out, and two that differ say nothing."""
    assert told(tmp_path, labels, *matches) is None


def listed(tool: str, host: str, cards: str) -> list[Match]:
    """A list of these cards, as the tool counts them."""

    def groups(n: int) -> dict[str, str]:
        if tool == "nvidia-gpu-list":
            return {"uuid": UUIDS[n]}
        return {"device": f"0000:{BUSES[n].upper()}:00.0"}

    return [match(tool, host, gpu=str(at), **groups(int(card))) for at, card in enumerate(cards)]


@pytest.mark.parametrize(
    ("tool", "host", "cards", "beside", "expected"),
    [
        ("nvidia-gpu-table", "n1", "0123", (), "2"),
        ("amdgpu-list", "n1", "0123", (), "2"),
        ("amdgpu-list", "n1", "2013", (), "0"),
        ("nvidia-gpu-list", "n1", "0123", (by_driver("n1"),), "2"),
        ("nvidia-gpu-list", "n1", "0123", (), None),
        ("nvidia-gpu-table", "n2", "0123", (), None),
        ("nvidia-gpu-table", "n1", "23", (), None),
        ("nvidia-gpu-table", "n1", "0123", (by_nccl("n1", "1"),), "1"),
    ],
    ids=["by address", "of AMD", "in another order", "by the driver's UUID", "by a UUID alone",
         "of another host", "of some cards", "NCCL is nearer"],
)  # fmt: skip
def test_a_tools_list_tells(
    tmp_path: Path, tool: str, host: str, cards: str, beside: tuple[Match, ...],
    expected: str | None,
) -> None:  # fmt: skip
    """Where it counts all cards of the host."""
    assert told(tmp_path, "", *listed(tool, host, cards), *beside) == expected


@pytest.mark.parametrize(
    ("cards", "labels", "expected"),
    [
        ("", "", "2"),
        ("0123", "", "2"),
        ("0123", ',pci_bus_id="00000000:{bus}:00.0"', "2"),
        ("4567", "", None),
        ("2345", "", None),
        ("2345", ',pci_bus_id="00000000:{bus}:00.0"', None),
    ],
    ids=["no metrics", "alike", "labelled", "others", "some of the host's", "labelled otherwise"],
)
def test_the_card_of_a_rank_is_counted_as_the_exporter_counts(
    tmp_path: Path, cards: str, labels: str, expected: str | None
) -> None:
    """A job that was given some of a host's GPUs sees them counted from 0."""
    lines = [
        sample("DCGM_FI_DEV_POWER_USAGE", f'gpu="{gpu}",Hostname="n1"' + labels.format(bus=bus),
               400.0, at)
        for gpu, bus in zip(cards, BUSES, strict=False) for at in (0, 30, 60)
    ]  # fmt: skip
    told = match(COMMUNICATOR, "n1", comm_rank="6", comm_size="8", nvml="2", bus=BUSES[2] + "000")
    facts, _ = facts_of(tmp_path, lines, matches=[told])
    said = claim("ECC", LogCite("job.log", 1, "uncorrectable ECC error", Place(rank=6)))
    found = Finding("B2", "ECC", shows=(said,), implies=(), strength=0.9,
                    attribution="infrastructure", culprits=(Place(rank=6),))  # fmt: skip

    assert carded(facts, found).culprits[0].gpu == expected


LIST = "".join(
    f"GPU: {gpu}\n    BDF: 0000:{bus}:00.0\n    UUID: 00ff74a1-0000-1000-80aa-00000000000{gpu}\n\n"
    for gpu, bus in enumerate(BUSES)
)
SHOWBUS = "".join(f"GPU[{gpu}]\t\t: PCI Bus: 0000:{bus}:00.0\n" for gpu, bus in enumerate(BUSES))
TABLE = "".join(
    f"|   {gpu}  NVIDIA H100 80GB HBM3      On  | 00000000:{bus.upper()}:00.0 Off |        0 |\n"
    for gpu, bus in enumerate(BUSES)
)
CSV = "index, pci.bus_id\n" + "".join(
    f"{gpu}, 00000000:{bus.upper()}:00.0\n" for gpu, bus in enumerate(BUSES)
)
XID = "[ 8390.785329] NVRM: Xid (PCI:0000:bd:00): 79, pid=1234, GPU has fallen off the bus.\n"
RAS = (
    "[ 8390.785329] amdgpu 0000:bd:00.0: amdgpu: {7}3 uncorrectable hardware errors detected in"
    " umc block\n"
)


@pytest.mark.parametrize(
    ("printed", "kernel"), [(LIST, RAS), (SHOWBUS, RAS), (TABLE, XID), (CSV, XID)],
    ids=["amd-smi list", "rocm-smi --showbus", "nvidia-smi", "its query"],
)  # fmt: skip
def test_a_list_at_the_head_of_a_log(tmp_path: Path, printed: str, kernel: str) -> None:
    """Of a run on one host; its kernel's log has no dates."""
    steps = "".join(f"step {n}/900 loss {2 + 9 / n:.3f}\n" for n in range(1, 200))
    (tmp_path / "slurm-7.out").write_text(printed + steps)
    (tmp_path / "dmesg-n1.txt").write_text(kernel)
    (tmp_path / "sacct.txt").write_text(
        "JobID|State|ExitCode|Start|End|NNodes|NodeList\n"
        "7|FAILED|1:0|2026-02-02T18:00:00|2026-02-02T19:00:00|1|n1\n"
    )
    found = diagnose(collect(Request((str(tmp_path),))))

    assert found.code == "B2"
    assert [(place.host, place.gpu) for place in found.culprits] == [("n1", "2")]


@pytest.mark.parametrize(
    ("risen", "zone", "expected"),
    [("2", "", "2"), ("23", "", None), ("", "", None), ("2", "Z", None)],
    ids=["one", "two", "none", "the kernel's clock says when"],
)
def test_without_one_clock_the_card_whose_errors_rose(
    tmp_path: Path, risen: str, zone: str, expected: str | None
) -> None:
    """On the host that the kernel names, of a run whose steps carry no time."""
    began = datetime(2026, 2, 2, 18, tzinfo=UTC)
    metric = "gpu_ecc_uncorrect_total"
    lines = [
        f'{name}{{gpu_id="{gpu}",hostname="n1",card_model="MI300X"}}'
        f" {3 if name == metric and gpu in risen and at > 600 else 0}"
        f" {int(began.timestamp() + at) * 1000}"
        for name in (metric, "gpu_package_power")
        for gpu in "0123"
        for at in range(0, 1200, 30)
    ]
    (tmp_path / "metrics.prom").write_text("\n".join(lines) + "\n")
    stamp = f"2026-02-02T23:11:00{zone} " if zone else "[Mon Feb  2 23:11:00 2026] "
    (tmp_path / "dmesg-n1.txt").write_text(stamp + RAS.partition("] ")[2])
    steps = "".join(f"step {n}/900 loss {2 + 9 / n:.3f}\n" for n in range(1, 200))
    (tmp_path / "train.log").write_text(steps + "n1: task 0: Aborted\n")
    found = diagnose(collect(Request((str(tmp_path),))))

    assert found.code == "B2"
    assert [place.gpu for place in found.culprits] == [expected]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (((47, "3d:00"),), "1"),
        (((47, "3d:00"), (48, "bd:00")), None),
        (((12, "3d:00"),), None),
    ],
    ids=["one then", "two then", "half an hour before"],
)
def test_a_rank_whose_card_its_kernel_tells(
    tmp_path: Path, lines: tuple[tuple[int, str], ...], expected: str | None
) -> None:
    """The runtime's error names a rank, the kernel of its host a card, within seconds."""
    read = [
        sample("DCGM_FI_DEV_POWER_USAGE", f'gpu="{gpu}",Hostname="{host}"'
               f',pci_bus_id="00000000:{BUSES[gpu].upper()}:00.0"', 400.0, at)
        for gpu in range(4) for host in ("n1", "n2") for at in (0, 30, 60)
    ]  # fmt: skip
    at = datetime(2026, 2, 2, 18, 47, 46, tzinfo=UTC)
    said = LogCite("job.out", 9, "CUDA error: uncorrectable ECC error", Place(rank=5), at)
    xid = Signature(
        id="xid", pattern="Xid", role="root", family="B2", meaning="x", not_proof="x",
        source="x", samples=("Xid",), near_misses=(), origin="x", attribution="infrastructure",
    )  # fmt: skip
    kernel = [
        Match(xid, LogCite("kern.log", n, f"Xid (PCI:0000:{bus})",
                           Place(host="n2", device=f"PCI:0000:{bus}"), at.replace(minute=minute)),
              groups={})
        for n, (minute, bus) in enumerate(lines, 1)
    ]  # fmt: skip
    facts, _ = facts_of(tmp_path, read, matches=kernel)
    found = Finding("B2", "ecc", shows=(claim("ECC", said),), implies=(), strength=0.9,
                    attribution="infrastructure", culprits=(Place(host="n2", rank=5),),
                    onset=at)  # fmt: skip

    (place,) = by_kernel(facts, found).culprits

    assert (place.rank, place.gpu) == (5, expected)


def by_gpud(
    tmp_path: Path, cards: range, names: str = "n1 n2", end: str = "txt"
) -> tuple[str | None, str | None]:
    """Index and address of the card of n1 that a kernel tells of, where the exporter gives UUIDs
    alone and a list of these cards is in a file named after each host."""
    (tmp_path / "train.log").write_text("2026-03-04T08:00:00Z step 1/90 loss 3.1\n" * 2)
    (tmp_path / "dmesg").mkdir()
    (tmp_path / "dmesg" / "n1.txt").write_text(
        f"2026-03-04T08:05:00+00:00 n1 kernel: NVRM: Xid ({DEVICE}): 48, pid=7, name=python3, DBE"
        " (double bit error): Uncorrectable ECC error\n"
    )
    for name in names.split():
        (tmp_path / "before").mkdir(exist_ok=True)
        (tmp_path / "before" / f"{name}.{end}").write_text("index, uuid, pci.bus_id\n" + "".join(
            f"{at}, {UUIDS[n]}, 00000000:{BUSES[n].upper()}:00.0\n" for at, n in enumerate(cards)
        ))  # fmt: skip
    (tmp_path / "metrics.prom").write_text("\n".join(
        f'accelerator_nvidia_{name}{{uuid="{uuid}",instance="{host}:15132"}} {value} '
        f"{1772611200000 + 30_000 * n}"
        for host in ("n1", "n2") for uuid in UUIDS for n in range(14)
        for name, value in (
            ("power_current_usage_milli_watts", 300_000),
            ("ecc_volatile_total_uncorrected", int(n > 10 and (host, uuid) == ("n1", UUIDS[2]))),
        )
    ) + "\n")  # fmt: skip
    (tmp_path / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        "42|train|FAILED|1:0|2026-03-04T08:00:00|2026-03-04T08:06:00|n[1-2]\n"
    )
    verdict = diagnose(collect(Request((str(tmp_path),))))
    (place,) = verdict.culprits
    assert (verdict.code, place.host) == ("B2", "n1")
    return place.gpu, place.device


@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_the_index_of_a_card_by_a_list_in_a_file_named_after_its_host(
    tmp_path: Path, ending: str
) -> None:
    """nvidia-smi's, of index, UUID and address, as a script writes it before the job."""
    assert by_gpud(tmp_path, range(4), end=ending) == ("2", DEVICE)


@pytest.mark.parametrize(("cards", "names"), [(range(1, 4), "n1 n2"), (range(4), "n2 a b")])
def test_a_list_of_some_cards_or_of_another_host(
    tmp_path: Path, cards: range, names: str
) -> None:  # fmt: skip
    """A job that was given some of the cards sees these counted from 0."""
    assert by_gpud(tmp_path, cards, names)[0] in (None, UUIDS[2])
