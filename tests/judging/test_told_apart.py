"""Errors that look alike, told apart by where they were raised and what went before."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

SITE = "/opt/venv/lib/python3.11/site-packages/"
STEPS = "".join(f"step {n}/600 loss {3 * 0.99**n:.4f} lr 1e-4\n" for n in range(1, 41))


def read(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def raised(error: str, *frames: tuple[str, str, str]) -> str:
    lines = "".join(f'  File "{file}", line 7, in {at}\n    {code}\n' for file, at, code in frames)
    return f"Traceback (most recent call last):\n{lines}{error}\n"


ZIP = "RuntimeError: PytorchStreamReader failed reading zip archive: no central directory"
BROKEN = "BrokenPipeError: [Errno 32] Broken pipe"


@pytest.mark.parametrize(
    ("file", "code"),
    [
        (SITE + "wandb/sdk/lib/sock_client.py", "A3"),
        ("/usr/lib/python3.11/multiprocessing/connection.py", None),
    ],
)
def test_a_service_that_hangs_up(tmp_path: Path, file: str, code: str | None) -> None:
    """A run that speaks to one dies of it; a pipe to a process of its own echoes that one."""
    tail = raised(BROKEN, ("/w/train.py", "main", "log(row)"), (file, "_send", "self._s.send(b)"))

    assert read(tmp_path, STEPS + tail).code == code


@pytest.mark.parametrize(
    ("above", "code", "sure"),
    [
        ("Resuming from /ckpt/run7/last.pt", "load(path)", True),
        ("loading weights", "load('/ckpt/step_1200.pt')", True),
        ("building the model", "load(path)", False),
    ],
)
def test_a_file_of_weights_that_nothing_calls_the_runs_own(
    tmp_path: Path, above: str, code: str, sure: bool
) -> None:
    found = read(
        tmp_path,
        f"{above}\n"
        + raised(ZIP, ("/w/train.py", "main", f"state = torch.{code}"),
                 (SITE + "torch/serialization.py", "__init__", "super().__init__(reader)")),
    )  # fmt: skip

    assert (found.code, found.confidence >= 0.8) == ("E2", sure)


@pytest.mark.parametrize(
    ("above", "code"),
    [
        (
            "Downloading: https://host/model-resnet_v3.pt to ~/.cache/x.pt",
            "torch.load(path)",
        ),
        ("ready", "model.load_state_dict(torch.load('./models/v1-5.ckpt'), strict=False)"),
    ],
)
def test_a_published_file_of_weights(tmp_path: Path, above: str, code: str) -> None:
    found = read(tmp_path, f"{above}\n" + raised(ZIP, ("/w/train.py", "main", code)))

    assert (found.code, found.fault_class) == ("A1", "asset")


def test_a_look_for_a_file_that_was_made_up_for(tmp_path: Path) -> None:
    """What was raised while it was made anew is the error; the bar is that of its making."""
    looked = raised("FileNotFoundError: [Errno 2] No such file or directory: '/d/cached.pkl'",
                    ("/w/data/sets.py", "__init__", "self.data = torch.load(p)"))  # fmt: skip
    made = raised(
        "Boost.Python.ArgumentError: Python argument types in\n"
        "    rdkit.Chem.rdmolops.RemoveStereochemistry(NoneType)",
        ("/w/train.py", "get_dataloader", "data = MolSet(path)"),
        ("/w/chem.py", "smi2mol", "Chem.RemoveStereochemistry(mol)"),
    )
    bar = "  7%|██▊             | 17211/238706 [00:41<08:58, 411.02it/s]\n"
    handling = "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = read(tmp_path, bar + looked + handling + made)

    assert (found.code, found.fault_class) == ("A1", "data")


@pytest.mark.parametrize(
    ("function", "what", "code"),
    [
        ("__init__", "an illegal memory access was encountered", "A1"),
        ("__init__", "device-side assert triggered", "A3"),
        ("train_one_epoch", "an illegal memory access was encountered", "A3"),
        ("forward", "an illegal memory access was encountered", "A3"),
    ],
)
def test_a_kernel_that_fails_while_something_is_made(
    tmp_path: Path, function: str, what: str, code: str
) -> None:
    error = f"RuntimeError: CUDA error: {what}"
    found = read(
        tmp_path,
        "environment ready\n"
        + raised(error, ("/w/train.py", "main", "env = make()"),
                 ("/w/sim.py", function, "self.pos = torch.zeros(n, device=dev)")),
    )  # fmt: skip

    assert found.code == code


NCCL = "[rank1]:[E1230 09:12:01.71 ProcessGroupNCCL.cpp:{}] [Rank 1] {}\n"
EITHER = NCCL.format(
    1785,
    "Exception (either an error or timeout) detected by watchdog at work: 91, last enqueued NCCL"
    " work: 91, last completed NCCL work: 90.",
)
ASYNC = NCCL.format(
    541,
    "found async exception when checking for NCCL errors: NCCL error: remote process exited or"
    " there was a network error, NCCL version 2.22.3",
)


@pytest.mark.parametrize(("before", "timed_out"), [(ASYNC, False), ("", True)])
def test_words_for_an_error_and_a_timeout(tmp_path: Path, before: str, *, timed_out: bool) -> None:
    """ProcessGroupNCCL prints one line for both."""
    found = read(tmp_path, STEPS + before + EITHER)

    assert (found.fault_class == "straggler-timeout") is timed_out


@pytest.mark.parametrize(
    ("above", "code"),
    [
        ("", "C2"),
        ("ip-10-4-0-62:29:88 [1] misc/socket.cc:432 NCCL WARN socketFinalizeAccept: wrong magic"
         " 16900000312 != 6a31f0c2b8011d42\n", None),
    ],
)  # fmt: skip
def test_a_stranger_at_the_port(tmp_path: Path, above: str, code: str | None) -> None:
    """Who does not speak the protocol is turned away, and the run goes on."""
    closed = ("ip-10-4-0-62:29:88 [1] misc/socket.cc:50 NCCL WARN socketProgress: Connection"
              " closed by remote peer 198.51.100.35<51504>\n")  # fmt: skip

    assert read(tmp_path, STEPS + above + closed).code == code


ACCEPT = "ip-10-4-0-62:29:{} [1] proxy.cc:1494 NCCL WARN [Service thread] Accept failed Success\n"


@pytest.mark.parametrize(
    ("below", "code"),
    [(ACCEPT.format(88), None), (ACCEPT.format(97), "C2")],
    ids=["the same thread", "another"],
)
def test_a_connection_that_was_not_accepted(tmp_path: Path, below: str, code: str | None) -> None:
    """What is closed before it has said who it is was no rank's."""
    closed = ("ip-10-4-0-62:29:88 [1] misc/socket.cc:50 NCCL WARN socketProgress: Connection"
              " closed by remote peer 198.51.100.35<51504>\n"
              "ip-10-4-0-62:29:88 [1] NCCL INFO misc/socket.cc:58 -> 6\n")  # fmt: skip

    assert read(tmp_path, STEPS + closed + below).code == code


