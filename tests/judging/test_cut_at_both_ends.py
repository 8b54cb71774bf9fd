"""Tracebacks of which neither the end nor, it may be, the head is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

LIB = "/opt/env/lib/python3.10"
SITE = f"{LIB}/site-packages"
HEAD = "Traceback (most recent call last):\n"
STEPS = "".join(f"step {i}/5000 loss {8 - i * 0.01:.3f}\n" for i in range(0, 200, 10))


def frame(file: str, function: str, code: str) -> str:
    return f'  File "{file}", line 12, in {function}\n    {code}\n'


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


MAIN = frame("/home/u/p/train.py", "<module>", "main()")
FETCHES = frame(f"{LIB}/urllib/request.py", "do_open", "h.request(req.get_method(),") + frame(
    f"{LIB}/http/client.py", "connect", "self.sock = self._context.wrap_socket(self.sock,"
)
TRACKS = frame(f"{SITE}/requests/sessions.py", "send", "r = adapter.send(request)") + frame(
    f"{SITE}/wandb/sdk/lib/retry.py", "__call__", "result = self._call_fn(*args)"
)
SETTINGS = frame("/home/u/p/config.py", "setup", "cfg.merge_from_file(args.file)") + frame(
    f"{SITE}/yaml/constructor.py", "get_single_data", "node = self.get_single_node()"
)
MEETS = frame(
    f"{SITE}/torch/nn/parallel/distributed.py",
    "__init__",
    "_verify_param_shape_across_processes(self.process_group, parameters)",
)
RESTORES = "Restoring states from the checkpoint path at /scratch/run4/last.ckpt\n"
SHARDS = "Loading checkpoint shards: /models/seven/\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(HEAD + MAIN + FETCHES, ("A1", "asset"), id="something-fetched"),
        pytest.param(HEAD + MAIN + SETTINGS, ("A1", "config"), id="a-configuration"),
        pytest.param(HEAD + MAIN + MEETS, ("C1", None), id="the-first-of-all-collectives"),
        pytest.param(RESTORES + HEAD + MAIN, ("E2", None), id="restored-just-above"),
        pytest.param(SHARDS + HEAD + MAIN, (None, None), id="a-model-loaded-just-above"),
        pytest.param(MAIN + SETTINGS, ("A1", "config"), id="without-a-head"),
        pytest.param(MAIN, (None, None), id="frames-that-do-not-tell"),
        pytest.param(
            f"INFO saved\nStack (most recent call last):\n{MAIN}{SETTINGS}", (None, None),
            id="a-stack-that-was-listed",
        ),
        pytest.param(STEPS + HEAD + MAIN + MEETS, ("A3", None), id="after-steps"),
    ],
)  # fmt: skip
def test_by_what_was_being_done(
    tmp_path: Path, text: str, said: tuple[str | None, str | None]
) -> None:
    told = verdict(tmp_path, text)

    assert (told.code, told.fault_class) == said
    assert told.confidence < 0.8


def test_a_service_beside_the_run_is_no_asset(tmp_path: Path) -> None:
    assert verdict(tmp_path, HEAD + MAIN + TRACKS).fault_class != "asset"


NOTEBOOK = """\
{name}                                Traceback (most recent call last)
<ipython-input-5-77aa01> in <module>
----> 3 model.fit(x, y, epochs=150)

/usr/lib/python3/dist-packages/keras/engine/training.py in _standardize_user_data(self, x, y)
    620                 check_batch_axis=False,
--> 621                 exception_prefix='target')
    622
"""


@pytest.mark.parametrize(
    ("name", "code"),
    [("ValueError", "A1"), ("RuntimeError", None), ("KeyboardInterrupt", None)],
)
def test_a_notebook_names_it_at_the_head(tmp_path: Path, name: str, code: str | None) -> None:
    """What says nothing by its name, and what somebody stopped, stays open."""
    told = verdict(tmp_path, NOTEBOOK.format(name=name))

    assert (told.code, told.confidence < 0.8) == (code, True)


SPAWNED = (
    HEAD
    + frame("<string>", "<module>", "")
    + frame(f"{LIB}/multiprocessing/spawn.py", "spawn_main", "exitcode = _main(fd)")
    + frame(f"{LIB}/multiprocessing/spawn.py", "_main", "self = pickle.load(from_parent)")
)


@pytest.mark.parametrize(
    "raised", ["_pickle.UnpicklingError: pickle data was truncated", "EOFError: Ran out of input"]
)
def test_what_a_parent_did_not_hand_over_is_its_echo(tmp_path: Path, raised: str) -> None:
    assert verdict(tmp_path, f"spawning\n{SPAWNED}{raised}\n").code is None
    own = f"{HEAD}{MAIN}AttributeError: Can't pickle local object 'main.<locals>.collate'\n"
    told = verdict(tmp_path, f"spawning\n{own}{SPAWNED}{raised}\n")

    assert told.code == "A1"
    assert "Can't pickle" in told.headline


NCCL = "gpu3:212:223 [1] NCCL INFO "


def test_a_connection_lost_while_nccl_is_set_up(tmp_path: Path) -> None:
    lost = "gpu3:212:223 [1] include/socket.h:194 NCCL WARN Call to recv failed : "
    lost += "Connection reset by peer\n"
    way = f"{NCCL}transport/net_ib.cc:555 -> 2\n"
    told = verdict(tmp_path, f"{lost}{way}{NCCL}init.cc:422 -> 2\n")
    later = verdict(tmp_path, f"{STEPS}{lost}{way}{NCCL}init.cc:422 -> 2\n")
    bare = verdict(tmp_path, lost + way)

    assert (told.code, told.confidence < 0.8) == ("C1", True)
    assert "C1" not in (later.code, bare.code)
