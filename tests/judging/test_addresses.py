"""Which GPU a PCI address is, where something that was read says both."""

from __future__ import annotations

from pathlib import Path

import pytest

from families.fleet import facts_of, sample
from flatline.judging.addresses import NAMED, address, bus_id, carded, numbered
from flatline.judging.claims import claim
from flatline.model import Finding, LogCite, Match, Place, Signature
from flatline.tracks import COMMUNICATOR

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
