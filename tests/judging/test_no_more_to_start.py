"""What keeps a program from its first step: a library, a device, a template, a shard, a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HEAD = "Traceback (most recent call last):\n"
MAIN = '  File "/home/u/proj/start.py", line 40, in main\n    {}\n'
CHECKPOINTER = (
    '  File "/venv/lib/python3.11/site-packages/tunes/checkpointing/_io.py", line 51, in'
    ' load_checkpoint\n    raise ValueError(f"No checkpoint file found at {path}.")\n'
)
IN_A_WORKER = (
    "RuntimeError: Caught RuntimeError in DataLoader worker process 1.\nOriginal " + HEAD
    + '  File "/venv/lib/python3.11/site-packages/torchaudio/_backend/utils.py", line 116, in'
    " dispatcher\n    raise RuntimeError(text)\nRuntimeError: {}\n"
)  # fmt: skip
AUDIO = "Couldn't find appropriate backend to handle uri /corpus/fr/0001{} and format None."


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("/models/Qwen3-14B/model-00002-of-00008.safetensors", ("A1", "asset")),
        ("/data/hub/mix-7b-v2/pytorch_model-00002-of-00002.bin", ("A1", "asset")),
        ("/models/Qwen3-14B-sft/epoch_1/model-00002-of-00008.safetensors", ("E2", None)),
        ("/scratch/u/out/checkpoint-900/model-00002-of-00008.safetensors", ("E2", None)),
        ("/scratch/u/exp7/model-00002-of-00008.safetensors", ("E2", None)),
    ],
)
def test_a_shard_of_the_base_model(
    tmp_path: Path, name: str, wanted: tuple[str, str | None]
) -> None:
    """Where people keep what was published; not what a run keeps of its own."""
    said = f"ValueError: No checkpoint file found at {name}.\n"
    found = verdict(tmp_path, HEAD + MAIN.format("reader.load_checkpoint()") + CHECKPOINTER + said)
    assert (found.code, found.fault_class) == wanted


@pytest.mark.parametrize(("ending", "kind"), [(".mp3", "env"), (".wav", "env"), ("", "data")])
def test_nothing_that_reads_audio(tmp_path: Path, ending: str, kind: str) -> None:
    """A path that lost its ending may be the list's fault."""
    text = HEAD + MAIN.format("for batch in loader:") + IN_A_WORKER.format(AUDIO.format(ending))
    found = verdict(tmp_path, text)
    assert (found.code, found.fault_class) == ("A1", kind)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("ValueError: Template qwen9_think does not exist.", "config"),
        ("RuntimeError: TPU initialization failed: open(/dev/accel3): Operation not permitted",
         "env"),
        ("RuntimeError: TPU initialization failed: open(/dev/vfio/0): Permission denied", "env"),
    ],
)  # fmt: skip
def test_by_the_words_of_what_refuses(tmp_path: Path, said: str, kind: str) -> None:
    found = verdict(tmp_path, HEAD + MAIN.format("start(cfg)") + said + "\n")
    assert (found.code, found.fault_class) == ("A1", kind)


TRIED = (
    "[09:10:{:02d}] /opt/dgl/src/rpc/network/socket_communicator.cc:110: Trying to connect"
    " receiver: tcp://10.7.0.5:30050\n"
)


def gave_up(host: str) -> str:
    said = f"dgl._ffi.base.DGLError: Failed to connect to server {host}:30050 after 40 tries.\n"
    return HEAD + MAIN.format("dgl.distributed.initialize(path)") + said


def test_a_server_of_a_graph(tmp_path: Path) -> None:
    found = verdict(tmp_path, "".join(map(TRIED.format, range(40))) + gave_up("10.7.0.5"))
    assert found.code == "C1"
    assert [place.host for place in found.culprits] == ["10.7.0.5"]


def test_several_servers_name_none(tmp_path: Path) -> None:
    """Who reaches none of them may be cut off itself."""
    found = verdict(tmp_path, gave_up("10.7.0.5") + gave_up("10.7.0.6"))
    assert (found.code, found.culprits) == ("C1", ())
