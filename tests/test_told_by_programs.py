"""What darknet, XGBoost, TensorFlow, zsh, Lua and cupy say of a run, and what looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HEAD = "Traceback (most recent call last):\n"


def said(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def region(layer: int, value: str, other: str, count: int) -> str:
    return (f"Region {layer} Avg IOU: {value}, Class: {value}, Obj: {value}, No Obj: {other},"
            f" .5R: {value}, .75R: 0.000000,  count: {count}\n")  # fmt: skip


def darknet(step: int, took_s: float, loaded_s: float) -> str:
    text = f" {step}: 1.{step:05d}, 1.2 avg loss, 0.001000 rate, {took_s:.6f} seconds, {step * 64}"
    slow = " - performance bottleneck on CPU or Disk HDD/SSD" if loaded_s > 0.1 else ""
    return f"{text} images, 9.1 hours left\nLoaded: {loaded_s:.6f} seconds{slow}\n"


def frames(*frames: tuple[str, str, str]) -> str:
    return HEAD + "".join(
        f'  File "{f}", line 7, in {name}\n    {code}\n' for f, name, code in frames
    )


def stack(*rows: str) -> str:
    return "stack traceback:\n" + "".join(f"\t{row}\n" for row in rows)


LUAJIT = "/opt/torch/install/bin/luajit: "
MAIN = ("main.lua:40: in main chunk", "[C]: in function 'dofile'")
LIBRARY = "/opt/torch/install/share/lua/5.1/cudnn/convert.lua"


@pytest.mark.parametrize(
    ("text", "code", "fault_class"),
    [
        (region(82, "nan", "nan", 2) + region(94, "-nan", "nan", 0), "E1", "non-finite"),
        ("".join(darknet(n, 0.3, 2.4) for n in range(1, 20)), "D1", "loader"),
        ("epoch 0\n[1]    4711 killed     python train.py --big\n", "A2", "kill-unknown"),
        ("[09:00:01] load part 0 of 2\nToo many nodes went down and we cannot recover..\n",
         "C5", None),
        ("go on from the last checkpoint\nERROR:tensorflow:Couldn't match files for checkpoint"
         " /runs/b/model.ckpt-900\n", "E2", "empty"),
        (frames(("train.py", "main", "saver.restore(sess, latest)"),
                ("/venv/tensorflow/python/training/saver.py", "restore", "raise ValueError("))
         + "ValueError: Can't load save_path when it is None.\n", "E2", "empty"),
        (frames(("train.py", "<module>", "cuda.get_device(0).use()"),
                ("cupy/cuda/runtime.pyx", "cupy.cuda.runtime.setDevice", ""),
                ("cupy/cuda/runtime.pyx", "cupy.cuda.runtime.check_status", ""))
         + "cupy.cuda.runtime.CUDARuntimeError: cudaErrorUnknown: unknown error\n", "A1", "env"),
        (frames(("train.py", "<module>", "model.fit(x, y, callbacks=[keeps])"),
                ("/venv/keras/callbacks.py", "on_epoch_end", "path = self.path.format(epoch)"))
         + "AttributeError: 'File' object has no attribute 'format'\n", "A3", "code"),
        (frames(("train.py", "main", "optimizer.step()"),
                ("/venv/torch/optim/sgd.py", "step", "buf.mul_(momentum).add_(1 - damp, d_p)"))
         + "RuntimeError: invalid argument 3: sizes do not match at THC.cu:271\n",
         "E2", "size-mismatch"),
        (f"{LUAJIT}main.lua:3: module 'cunn' not found:\n\tno file './cunn.lua'\n"
         + stack("[C]: in function 'require'", *MAIN), "A1", "env"),
        (f"{LUAJIT}{LIBRARY}:59: attempt to call method 'replace' (a nil value)\n"
         + stack(f"{LIBRARY}:59: in function 'convert'", *MAIN), "A1", "env"),
        (f"Couldn't load /data/models/vgg/layers16.caffemodel\n{LUAJIT}./nets.lua:9: attempt to"
         " index local 'net' (a nil value)\n" + stack("./nets.lua:9: in function 'cut'", *MAIN),
         "A1", "asset"),
    ],
)  # fmt: skip
def test_what_is_told(tmp_path: Path, text: str, code: str, fault_class: str | None) -> None:
    found = said(tmp_path, text)
    assert (found.code, found.fault_class) == (code, fault_class)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # a layer without objects to judge prints nan in sound runs
        (region(82, "0.71", "0.003", 3) + region(106, "-nan", "0.002", 0), "E1"),
        # a tenth of a second, behind a longer step; once among many
        ("".join(darknet(n, 2.8, 0.14) for n in range(1, 20)), "D1"),
        ("".join(darknet(n, 0.3, 2.4 if n == 4 else 0.0) for n in range(1, 40)), "D1"),
        ("epoch 0\n[3]    71 killed by nobody: sample 3 of 9\n[3] 4711 steps\n", "C2"),
        (f"^C{HEAD}" + '  File "train.py", line 9, in main\n    for batch in loader:\n', "A3"),
    ],
)
def test_what_looks_like_it(tmp_path: Path, text: str, code: str) -> None:
    assert said(tmp_path, text).code != code


@pytest.mark.parametrize(
    ("code", "message", "wanted"),
    [
        ("loader = loaders_[opt.train_set]", "KeyError: \"'mine'\"", "config"),
        ("run = RUNNERS['Switcher'](args)", "KeyError: 'Switcher'", "config"),
        ("text = batch[args.column]", "KeyError: 'text'", "data"),
        ("raise NameError('data root does not exist')", "NameError: data root does not exist",
         "data"),
        ("out = flash_attn_func(q, k, v)", "NameError: name 'flash_attn_func' is not defined",
         "env"),
        ("out = attend(q, k, v)", "NameError: name 'attend' is not defined", "config"),
        ("vgg = mx.nd.load(path)", "mxnet.base.MXNetError: [23:41:16] src/io/local_filesys.cc:149:"
         " Check failed: allow_null  LocalFileSystem: fail to open \"vgg-0001.params\"", "asset"),
        ("AutoModel.from_pretrained(name)", "OSError: Unable to load weights from pytorch"
         " checkpoint file. If you tried to load a TF 2.0 one, please set from_tf=True.", "asset"),
    ],
)  # fmt: skip
def test_whose_thing_is_to_be_changed(
    tmp_path: Path, code: str, message: str, wanted: str
) -> None:
    found = said(tmp_path, frames(("train.py", "main", code)) + message + "\n")
    assert (found.code, found.fault_class) == ("A1", wanted)


def test_a_name_that_is_absent_where_a_checkpoint_is_read(tmp_path: Path) -> None:
    """The program has a fault, but it may be in how it goes on (E2): never surely A1."""
    text = frames(("train.py", "main", "found = {k: v for k in ckpt['model'] if k in wanted}"))
    found = said(tmp_path, text + "NameError: name 'wanted' is not defined\n")
    assert found.confidence < 0.8


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # Hydra's usual output: both of its lines name no call, and neither outweighs the other
        ("Error executing job with overrides: []\nError in call to target 'app.Net':\n"
         "TypeError(\"Net.__init__() got an unexpected keyword argument 'widht'\")\n"
         "full_key: model\n", "A1"),
        # a module system's own Lua, of which nothing is known to have come
        ("/usr/bin/lua: /usr/share/lmod/lmod/libexec/Cache.lua:341: bad argument #1 to 'pairs'\n"
         "loading\n", "undetermined"),
        # a search that goes on to its next trial
        ("[W 2026-03-04 10:00:00] Trial 3 failed with FloatingPointError('Loss became infinite or"
         " NaN at iteration=412!').\nbest trial: 7\n", "undetermined"),
        # NCCL goes another way
        ("n1:7:9 [0] graph/topo.h:230 NCCL WARN Could not find NET with id 0\n"
         "ModuleNotFoundError: No module named 'einops'\n", "A1"),
        (frames(("train.py", "main", "save(ckpt_args['max_epochs'])"))
         + "KeyError: 'max_epochs'\n", "A1"),
        (frames(("prepare.py", "main", "Image.fromarray(x).save(out / f'{name}_{step}.png')"))
         + "OSError: cannot write mode F as PNG\n", "A1"),
    ],
)  # fmt: skip
def test_near_misses_of_what_is_told(tmp_path: Path, text: str, code: str) -> None:
    found = said(tmp_path, text)
    assert (found.code or found.state) == code


GRAPH = "gpu5:77:91 [0] graph/search.cc:731 NCCL WARN XML Import Channel : dev {} not found.\n"
SYSTEM = (
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled"
    " system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.19.4\n"
)
BARRIER = frames(("/w/fit.py", "begin", "dist.barrier()"))
SCRIPT = "steps/nnet3/get_egs.sh: "
STATUS = (
    frames(("steps/libs/common.py", "execute_command", "p.returncode, command))"))
    + "Exception: Command exited with status 1: steps/nnet3/get_egs.sh --cmd run.pl data/t exp/t\n"
)
WENT_ON = "".join(f"step {n}/400 loss {3 - n / 200:.3f}\n" for n in range(1, 60))


@pytest.mark.parametrize(
    ("text", "code", "fault_class"),
    [
        (GRAPH.format(6) + BARRIER + SYSTEM, "A1", "config"),
        (BARRIER + SYSTEM, "C1", None),
        (GRAPH.format(6) + WENT_ON, None, None),
        (SCRIPT + "Number of utterances is very small. Please check your data.\n" + STATUS,
         "A1", "data"),
        (SCRIPT + "number of utterances 96 in your training data is too small versus"
         " --num-utts-subset=300\n" + STATUS, "A1", "data"),
        (SCRIPT + "Holding out 300 utterances in validation set, out of total 9120.\n" + STATUS,
         "A1", "config"),
    ],
    ids=["an absent GPU", "any system error", "it went on", "few", "few, of older scripts",
         "enough"],
)  # fmt: skip
def test_what_stands_above_an_error_that_names_no_reason(
    tmp_path: Path, text: str, code: str | None, fault_class: str | None
) -> None:
    verdict = said(tmp_path, text)

    assert (verdict.code, verdict.fault_class) == (code, fault_class)


NOT_READY = (
    "srun: job 4711 has been allocated resources\n"
    "srun: error: Nodes gpu-dy-[3-4] are still not ready\n"
    "srun: error: Something is wrong with the boot of the nodes.\n"
)
TRAINS = frames(
    ("/t/train_network.py", "<module>", "trainer.train(args)"),
    ("/t/train_network.py", "train", "group.cache_latents(vae)"),
    ("/t/library/train_util.py", "cache_latents", "{}"),
)
CACHING = "caching latents.\n  4%|4   | 1/24 [00:01<00:40,  1.78s/it]\n"
LATENTS = CACHING + TRAINS.format('raise RuntimeError(f"NaN detected in latents: {path}")')
SHARED = (
    "[2026-03-04 19:03:11] Traceback (most recent call last):\n"
    '[2026-03-04 19:03:11]   File "/w/data.py", line 18, in load\n'
    "[2026-03-04 19:03:11]     data = StreamingDataset(streams=streams)\n"
    '[2026-03-04 19:03:11]   File "/w/shm.py", line 104, in __init__\n'
    "[2026-03-04 19:03:11]     self._fd = _posixshmem.shm_open(\n"
    "[2026-03-04 19:03:11] FileExistsError: [Errno 17] File exists: '/000002_next_epoch'\n"
)
PLUGIN = (
    "n3:9:20 [0] net.cc:537 NCCL WARN Error: network AWS Libfabric not found.\n"
    "[rank0]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:318, invalid usage"
    " (run with NCCL_DEBUG=WARN for details), NCCL version 2.21.5\n"
    "[rank0]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n"
)


@pytest.mark.parametrize(
    ("text", "code", "fault_class"),
    [
        (NOT_READY, "F4", None),
        (NOT_READY + WENT_ON, None, None),
        (LATENTS + "RuntimeError: NaN detected in latents: /d/7.png\n", "A1", "config"),
        (CACHING + TRAINS.format("raise RuntimeError(path)") + "RuntimeError: /d/7.png\n",
         "A1", "config"),
        (SHARED, "A1", "env"),
        (PLUGIN, "A1", "env"),
    ],
    ids=["nodes that do not boot", "one that did later", "latents", "caching them",
         "shared memory that was left", "a plug-in that is not there"],
)  # fmt: skip
def test_what_is_told_before_any_step(
    tmp_path: Path, text: str, code: str | None, fault_class: str | None
) -> None:
    verdict = said(tmp_path, text)

    assert (verdict.code, verdict.fault_class) == (code, fault_class)
