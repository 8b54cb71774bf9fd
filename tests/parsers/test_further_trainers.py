"""darknet, Chainer, speech (ESPnet, Kaldi, icefall, WeNet, DeepSpeech, Coqui), DGL-KE, OLMo,
Marian, MXNet, tensorpack, nerfstudio, nnU-Net, StyleGAN: what their lines say, what looks
alike, and that none reads another's."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Progress, Verdict
from flatline.parsers import (
    Reported,
    chainer,
    composer,
    coqui,
    cyclegan,
    darknet,
    deepspeech,
    dglke,
    espnet,
    exits_kaldi,
    icefall,
    kaldi,
    line_formats,
    marian,
    mxnet,
    nerfstudio,
    nnunet,
    olmo,
    stylegan,
    tacotron,
    tensorpack,
    wenet,
)

HEADING = "epoch       iteration   main/loss   main/loss_ctc  validation/main/loss  elapsed_time"
TABLE = "Step (% Done)       Train Iter (time)    ETA (time)           Train Rays / Sec"
NNET3 = "LOG (nnet3-chain-train[5.5.164~1-9698]:PrintStatsForThisPhase():nnet-training.cc:342) "
OLMO = "[2024-06-11 09:40:02] INFO     [olmo.train:967, rank=0] [step={}/739328,epoch=0]"
CORE = (
    "2025-04-02 10:11:12.130\tjupiter-01.host.net:0\tolmo_core.train.callbacks.console_logger:109"
    "\tINFO\t[step=20/4000,epoch=1/2]"
)
ESPNET = (
    "[gpu04] 2023-06-02 03:11:09,287 (trainer:721) INFO: {}epoch:train:{}-{}batch:"
    " iter_time=0.012, forward_time=0.201, loss_ctc=44.1, loss_att=21.7, acc=0.61, loss={},"
    " backward_time=0.2, optim_step_time=0.031, optim0_lr0=3.120e-04, train_time=0.812"
)
LEFT_OUT = "[gpu04] 2023-06-02 03:11:09,288 (trainer:671) WARNING: The grad norm is nan. Skipping updating the model."  # noqa: E501

TRAINING: list[tuple[ModuleType, tuple[str, ...], dict[str, Any]]] = [
    (darknet, (" 912: 2.114310, 2.530112 avg loss, 0.001000 rate, 3.412 seconds, 58368 images, "
               "5.121 hours left",),
     {"step": 912, "loss": 2.530112, "loss_name": "avg loss", "lr": 0.001, "step_s": 3.412}),
    (darknet, ("31: -nan, nan avg, 0.000100 rate, 4.2 seconds, 1984 images",),
     {"step": 31, "loss": math.nan, "loss_name": "avg loss", "lr": 1e-4, "step_s": 4.2}),
    (darknet, ("2101, 1.412: 3.112, 3.541 avg, 0.1 rate, 0.5 seconds, 268928 images",),
     {"step": 2101, "epoch": 1.412, "loss": 3.541, "loss_name": "avg loss", "lr": 0.1,
      "step_s": 0.5}),
    (chainer, (HEADING,
               "3           1200        41.5071     60.1           38.25                 912.4"),
     {"step": 1200, "epoch": 3.0, "loss": 41.5071, "loss_name": "main/loss"}),
    (chainer, (HEADING,
               "3           1300        nan         inf                                  990.1"),
     {"step": 1300, "epoch": 3.0, "loss": math.nan, "loss_name": "main/loss"}),
    (espnet, (ESPNET.format(1, 101, 200, "28.413"),),
     {"step": 200, "epoch": 1.0, "loss": 28.413, "lr": 3.12e-4, "step_s": 0.812, "data_s": 0.012}),
    (espnet, (ESPNET.format(7, 101, 200, "nan"),),
     {"epoch": 7.0, "loss": math.nan, "lr": 3.12e-4, "step_s": 0.812, "data_s": 0.012}),
    (kaldi, (NNET3 + "Average objective function for 'output' for minibatches 10-19 is -0.412 over"
             " 76800 frames.",),
     {"step": 20, "loss": -0.412, "loss_name": "objective", "falling": False}),
    (kaldi, (NNET3 + "Average objective function for 'output' using 10 minibatches in  minibatch"
             " range 30-39 is -0.31 + -0.0071 = -0.3171 over 76800 frames.",),
     {"step": 40, "loss": -0.3171, "loss_name": "objective", "falling": False}),
    (kaldi, ("2019-05-01 17:12:58,991 [steps/nnet3/chain/train.py:509 - train - INFO ] Iter: "
             "12/440    Epoch: 0.16/6.0 (2.7% complete)    lr: 0.000750    ",),
     {"step": 12, "planned": 441}),
    (kaldi, ("steps/chain2/train.sh: training, iteration 3 of 8, num-jobs is 2",),
     {"step": 3, "planned": 8}),
    (icefall, ("2022-05-11 10:11:12,123 INFO [train.py:812] (0/4) Epoch 1, batch 50, "
               "loss[loss=1.1, simple_loss=2.2, pruned_loss=7.1, over 7012.00 frames. ],"
               " tot_loss[loss=1.3, over 300000.00 frames. ], batch size: 20, lr: 3.00e-03,"
               " grad_scale: 1.0",),
     {"step": 50, "epoch": 1.0, "loss": 2.2, "loss_name": "simple_loss", "lr": 0.003}),
    (dglke, ("[proc 0][Train](1000/24000) average loss: 0.4121",),
     {"step": 1000, "planned": 24000, "loss": 0.4121}),
    (marian, ("[2022-05-23 12:02:59] Ep. 2 : Up. 55000 : Sen. 8,748 : Cost 1.19 * 1,273,373 @"
              " 1,884 after 141,178,711 : Time 43.52s : 29259.25 words/s : gNorm 0.2743 : "
              "L.r. 1.6e-04",),
     {"step": 55000, "epoch": 2.0, "loss": 1.19, "loss_name": "cost", "grad_norm": 0.2743,
      "lr": 1.6e-4, "throughput": 29259.25, "throughput_unit": "words/s"}),
    (mxnet, ("INFO:root:Epoch[3] Batch [0-40]\tSpeed: 812.31 samples/sec\taccuracy=0.411"
             "\tcross-entropy=1.902",),
     {"step": 40, "epoch": 3.0, "loss": 1.902, "throughput": 812.31,
      "throughput_unit": "samples/s"}),
    (mxnet, ("INFO:root:Epoch[3] Train-cross-entropy=nan",), {"epoch": 3.0, "loss": math.nan}),
    (mxnet, ("[INFO:sockeye.training] E=1 B=150\ts/sec=412.1 tok/s=9120.4 u/s=1.1\tppl=112.4",),
     {"step": 150, "epoch": 1.0, "loss": 112.4, "loss_name": "perplexity", "throughput": 412.1,
      "throughput_unit": "samples/s"}),
    (tensorpack, ("[0312 10:11:12 @base.py:285] Epoch 4 (global_step 1872) finished, "
                  "time:41 sec.",),
     {"step": 1872, "epoch": 4.0}),
    (nerfstudio, (TABLE, "120 (0.40%)         41.250 ms            20 m, 3 s            98.12 K"),
     {"step": 120, "step_s": 0.04125}),
    (wenet, ("2023-01-30 18:47:07,107 DEBUG TRAIN Batch 4/3700 loss 12.646465 loss_att 10.921429 "
             "loss_ctc 16.671551 lr 0.00032621 rank 0",),
     {"step": 3700, "epoch": 4.0, "loss": 12.646465, "lr": 0.00032621}),
    (deepspeech, ("Epoch 3 |   Training | Elapsed Time: 0:01:12 | Steps: 34 | Loss: 45.123412",),
     {"step": 34, "epoch": 3.0}),
    (stylegan, ("tick 12    kimg 48.1     time 12m 30s      sec/tick 61.2    sec/kimg 15.62   "
                "maintenance 0.1    cpumem 5.13   gpumem 10.15",),
     {"step": 12, "throughput": 1000 / 15.62, "throughput_unit": "images/s"}),
    (cyclegan, ("(epoch: 2, iters: 400, time: 0.306, data: 0.201) G_GAN: 1.212 G_L1: 9.131 "
                "D_real: 0.612 D_fake: 0.512 ",),
     {"epoch": 2.0, "loss": 9.131, "loss_name": "G_L1"}),
    (tacotron, ("Train loss 123 0.512345 Grad Norm 1.214501 2.21s/it",),
     {"step": 123, "loss": 0.512345, "grad_norm": 1.214501, "step_s": 2.21}),
    (coqui, ("   --> STEP: 24/639 -- GLOBAL_STEP: 1325",), {"step": 1325}),
    (nnunet, ("2023-01-01 10:00:00.123456: Epoch 3 ",
              "2023-01-01 10:00:00.123456: train_loss nan "),
     {"epoch": 3.0, "loss": math.nan}),
    (nnunet, ("epoch:  3", "2019-10-10 10:11:12.123456: train loss : -0.7123"),
     {"epoch": 3.0, "loss": -0.7123}),
    (espnet, ("INFO: 2epoch results: [train] iter_time=0.01, loss_ctc=20.1, loss=9.7, "
              "time=1 hour, total_count=6000",),
     {"step": 6000, "epoch": 2.0, "loss": 9.7}),
    (olmo, (OLMO.format(41),), {"step": 41, "planned": 739328, "epoch": 0.0}),
    (olmo, (CORE,), {"step": 20, "planned": 4000, "epoch": 1.0}),
]  # fmt: skip
MODULES = tuple(dict.fromkeys(module for module, _, _ in TRAINING))


def said(module: ModuleType, *lines: str) -> list[Progress]:
    reader = module.Reader()
    values: list[Progress] = []
    for line in lines:
        if any(re.search(trigger, line) for trigger in module.TRIGGERS):
            values += reader.feed(line)
    return values


def shown(value: Progress) -> dict[str, str]:
    """What a value says, without what it does not say."""
    named = {name: getattr(value, name) for name in value.__dataclass_fields__}
    silent = {"loss_name": "loss", "falling": True, "skipped": False}
    return {k: repr(v) for k, v in named.items() if v is not None and silent.get(k) != v}


@pytest.mark.parametrize(("module", "lines", "fields"), TRAINING)
def test_a_training_line(
    module: ModuleType, lines: tuple[str, ...], fields: dict[str, Any]
) -> None:
    """Every field it carries, and none it does not."""
    trains = [value for value in said(module, *lines) if value.kind == "train"]
    assert [shown(value) for value in trains] == [
        {key: repr(value) for key, value in {"kind": "train", **fields}.items()}
    ]


@pytest.mark.parametrize(("module", "lines", "fields"), TRAINING)
def test_no_other_framework_reads_it(
    module: ModuleType, lines: tuple[str, ...], fields: dict[str, Any]
) -> None:
    """Nor is a generic format asked before its own."""
    takers = [
        other.FORMAT
        for other in line_formats()
        if not getattr(other, "GENERIC", 0) and said(other, *lines)  # type: ignore[arg-type]
    ]
    assert takers == [module.FORMAT]


@pytest.mark.parametrize(
    ("module", "lines", "fields"),
    [
        (darknet, ("If you want to train from the beginning, then use flag in the end of training "
                   "command: -clear ",), {"kind": "finished"}),
        (icefall, ("2022-05-11 11:11:12,123 INFO [train.py:842] (0/4) Epoch 1, validation: "
                   "loss=0.9, simple_loss=1.2, over 944034.00 frames. ",),
         {"kind": "eval", "epoch": 1.0, "loss": 0.9}),
        (kaldi, ("2019-05-01 17:02:58,991 [steps/nnet3/chain/train.py:509 - train - INFO ] Iter: "
                 "0/440    Epoch: 0.00/6.0 (0.0% complete)    lr: 0.000750    ",),
         {"kind": "plan", "planned": 441}),
        (marian, ("[2022] [valid] Ep. 1 : Up. 5000 : ce-mean-words : 5.212 : new best",),
         {"kind": "eval", "epoch": 1.0, "step": 5000, "loss": 5.212}),
        (marian, ("[2022] [valid] Ep. 1 : Up. 5000 : bleu : 21.2 : stalled 2 times",),
         {"kind": "eval", "epoch": 1.0, "step": 5000}),
        (mxnet, ("INFO:root:Epoch[3] Validation-cross-entropy=1.5",),
         {"kind": "eval", "epoch": 3.0, "loss": 1.5}),
        (mxnet, ("INFO:root:Epoch[3] Validation-accuracy=0.5",), {"kind": "eval", "epoch": 3.0}),
        (espnet, ("[gpu04] 2023 (trainer:338) INFO: 2epoch results: [train] "
                  "time=1 hour, total_count=6000, [valid] loss_ctc=20.1, loss=12.5, "
                  "time=2 minutes",),
         {"kind": "eval", "epoch": 2.0, "loss": 12.5}),
        (wenet, ("2023 DEBUG CV Batch 4/100 loss 30.8 loss_att 24.2 history loss 28.1 rank 2",),
         {"kind": "eval", "epoch": 4.0, "loss": 28.1}),
        (wenet, ("2023 INFO Epoch 4 CV info cv_loss 27.5",),
         {"kind": "eval", "epoch": 4.0, "loss": 27.5}),
        (deepspeech, ("Epoch 3 | Validation | Elapsed Time: 0:00:12 | Steps: 4 | Loss: 65.1 | "
                      "Dataset: dev.csv",), {"kind": "eval", "epoch": 3.0, "loss": 65.1}),
        (tacotron, ("Validation loss 500:  0.512345",),
         {"kind": "eval", "step": 500, "loss": 0.512345}),
        (deepspeech, ("I FINISHED optimization in 1:10:11.123456",), {"kind": "finished"}),
        (nerfstudio, (TABLE, "╭──────────── 🎉 Training Finished 🎉 ────────────╮"),
         {"kind": "finished"}),
        (nnunet, ("2023-01-01 10:00:00.123456: Epoch 3 ",
                  "2023-01-01 10:00:00.123456: val_loss -0.6912 "),
         {"kind": "eval", "epoch": 3.0, "loss": -0.6912}),
    ],
)  # fmt: skip
def test_what_is_no_training_step(
    module: ModuleType, lines: tuple[str, ...], fields: dict[str, Any]
) -> None:
    assert [shown(value) for value in said(module, *lines)] == [
        {key: repr(value) for key, value in fields.items()}
    ]


@pytest.mark.parametrize(
    ("module", "lines"),
    [
        (darknet, ("Region Avg IOU: nan, Class: nan, Obj: nan, No Obj: nan, count: 2",)),
        (darknet, (" (next mAP calculation at 1000 iterations) ",)),
        (chainer, ("3           1200        41.5        60.1           38.2",)),
        (chainer, ('    "epoch": 2,', '    "iteration": 70,', '    "elapsed_time": 4.1')),
        (chainer, (HEADING, "     total [##............................]  4.02%")),
        (chainer, (HEADING, "wide        table       of          words          alone       x")),
        (espnet, (ESPNET.format(3, 1, 20, "4.1").replace(":train:", ":valid:"),)),
        (espnet, (LEFT_OUT,) * 30),
        (kaldi, (NNET3 + "Overall average objective function for 'output' is -0.18 over 9 "
                 "frames.",)),
        (kaldi, (NNET3 + "Average objective function for 'output-xent' for minibatches 10-19 is "
                 "-2.4 over 76800 frames.",)),
        (dglke, ("[proc 3][Train](1000/24000) average loss: 0.4121",)),
        (dglke, ("[proc 0][Train](1000/24000) average pos_loss: 0.4121",)),
        (tensorpack, ("[0312 10:11:12 @monitor.py:467] total_cost: 0.123",)),
        (nerfstudio, ("120 (0.40%)         41.250 ms            20 m, 3 s            98.12 K",)),
        (nerfstudio, ("╭──────────── 🎉 Training Finished 🎉 ────────────╮",)),
        (nerfstudio, (TABLE, "the title says 🎉 Training Finished 🎉 once it is over")),
        (olmo, ("    train/CrossEntropyLoss=8.012",)),
        (olmo, (OLMO.format(41).replace("[step", "[eval_step"), "    train/CE loss=2.1")),
        (composer, (OLMO.format(41),)),
        (wenet, ("2023 DEBUG TRAIN Batch 4/3700 loss 12.6 loss_att 10.9 lr 0.0003 rank 3",)),
        (deepspeech, ("Test epoch | Steps: 4 | Elapsed Time: 0:00:12",)),
        (stylegan, ("tick 0     kimg 0.1      time 1m 30s       sec/tick 3.1     sec/kimg 101.31"
                    "   maintenance 0.1",)),
        (cyclegan, ("(epoch: 2, iters: all) is the default",)),
        (tacotron, ("Train loss 123 of the table, see Grad Norm 3",)),
        (coqui, ("   --> STEP: 3", "     | > loss: 0.71234  (0.91234)")),
        (nnunet, ("2023-01-01 10:00:00.123456: train_loss -0.7",)),
        (nnunet, ("2023-01-01 10:00:00.123456: Epoch 3 ", "the train_loss is -0.7")),
        (marian, ("[2022] Ep. 1 : Up. is the count of updates",)),
        (icefall, ("Epoch 1, batch 50 of the sampler, loss[loss=",)),
    ],
)  # fmt: skip
def test_near_misses(module: ModuleType, lines: tuple[str, ...]) -> None:
    assert said(module, *lines) == []


def test_numbers_below_a_heading_of_olmo() -> None:
    lines = (
        OLMO.format(41), "    train/CrossEntropyLoss=8.012", "    train/Perplexity=3,017",
        "    optim/total_grad_norm=1.5", "    throughput/device/tokens_per_second=8,141",
    )  # fmt: skip
    _, loss, norm, speed = said(olmo, *lines)
    assert (loss.step, loss.loss, loss.loss_name) == (41, 8.012, "CrossEntropyLoss")
    assert (norm.step, norm.grad_norm) == (41, 1.5)
    assert (speed.throughput, speed.throughput_unit) == (8141.0, "tokens/s/GPU")


def test_numbers_below_a_heading_of_coqui() -> None:
    lines = ("   --> TIME: 2022-01-01 10:00:00 -- STEP: 24/639 -- GLOBAL_STEP: 1325",
             "     | > loss: 0.81234  (0.91234)", "     | > loss_1: 0.2  (0.3)",
             "     | > grad_norm: 2.5  (2.25)", "     | > step_time: 0.5  (0.75)")  # fmt: skip
    _, loss, norm, time = said(coqui, *lines)
    assert (loss.step, loss.loss, norm.grad_norm, time.step_s) == (1325, 0.81234, 2.5, 0.5)


def test_a_scalar_of_tensorpack_stands_below_its_epoch() -> None:
    """The first that may be the loss, in every epoch the same."""
    end = "[0312 10:11:12 @base.py:285] Epoch {} (global_step {}) finished, time:41 sec."
    scalar = "[0312 10:11:13 @monitor.py:467] {}: {}"
    lines = (end.format(1, 468), scalar.format("cross_entropy_loss", 2.1),
             scalar.format("total_cost", 2.4), end.format(2, 936),
             scalar.format("total_cost", 1.9),
             scalar.format("cross_entropy_loss", 1.7))  # fmt: skip
    losses = [(one.step, one.loss) for one in said(tensorpack, *lines) if one.loss is not None]
    assert losses == [(468, 2.1), (936, 1.7)]


def test_batches_are_counted_on_over_epochs() -> None:
    """Their length is that of the one before; an epoch that comes again begins the count anew."""
    line = "INFO:root:Epoch[{}] Batch [{}]\tSpeed: 81.3 samples/sec\tcross-entropy=1.9"
    places = ((0, 20), (0, 40), (0, 60), (1, 20), (1, 40), (2, 20), (0, 20))
    steps = [one.step for one in said(mxnet, *(line.format(*place) for place in places))]
    assert steps == [20, 40, 60, 100, 120, 160, 20]


def test_espnet_counts_on_from_the_results_of_an_epoch() -> None:
    results = "INFO: {}epoch results: [train] loss=9.7, total_count={}, [valid] loss=12.5"
    lines = (ESPNET.format(4, 1, 100, 9.1), results.format(4, 6000), ESPNET.format(5, 1, 100, 9.0))
    assert [one.step for one in said(espnet, *lines)] == [None, None, 6100]


@pytest.mark.parametrize(("left_out", "norm"), [(100, math.nan), (30, None)])
def test_updates_of_espnet_that_were_left_out(left_out: int, norm: float | None) -> None:
    """All since the line before, or some, which is sound."""
    (one,) = said(espnet, *[LEFT_OUT] * left_out, ESPNET.format(1, 1, 100, 9.1))
    assert repr(one.grad_norm) == repr(norm)


def test_the_log_of_chainer_in_any_order_of_keys() -> None:
    first = ('"main/loss": 4.5,', '"epoch": 1,', '"iteration": 100,', '"elapsed_time": 9.1')
    second = ('"iteration": 200,', '"main/loss": -Infinity,', '"validation/main/loss": 4.0,')
    lines = [f"        {line}" for line in (*first, *second)]
    assert [(one.kind, one.step, one.loss) for one in said(chainer, *lines)] == [
        ("train", 100, 4.5), ("train", 200, -math.inf), ("eval", 200, 4.0)
    ]  # fmt: skip


def test_a_row_of_chainer_is_read_up_to_where_it_was_moved() -> None:
    """Stored tables lose blanks: a value beside its column is of nobody knows which."""
    row = "0           400         101.233     129.077        \t          0.2618"
    (one,) = said(chainer, HEADING, row)
    assert (one.kind, one.step, one.loss) == ("train", 400, 101.233)


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        (
            "# Ended (code 255) at Sat Dec 12 03:15:49 GMT 2020, elapsed time 9 seconds",
            (255, None),
        ),
        ("# Ended (code 256) at Sat Dec 12 03:15:49 GMT 2020, elapsed time 9 seconds", (1, None)),
        ("# Ended (code 137) at Sat Dec 12 03:15:49 GMT 2020, elapsed time 9 seconds", (137, 9)),
        ("# Ended (code 0) at Sat Dec 12 03:15:49 GMT 2020, elapsed time 9 seconds", None),
    ],
)
def test_the_end_of_a_job_of_kaldi(line: str, ends: tuple[int, int | None] | None) -> None:
    reported = [Reported("run.pl", exit_code=ends[0], signal=ends[1])] if ends else []
    assert list(exits_kaldi.Reader().feed(line)) == reported


# --- whole runs ---------------------------------------------------------------------------------


def verdict(folder: Path, name: str, text: str) -> Verdict:
    (folder / name).write_text(text)
    return diagnose(collect(Request((str(folder),))))


def test_losses_in_the_log_that_chainer_keeps(tmp_path: Path) -> None:
    losses = [60 - n for n in range(12)] + [float("-inf")] * 4
    rows = [
        {"main/loss": loss, "epoch": 1, "iteration": 100 * n, "elapsed_time": 9.5 * n}
        for n, loss in enumerate(losses, 1)
    ]
    assert verdict(tmp_path, "log.json", json.dumps(rows, indent=4)).code == "E1"


def test_json_that_is_no_log_of_a_trainer(tmp_path: Path) -> None:
    rows = [{"iteration": n, "text": "main/loss is nan"} for n in range(9)]
    (tmp_path / "data.json").write_text(json.dumps(rows, indent=4))
    assert not collect(Request((str(tmp_path),))).log_files()


def test_layers_of_darknet_without_an_object_are_sound(tmp_path: Path) -> None:
    """`nan` in their lines, and not in the average."""
    lines = []
    for n in range(1, 60):
        lines.append("Region Avg IOU: nan, Class: nan, Obj: nan, No Obj: nan, count: 0")
        loss = 40 / n + 1
        lines.append(
            f" {n}: {loss:.6f}, {loss + 1:.6f} avg loss, 0.001 rate, 3.4 seconds, 9 images"
        )
    assert verdict(tmp_path, "train.log", "\n".join(lines)).code != "E1"


def test_an_objective_of_kaldi_that_rises_is_sound(tmp_path: Path) -> None:
    text = "".join(
        f"{NNET3}Average objective function for 'output' for minibatches {n}0-{n}9 is"
        f" {-2.0 / (n + 1):.4f} over 76800 frames.\n"
        for n in range(40)
    )
    assert verdict(tmp_path, "train.0.1.log", text).code != "E1"


@pytest.mark.parametrize(("left_out", "code"), [(3, False), (100, True)])
def test_a_run_of_espnet_that_leaves_updates_out(
    tmp_path: Path, left_out: int, code: bool
) -> None:
    """A few of each hundred, or every one."""
    lines = []
    for n in range(20):
        lines += [LEFT_OUT] * left_out
        lines.append(ESPNET.format(1, 100 * n + 1, 100 * n + 100, f"{60 / (n + 1) + 3:.3f}"))
    lines += [LEFT_OUT] * 4
    assert (verdict(tmp_path, "train.log", "\n".join(lines)).code == "E1") is code


def test_a_loss_of_nnunet_that_falls_below_nought(tmp_path: Path) -> None:
    lines = []
    for n in range(60):
        stamp = f"2023-01-01 10:{n:02}:00.123456: "
        loss = 0.2 - 1.05 * (1 - 0.93**n) + 0.02 * (-1) ** n
        lines += [f"{stamp}Epoch {n} ", f"{stamp}train_loss {loss:.4f} "]
        lines.append(f"{stamp}val_loss {loss + 0.05:.4f} ")
    assert verdict(tmp_path, "training_log.txt", "\n".join(lines)).code != "E1"


BIND = (
    "[11:02:35] /opt/dgl/src/rpc/network/tcp_socket.cc:86: Failed bind on 10.1.1.4:30051 , error"
)
POD = '[Running to Failed][{{"to_state": "Failed", "node": "w-3", "exit reason": "{}"}}]'


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("ERROR (nnet3-train[5.5]:AllocateNewRegion():cu-allocator.cc:491) Failed to allocate a "
          "memory region of 618659840 bytes.  Possibly this is due to sharing the GPU.",), "B1"),
        (("Resizing", " CUDA Error: out of memory"), "B1"),
        (("Resizing", 'Cannot load image "data/obj/7.jpg"', "STB Reason: can't fopen"), "A1"),
        (("run.sh: line 41: --num-layers=12: command not found",
          "run.pl: job failed, log is in exp/log/train.0.1.log"), "A1"),
        ((BIND, "Server is waiting for connections on [10.1.1.4:30050]..."), "C1"),
        ((BIND, *(f"Epoch 00000 | Step {n:05} | Loss {3 - n / 99:.3f}" for n in range(90))), None),
        ((POD.format("CheckFailure"),), "F1"),
        ((POD.format("Deleted"), "[relaunch_node] Relaunch node w-3 to 59"), None),
        (("run.pl: job failed, log is in exp/log/decode.1.log",), None),
    ],
)  # fmt: skip
def test_what_they_say_before_they_end(
    tmp_path: Path, lines: tuple[str, ...], code: str | None
) -> None:
    """An exit reason that stands for any kill, and a job that names no reason, decide nothing."""
    assert verdict(tmp_path, "run.log", "\n".join(lines)).code == code


def test_a_client_that_waited_and_then_trained(tmp_path: Path) -> None:
    """GraphLearn's clients wait for its servers in every run."""
    awaited = (
        "W0514 11:20:05.839117  7902 channel_manager.cc:100] Waiting for all servers started: 0/2"
    )
    steps = [f"Epoch 0 Iter {n}, Loss {3 - n / 50:.3f}" for n in range(100)]
    assert verdict(tmp_path, "train.log", "\n".join([awaited, *steps])).code != "C1"


