"""One host whose software does not fit, where every host has a log of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Place, Verdict

NODES = ("tr-a11", "tr-a12", "tr-a13", "tr-a14")
START = "[{host}] launching task {n} at 10:00:0{n}\npython 3.11.9 on {host}\n"
PAST = "2026-05-02 10:00:1{n},204 INFO app.build: apex 0.1 and kernels are there\n"
GROUP = "2026-05-02 10:00:1{n},204 INFO rank {n}, world_size 4, on several GPUs\n"
ENDED = "slurmstepd: error: *** STEP 9.0 ON {host} CANCELLED AT 2026-05-02T10:00:31 ***\n"
MISFIT = "/opt/venv/lib/python3.11/site-packages/fused_k.so: undefined symbol: _ZN3c105ErrorC2E"
IMPORTED = f"""Traceback (most recent call last):
  File "/proj/run.py", line 7, in <module>
    from nets.block import Block
  File "/proj/nets/block.py", line 3, in <module>
    import fused_k
ImportError: {MISFIT}
"""
CALLED = f"""Traceback (most recent call last):
  File "/proj/run.py", line 90, in <module>
    main()
  File "/proj/run.py", line 71, in main
    report_to_tracker()
  File "/proj/report.py", line 12, in report_to_tracker
    import fused_k
ImportError: {MISFIT}
"""
SETTING = """Traceback (most recent call last):
  File "/proj/run.py", line 40, in <module>
    check(cfg)
  File "/proj/run.py", line 22, in check
    raise ValueError("batch size 7 is not divisible by world size 32")
ValueError: batch size 7 is not divisible by world size 32
"""
GONE = """Traceback (most recent call last):
  File "/proj/run.py", line 51, in <module>
    dist.init_process_group("nccl")
torch.distributed.DistNetworkError: failed to recv, got 0 bytes
"""


def verdict(folder: Path, raised: Mapping[str, str], others: str = PAST + ENDED) -> Verdict:
    for n, host in enumerate(NODES):
        said = START + raised.get(host, others)
        (folder / f"{host}.log").write_text(said.format(host=host, n=n))
    (folder / "sacct.txt").write_text(
        "JobID|JobName|State|ExitCode|Start|End|NodeList\n"
        "9|ft|FAILED|1:0|2026-05-02T10:00:00|2026-05-02T10:00:32|tr-a[11-14]\n"
    )
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("host", "raised", "others"),
    [
        ("tr-a13", IMPORTED, PAST + ENDED),
        ("tr-a12", CALLED, PAST + ENDED),
        ("tr-a11", IMPORTED, PAST + ENDED),
        ("tr-a14", IMPORTED, PAST + GONE),
        ("tr-a13", IMPORTED * 4, PAST + ENDED),
        ("tr-a13", IMPORTED, GROUP + ENDED),
    ],
    ids=["within", "called", "first", "last", "all-its-ranks", "past-is-a-known-line"],
)
def test_the_host_that_alone_raised_what_the_others_came_past(
    tmp_path: Path, host: str, raised: str, others: str
) -> None:
    said = verdict(tmp_path, {host: raised}, others)

    assert (said.code, said.fault_class) == ("A1", "env")
    assert (said.culprits, said.attribution) == ((Place(host=host),), "infrastructure")
    assert any("came past it" in shown.text for shown in said.shows)


@pytest.mark.parametrize(
    ("raised", "others"),
    [
        ({"tr-a13": IMPORTED}, ENDED),
        ({"tr-a13": IMPORTED}, "rendezvous: 3 of 4 are there\n" + ENDED),
        ({"tr-a13": IMPORTED}, ENDED + PAST),
        ({"tr-a13": IMPORTED, "tr-a12": PAST + IMPORTED}, PAST + ENDED),
        ({"tr-a13": IMPORTED, "tr-a12": ENDED}, PAST + ENDED),
        ({"tr-a13": PAST + IMPORTED}, PAST + ENDED),
        ({"tr-a13": "serves the reward model\n" + IMPORTED}, PAST + ENDED),
        ({"tr-a13": IMPORTED.replace("/opt/venv", "/home/u/.cache/torch_extensions")},
         PAST + ENDED),
        ({"tr-a11": CALLED}, PAST + ENDED),
        ({"tr-a14": CALLED}, PAST + ENDED),
        ({"tr-a13": SETTING}, PAST + ENDED),
    ],
    ids=["no-more-said", "waited-for-it", "said-at-the-end", "two-raised", "one-not-so-far",
         "came-as-far", "of-another-role", "built-meanwhile", "duty-of-the-first",
         "duty-of-the-last", "a-setting"],
)  # fmt: skip
def test_no_host_is_named(tmp_path: Path, raised: Mapping[str, str], others: str) -> None:
    said = verdict(tmp_path, raised, others)

    assert said.code == "A1"
    assert not any(place.host for place in said.culprits)