ROW = "{{'loss': {}, 'grad_norm': {}, 'learning_rate': 1.3e-06, 'epoch': 0.0{}}}\n"


@pytest.mark.parametrize(
    ("losses", "norms", "dead"),
    [
        ([0.6914] + [0.0] * 7, [3.8812] + [1.4142135623730951] * 7, True),
        ([0.6914] + [0.0] * 7, [3.8812, 1.41, 1.37, 1.22, 1.5, 1.1, 1.3, 1.2], False),
        ([0.6914] + [0.0] * 3, [3.8812] + [1.4142135623730951] * 3, False),
        ([0.0214] + [0.0] * 7, [3.8812] + [1.4142135623730951] * 7, False),
    ],
    ids=["at-once", "gradients-move", "few", "from-near-nought"],
)
def test_a_loss_that_becomes_nought_at_once(
    tmp_path: Path, losses: list[float], norms: list[float], *, dead: bool
) -> None:
    rows = [
        ROW.format(loss, norm, n)
        for n, (loss, norm) in enumerate(zip(losses, norms, strict=True), 1)
    ]

    assert (read(tmp_path, "".join(rows)).code == "E1") is dead


def test_a_scale_at_its_floor(tmp_path: Path) -> None:
    """Every step overflows and is skipped; no loss is printed."""
    row = ("[2026-02-09 13:05:{0:02d},654] [INFO] [logging.py:60:log_dist] [Rank 0] Overflow"
           " detected. Skipping step. Attempted loss scale: {1}, reducing to {2}\n")  # fmt: skip
    floor = "".join(row.format(n, 1, 1) for n in range(10, 50, 5))
    sinking = "".join(row.format(n, 2 ** (16 - n), 2 ** (15 - n)) for n in range(8))

    assert read(tmp_path, sinking + floor).code == "E1"
    assert read(tmp_path, sinking).code is None


@pytest.mark.parametrize(
    ("first", "swing", "level", "chance"),
    [
        (51_800, 0.006, 6.9090, True),
        (200, 0.006, 6.9090, False),
        (51_800, 0.06, 6.9090, False),
        (51_800, 0.006, 6.9300, False),
        (51_800, 0.006, 2.3026, False),
    ],
    ids=["late", "early", "wide", "beside", "few-classes"],
)
def test_losses_about_what_chance_gives(
    tmp_path: Path, first: int, swing: float, level: float, *, chance: bool
) -> None:
    """Of a thousand classes, thousands of steps in."""
    lines = [
        f"step {first + n}/90000 loss {level + swing * (n * 5 % 7 - 3) / 3:.6f} lr 1e-2\n"
        for n in range(14)
    ]

    assert (read(tmp_path, "".join(lines)).code == "E1") is chance


METER = "Epoch: [0][{}/5005]\tTime {:.3f} ({:.3f})\tData {:.3f} ({:.3f})\tLoss {:.4f} ({:.4f})\n"


@pytest.mark.parametrize(("every", "waits"), [(30, True), (0.2, False)])
def test_waits_that_a_line_in_two_hundred_does_not_show(
    tmp_path: Path, every: float, *, waits: bool
) -> None:
    """The running means tell of all steps; the values beside them of one each, here a quick one.
    The epoch's first batch is waited for in any case."""
    lines = []
    for n in range(0, 2001, 200):
        done = n + 1
        data = (60 + every * n / 10) / done
        quick = 60.0 if n == 0 else 0.001
        loss = 6.9 - n / 4000
        lines.append(METER.format(n, quick + 0.5, data + 0.5, quick, data, loss, loss + 0.1))

    assert (read(tmp_path, "".join(lines)).code == "D1") is waits