def test_deepspeechs_mean_of_an_epoch_is_read_where_the_epoch_ends() -> None:
    """Samples come in the order of their length, and their loss with it."""
    reader = deepspeech.Reader()
    line = "Epoch {} |   Training | Elapsed Time: 0:01:12 | Steps: {} | Loss: {}"
    said = [
        point
        for epoch in range(3)
        for step in (1, 20, 34)
        for point in reader.feed(line.format(epoch, step, (20 + step) / (epoch + 1)))
    ]

    assert [(p.step, p.loss) for p in said if p.loss is not None] == [(82, 27.0), (130, 18.0)]
    (lost,) = reader.feed(line.format(3, 5, "nan"))
    assert lost.loss is not None
    assert math.isnan(lost.loss)


def test_a_loss_beside_a_score_is_not_meant_to_fall() -> None:
    reader = tensorpack.Reader()
    monitor = "[0312 10:11:12 @monitor.py:467] {}: {}"
    said = []
    for epoch in (1, 2):
        head = f"[0312 10:11:12 @base.py:285] Epoch {epoch} (global_step {epoch * 9}) finished,"
        for text in (f"{head} time:41 sec.", monitor.format("cost", 0.1 * epoch),
                     monitor.format("predict_reward", 1)):  # fmt: skip
            said += [point.falling for point in reader.feed(text) if point.loss is not None]

    assert said == [True, False]


def test_a_pruned_loss_that_is_no_number_is_not_passed_over() -> None:
    line = (
        "Epoch 1, batch 50, loss[loss=nan, simple_loss=2.2, pruned_loss=nan, over 7.00 frames. ]"
    )
    (said,) = icefall.Reader().feed(line)
    assert said.loss is not None
    assert math.isnan(said.loss)
