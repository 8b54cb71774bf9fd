"""Formats that are tables of rules: what each line says, and what looks like progress and is none.

The lines have the shape their framework's source gives them; numbers are invented.
"""

from __future__ import annotations

import math
import re
from types import ModuleType
from typing import Any

import pytest

from flatline.model import Progress
from flatline.parsers import (
    cosmos,
    detectron2,
    estimator,
    fairseq,
    imagenet,
    lerobot,
    line_formats,
    mindspore,
    nanotron,
    open_clip,
    openmmlab,
    paddle,
    paxml,
    tf_cnn_benchmarks,
    timm,
    torchtitan,
    vits,
    yolact,
)


def said(module: ModuleType, *lines: str) -> list[Progress]:
    reader = module.Reader()
    values: list[Progress] = []
    for line in lines:
        found = list(reader.feed(line))
        assert not found or any(re.search(t, line) for t in module.TRIGGERS), line
        values += found
    return values


def shown(value: Progress) -> dict[str, Any]:
    """What a value says, without what it does not say."""
    named = {name: getattr(value, name) for name in value.__dataclass_fields__}
    silent = {None, "loss", False}
    return {k: v for k, v in named.items() if v not in silent and not (k == "falling" and v)}


TRAINING: list[tuple[ModuleType, str, dict[str, Any]]] = [
    (
        cosmos,
        "[05-11 08:14:02|INFO|cosmos/callbacks/iter_speed.py:80:every_n_impl] 1200 : iter_speed"
        " 4.37 seconds per iteration | Loss: 0.1873",
        {"step": 1200, "loss": 0.1873, "step_s": 4.37},
    ),
    (
        cosmos,
        "[05-11 07:02:51|INFO|cosmos/callbacks/iter_speed.py:61:on_training_step_end] Iteration 7:"
        " Hit counter: 7/50 | Loss: 0.9120 | Time: 6.02s",
        {"step": 7, "loss": 0.912, "step_s": 6.02},
    ),
    (
        yolact,
        "[  1]    2320 || B: 5.502 | C: 3.061 | M: 7.964 | S: 1.079 | T: 17.606 || ETA: 2 days, "
        "11:09:36 || timer: 2.141",
        {"step": 2320, "epoch": 1.0, "loss": 17.606, "step_s": 2.141},
    ),
    (
        lerobot,
        "INFO 2026-06-12 10:53:24 ot_train.py:357 step:400 smpl:13K ep:40 epch:1.01 loss:2.215"
        " grdn:49.836 lr:1.0e-05 updt_s:0.504 data_s:0.083",
        {"step": 400, "epoch": 1.01, "loss": 2.215, "grad_norm": 49.836, "lr": 1e-05,
         "step_s": 0.587, "data_s": 0.083},
    ),
    (
        lerobot,
        "INFO 2026-06-12 11:00:42 ot_train.py:357 step:1K smpl:38K ep:121 epch:3.04 loss:1.019"
        " grdn:32.912 lr:1.0e-05 updt_s:0.500 data_s:0.081",
        {"epoch": 3.04, "loss": 1.019, "grad_norm": 32.912, "lr": 1e-05, "step_s": 0.581,
         "data_s": 0.081},
    ),
    (
        open_clip,
        "2023-06-29,15:45:36 | INFO | Train Epoch: 2 [ 27371/109484 (25%)] Loss: 0.97884 (1.023)"
        " Data (t): 0.158 Batch (t): 0.559, 36.0876/s LR: 0.000001 Logit Scale: 99.995 - V4",
        {"epoch": 2.25, "loss": 0.97884, "lr": 1e-06, "step_s": 0.559, "data_s": 0.158},
    ),
    (
        tf_cnn_benchmarks,
        "40\timages/sec: 311.7 +/- 1.4 (jitter = 6.3)\t7.912",
        {"step": 40, "throughput": 311.7, "throughput_unit": "images/s", "loss": 7.912},
    ),
    (
        tf_cnn_benchmarks,
        "[1,2]<stdout>:40\timages/sec: 311.7 +/- 1.4 (jitter = 6.3)\tnan\t0.001\t0.005",
        {"step": 40, "throughput": 311.7, "throughput_unit": "images/s", "loss": math.nan},
    ),
    (vits, "INFO:freevc:Train Epoch: 1515 [70%]", {"epoch": 1515.0}),
    (
        imagenet,
        "Epoch: [5][ 40/40]\tTime  0.258 ( 0.237)\tData  0.254 ( 0.233)\t"
        "Loss 2.7358e-03 (3.9559e-03)\tAcc@1 100.00 (100.00)",
        {"step": 240, "epoch": 5.0, "loss": 2.7358e-03, "step_s": 0.258, "per_epoch": 40,
         "data_s": 0.254},
    ),
    (
        imagenet,
        "[2026-03-01 10:00:00 swin_tiny] (main.py 226): INFO Train: [2/300][10/1251]\t"
        "eta 0:05:01 lr 0.000021\t wd 0.0500\ttime 0.2431 (0.2500)\tloss 6.8 (6.9)\t"
        "grad_norm 1.5 (inf)\tloss_scale 65536.0 (65536.0)\tmem 9000MB",
        {
            "step": 2512, "epoch": 2.0, "loss": 6.8, "grad_norm": 1.5, "lr": 2.1e-05,
            "step_s": 0.2431, "planned": 375_300, "epochs": 300.0, "per_epoch": 1251,
        },
    ),
    (
        imagenet,
        "Epoch: [2]  [  10/5004]  eta: 0:10:00  lr: 0.1  img/s: 250.0  loss: 6.5 (6.75)  "
        "acc1: 0.0 (0.1)  time: 0.5  data: 0.125  max mem: 5000",
        {
            "step": 10_018, "epoch": 2.0, "loss": 6.5, "lr": 0.1, "step_s": 0.5,
            "throughput": 250.0, "throughput_unit": "images/s", "per_epoch": 5004,
            "data_s": 0.125,
        },
    ),
    (
        timm,
        "Train: 3 [ 600/1251 ( 48%)]  Loss: 6.31 (6.42)  Time: 0.520s, 1969.23/s  "
        "(0.531s, 1928.40/s)  LR: 5.000e-04  Data: 0.012 (0.020)",
        {
            "step": 4353, "epoch": 3.0, "loss": 6.31, "lr": 5e-4, "step_s": 0.52,
            "throughput": 1969.23, "throughput_unit": "images/s", "per_epoch": 1251,
            "data_s": 0.012,
        },
    ),
    (
        torchtitan,
        "[titan] 2026-03-01 10:00:00,000 - root - INFO - step: 10  loss:  8.1250  grad_norm:  "
        "1.5000  memory:  9.40GiB(12.00%)  tps: 12,345  tflops: 100.25  mfu: 32.10%",
        {
            "step": 10, "loss": 8.125, "grad_norm": 1.5,
            "throughput": 12345.0, "throughput_unit": "tokens/s/GPU",
        },
    ),
    (
        torchtitan,
        "step: 10  loss:  8.1250  memory:  9.40GiB(12.00%)  tps: 12  data_loading: 2.639s",
        {
            "step": 10, "loss": 8.125, "data_s": 2.639,
            "throughput": 12.0, "throughput_unit": "tokens/s/GPU",
        },
    ),
    (
        torchtitan,
        "step: 10  loss:  8.1250  memory:  9.40GiB(12.00%)  tps: 12  data: 2.6samples data 3 s/it",
        {
            "step": 10, "loss": 8.125, "throughput": 12.0, "throughput_unit": "tokens/s/GPU",
        },
    ),
    (
        nanotron,
        "03/01/2026 10:00:00 [INFO|DP=0|PP=0|TP=0|n1]: iteration: 5 / 100 | consumed_tokens: 1.31M"
        " | elapsed_time_per_iteration_ms: 1.25K | tokens_per_sec: 210K | tokens_per_sec_per_gpu:"
        " 26.2K | global_batch_size: 256 | lm_loss: 10.8 | lr: 0.0003 | model_tflops_per_gpu: 120"
        " | hardware_tflops_per_gpu: 120 | grad_norm: 2.5",
        {
            "step": 5, "planned": 100, "loss": 10.8, "loss_name": "lm_loss", "grad_norm": 2.5,
            "lr": 3e-4, "step_s": 1.25, "throughput": 210e3, "throughput_unit": "tokens/s",
        },
    ),
    (
        nanotron,
        "03/01/2026 10:00:00 [INFO|DP=0|PP=0|TP=0|n1]: iteration: 7 / 100 | consumed_tokens: 2.1M"
        " | elapsed_time_per_iteration_ms: 3.15e+04 | tokens_per_sec: 8.3K | lm_loss: 9.9",
        {
            "step": 7, "planned": 100, "loss": 9.9, "loss_name": "lm_loss", "step_s": 31.5,
            "throughput": 8300.0, "throughput_unit": "tokens/s",
        },
    ),
    (
        fairseq,
        "2026-03-01 10:00:00 | INFO | train_inner | epoch 002:     10 / 500 loss=15.125, ppl=3,"
        " wps=12000, ups=2.5, wpb=4800, bsz=64, num_updates=510, lr=1.0625e-05, gnorm=6.5,"
        " train_wall=2, gb_free=10.2, wall=40",
        {
            "step": 510, "epoch": 2.0, "loss": 15.125, "grad_norm": 6.5, "lr": 1.0625e-05,
            "step_s": 0.4, "throughput": 12000.0, "throughput_unit": "words/s", "per_epoch": 500,
        },
    ),
    (
        fairseq,
        '[2026-03-01 10:00:00,000][train_inner][INFO] - {"epoch": 3, "update": 2.4, "loss": "nan",'
        ' "ppl": "9", "wps": "800.5", "ups": "0.5", "num_updates": "700", "lr": "0.0005",'
        ' "gnorm": "inf", "clip": "100"}',
        {
            "step": 700, "epoch": 3.0, "loss": math.nan, "grad_norm": math.inf, "lr": 5e-4,
            "step_s": 2.0, "throughput": 800.5, "throughput_unit": "words/s",
        },
    ),
    (
        fairseq,
        "2026 | INFO | train | epoch 003 | loss nan | nll_loss nan | ppl nan | num_updates 1500",
        {"step": 1500, "epoch": 3.0, "loss": math.nan},
    ),
    (
        fairseq,
        '[2026][train][INFO] - {"epoch": 61, "train_loss": "nan", "train_num_updates": "18384"}',
        {"step": 18384, "epoch": 61.0, "loss": math.nan},
    ),
    (
        detectron2,
        "[03/01 10:00:00 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 1.25  loss_cls:"
        " 0.5  loss_box_reg: 0.75    time: 0.3125  last_time: 0.3  data_time: 0.01"
        "  last_data_time: 0.002   lr: 0.00025  max_mem: 2000M",
        {"step": 19, "loss": 1.25, "loss_name": "total_loss", "lr": 2.5e-4, "step_s": 0.3125,
         "data_s": 0.01},
    ),
    (
        detectron2,
        "2019-03-01 10:00:00,197 maskrcnn_benchmark.trainer INFO: eta: 9:09:41  iter: 720  loss:"
        " 0.8300 (0.9100)  loss_box_reg: 0.0890 (0.0990)  time: 0.3125 (0.3500)  data: 0.0100"
        " (0.0120)  lr: 0.002500  max mem: 5215",
        {"step": 720, "loss": 0.83, "lr": 0.0025, "step_s": 0.3125, "data_s": 0.01},
    ),
    (
        openmmlab,
        "2026/03/01 10:00:00 - mmengine - INFO - Epoch(train)  [2][  50/1000]  base_lr: 1.0e-02 "
        "lr: 1.0000e-02  eta: 0:30:00  time: 0.2500  data_time: 0.0100  memory: 4000  "
        "grad_norm: 3.5000  loss: 1.7500  loss_cls: 1.0000  loss_bbox: 0.7500",
        {
            "step": 1050, "epoch": 2.0, "loss": 1.75, "grad_norm": 3.5, "lr": 0.01,
            "step_s": 0.25, "per_epoch": 1000, "data_s": 0.01,
        },
    ),
    (
        openmmlab,
        "2026/03/01 10:30:00 - mmengine - INFO - Epoch(train)  [2][ 200/200]  lr: 2.0000e-03  "
        "eta: 0:00:00  time: 0.1237  data_time: 0.1226  loss: 0.2495",
        {
            "step": 400, "planned": 400, "epoch": 2.0, "epochs": 2.0, "per_epoch": 200,
            "loss": 0.2495, "lr": 0.002, "step_s": 0.1237, "data_s": 0.1226,
        },
    ),
    (
        openmmlab,
        "2026-03-01 10:00:00,000 - mmseg - INFO - Iter [50/80000]\tlr: 9.994e-03, eta: 5:00:00,"
        " time: 0.500, data_time: 0.010, memory: 9000, decode.loss_ce: 2.0, loss: 2.5",
        {"step": 50, "planned": 80_000, "loss": 2.5, "lr": 9.994e-03, "step_s": 0.5,
         "data_s": 0.01},
    ),
    (
        paddle,
        "[2026/03/01 10:00:00] ppcls INFO: [Train][Epoch 2/20][Iter: 10/100]lr(LinearWarmup): "
        "0.01000000, top1: 0.1, CELoss: 6.5, loss: 6.5, batch_cost: 0.25000s, reader_cost: 0.1,"
        " ips: 256.0 samples/s, eta: 0:08:00",
        {
            "step": 110, "planned": 2000, "epoch": 2.0, "epochs": 20.0, "per_epoch": 100,
            "loss": 6.5, "lr": 0.01, "step_s": 0.25, "data_s": 0.1,
            "throughput": 256.0, "throughput_unit": "samples/s",
        },
    ),
    (
        paddle,
        "[03/01 10:00:00] ppdet.engine INFO: Epoch: [1] [  20/1000] learning_rate: 0.001000 "
        "loss_xy: 0.5 loss: 40.5 eta: 1:00:00 batch_cost: 0.5 data_cost: 0.01 ips: 16.0 images/s",
        {
            "step": 1020, "epoch": 1.0, "per_epoch": 1000, "loss": 40.5, "lr": 0.001,
            "step_s": 0.5, "data_s": 0.01, "throughput": 16.0, "throughput_unit": "samples/s",
        },
    ),
    (
        paddle,
        "[2023-03-25 02:54:48 INFO   ] trainer:__train_epoch:359 - Train epoch: [29/200], batch:"
        " [4800/9238], loss: 12.4, learning_rate: 0.0001, reader_cost: 0.11, batch_cost: 0.15,"
        " ips: 60.2 speech/sec, eta: 4 days, 20:53:43",
        {
            "step": 263464, "planned": 1847600, "epoch": 29.0, "epochs": 200.0,
            "per_epoch": 9238, "loss": 12.4, "lr": 0.0001, "step_s": 0.15, "data_s": 0.11,
            "throughput": 60.2, "throughput_unit": "samples/s",
        },
    ),
    (
        mindspore,
        "2026-03-01 10:00:00,000 - mindformers - INFO - { Epoch:[  1/  5], step:[   10/  100], "
        "loss: 10.625, per_step_time: 312ms, lr: 1e-05, overflow cond: False, loss_scale: 65536.0",
        {
            "step": 10, "planned": 500, "epoch": 1.0, "epochs": 5.0, "per_epoch": 100,
            "loss": 10.625, "lr": 1e-05, "step_s": 0.312,
        },
    ),
    (
        mindspore,
        "epoch: 2 step: 5, loss is 0.0625",
        {"epoch": 2.0, "loss": 0.0625},
    ),
    (
        estimator,
        "INFO:tensorflow:loss = 7.875, step = 100 (4.125 sec)",
        {"step": 100, "loss": 7.875},
    ),
    (
        paxml,
        "[PAX STATUS] step_i: 100, training loss: 6.375",
        {"step": 100, "loss": 6.375},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("module", "line", "fields"), TRAINING)
def test_a_training_line(module: ModuleType, line: str, fields: dict[str, Any]) -> None:
    """Every field it carries, and none it does not."""
    (value,) = said(module, line)
    assert {k: repr(v) for k, v in shown(value).items()} == {
        k: repr(v) for k, v in {"kind": "train", **fields}.items()
    }


@pytest.mark.parametrize(("module", "line", "fields"), TRAINING)
def test_the_format_of_the_framework_is_asked_first(
    module: ModuleType, line: str, fields: dict[str, Any]
) -> None:
    """Generic formats would read some of these lines too, and know less of them."""
    asked = (f for f in line_formats() if any(re.search(t, line) for t in f.TRIGGERS))
    first = next(f for f in asked if list(f.Reader().feed(line)))
    assert first.FORMAT == module.FORMAT


@pytest.mark.parametrize(
    ("module", "line", "fields"),
    [
        (imagenet, "Test: [10/79]\tTime  0.1 ( 0.1)\tLoss 1.5e+00 (1.6e+00)\tAcc@1  50.0 ( 50.0)",
         {"kind": "eval", "loss": 1.5}),
        (imagenet, "=> loaded checkpoint 'm.pth.tar' (epoch 30)",
         {"kind": "checkpoint_loaded", "epoch": 30.0}),
        (imagenet, "=> no checkpoint found at 'm.pth.tar'", {"kind": "fresh"}),
        (timm, "Test: [  78/78]  Time: 0.051 (0.1)  Loss:  1.25 ( 1.5)  Acc@1: 70.0 ( 68.0)",
         {"kind": "eval", "loss": 1.25}),
        (timm, "Scheduled epochs: 310. LR stepped per epoch.", {"kind": "plan", "epochs": 310.0}),
        (timm, "*** Best metric: 78.5 (epoch 305)", {"kind": "finished", "epoch": 305.0}),
        (torchtitan, "[titan] validate step: 20  loss:  7.5000  memory:  9.40GiB(12.00%)  tps: 9",
         {"kind": "eval", "step": 20, "loss": 7.5}),
        (torchtitan, "Trainer is initialized with local batch size 8, global batch size 64, "
         "gradient accumulation steps 1, sequence length 2048, total steps 1000 (warmup 200).",
         {"kind": "plan", "planned": 1000}),
        (torchtitan, "[titan] Training starts at step 1.", {"kind": "fresh", "step": 1}),
        (torchtitan, "Finished saving the checkpoint in 5.5 seconds.",
         {"kind": "checkpoint_saved"}),
        (fairseq, "2026 | INFO | valid | epoch 002 | valid on 'v' subset | loss 9.5 | ppl 724 |"
         " num_updates 1000", {"kind": "eval", "epoch": 2.0, "loss": 9.5, "step": 1000}),
        (fairseq, "Saved checkpoint checkpoints/checkpoint1.pt (epoch 1 @ 500 updates, score 12.5)"
         " (writing took 1.5 seconds)",
         {"kind": "checkpoint_saved", "epoch": 1.0, "step": 500}),
        (fairseq, "Loaded checkpoint c/checkpoint_last.pt (epoch 3 @ 1000 updates)",
         {"kind": "checkpoint_loaded", "epoch": 3.0, "step": 1000}),
        (fairseq, "No existing checkpoint found c/checkpoint_last.pt", {"kind": "fresh"}),
        (fairseq, "fairseq_cli.train | done training in 12.5 seconds", {"kind": "finished"}),
        (detectron2, "[d2.engine.train_loop]: Starting training from iteration 0",
         {"kind": "fresh"}),
        (detectron2, "Starting training from iteration 5000", {"kind": "resume", "step": 5000}),
        (detectron2, "[fvcore.common.checkpoint]: Saving checkpoint to out/model_0000299.pth",
         {"kind": "checkpoint_saved", "step": 299}),
        (openmmlab, "mmdet - INFO - workflow: [('train', 1)], max: 12 epochs",
         {"kind": "plan", "epochs": 12.0}),
        (openmmlab, "Epoch(val)  [1][50/50]    coco/bbox_mAP: 0.2500  time: 0.1",
         {"kind": "eval"}),
        (openmmlab, "resumed epoch: 3, iter 3000",
         {"kind": "resume", "epoch": 3.0, "step": 3000}),
        (paddle, "[Eval][Epoch 1][Iter: 0/50]CELoss: 5.5, loss: 5.5, top1: 0.1",
         {"kind": "eval", "epoch": 1.0, "loss": 5.5}),
        (estimator, "INFO:tensorflow:Loss for final step: 0.0625.", {"kind": "finished"}),
        (estimator, "INFO:tensorflow:Restoring parameters from /m/model.ckpt-100",
         {"kind": "checkpoint_loaded", "step": 100}),
    ],
)  # fmt: skip
def test_what_is_no_training_step(module: ModuleType, line: str, fields: dict[str, Any]) -> None:
    """Evaluations, plans, checkpoints, beginnings and ends."""
    (value,) = said(module, line)
    assert shown(value) == fields


@pytest.mark.parametrize(
    ("module", "line"),
    [
        (imagenet, "Epoch: [5] Total time: 0:01:00"),
        (imagenet, "Epoch: [0/90][10/5005] is the format"),
        (torchtitan, "step: 10  loss: 2.5"),
        (torchtitan, "Training starts at step 1001."),
        (fairseq, "train | epoch 001 | loss 9.5 | num_updates 500 | lr 1e-05"),
        (fairseq, "epoch 001:     10 / 500 warming up"),
        (detectron2, "iter: 19 of the dataset was dropped"),
        (openmmlab, "Saving checkpoint at 3 epochs"),
        (nanotron, "iteration: 5 of 100 | skipped"),
        (paddle, "[Train][Epoch 1/20][Avg]CELoss: 6.5, loss: 6.5"),
        (estimator, "INFO:tensorflow:Saving checkpoints for 100 into /m/model.ckpt."),
        (estimator, "loss = 'mse', step = 100"),
    ],
)
def test_near_misses(module: ModuleType, line: str) -> None:
    """Summaries, intentions and lines of others."""
    assert said(module, line) == []


@pytest.mark.parametrize("text", ["-inf", "nan", "-3.5e-2", "1,234.5"])
def test_a_value_that_is_odd_is_kept(text: str) -> None:
    """Not finite, negative, with thousands commas."""
    (value,) = said(paxml, f"[PAX STATUS]: step_i: 100, training loss: {text}")
    assert repr(value.loss) == repr(float(text.replace(",", "")))


def test_a_second_loop_of_another_length_in_an_epoch_is_evaluation() -> None:
    """One function for both prints `Epoch:` in both; a new epoch's first loop trains again."""
    reader = imagenet.Reader()
    lines = (
        "Epoch: [1][5004/5005]\tLoss 2.7e+00 (3.1e+00)",
        "Epoch: [1][100/782]\tLoss 2.2e+00 (2.2e+00)",
        "Epoch: [2][0/5005]\tLoss 2.6e+00 (2.6e+00)",
    )
    said = [one for line in lines for one in reader.feed(line)]

    assert [(one.kind, one.step) for one in said] == [
        ("train", 10009), ("eval", None), ("train", 10010)
    ]  # fmt: skip


def test_an_epoch_of_no_steps_is_read() -> None:
    reader = imagenet.Reader()
    line = "Epoch: [0][0/0]\tTime  0.2 ( 0.2)\tData  0.1 ( 0.1)\tLoss 4.0 (4.0)"

    assert [said.loss for _ in range(2) for said in reader.feed(line)] == [4.0, 4.0]


def test_detectron2_is_done_where_no_time_was_left() -> None:
    """Its summary is printed after an exception as well."""
    line = "[09/02 02:43:17 d2.utils.events]:  eta: {}  iter: 299  total_loss: 0.3553  time: 1.25"
    end = "[09/02 02:43:17 d2.engine.hooks]: Overall training speed: 298 iterations in 0:06:13"
    assert [v.kind for v in said(detectron2, line.format("0:00:00"), end)] == ["train", "finished"]
    assert [v.kind for v in said(detectron2, line.format("00:00"), end)] == ["train", "finished"]
    for left in ("0:04:02", "1:00:00", "00:01"):
        assert [v.kind for v in said(detectron2, line.format(left), end)] == ["train"]


def test_the_first_line_of_an_epoch_of_openclip_is_one_step() -> None:
    """Its samples are those of a step; a log that begins later numbers none."""
    line = (
        "Train Epoch: {} [ {}/9600 (1%)] Data (t): 0.1 Batch (t): 0.5, 9/s LR: 0.1 Loss: 2.5 (2.5)"
    )
    counted = said(
        open_clip, "Start epoch 1", line.format(1, 64), line.format(1, 704), line.format(2, 64)
    )
    assert [(value.step, value.per_epoch) for value in counted] == [
        (151, 150),
        (161, 150),
        (301, 150),
    ]
    assert [value.step for value in said(open_clip, line.format(1, 704))] == [None]


def test_the_losses_that_a_voice_is_named_after_are_of_the_epoch_above() -> None:
    """Of those of a generator and its judge one is meant to fall."""
    losses = "INFO:v:loss_disc=3.41, loss_gen=3.02, loss_fm=9.71,loss_mel={}, loss_kl=1.22"
    told = said(vits, "INFO:v:Train Epoch: 7 [40%]", losses.format(21.5), losses.format("nan"))

    assert [(one.epoch, one.loss_name) for one in told[1:]] == [(7.0, "loss_mel")] * 2
    assert told[1].loss == 21.5
    assert math.isnan(told[2].loss or 0.0)
