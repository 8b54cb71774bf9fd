"""What holds of every progress format: triggers, robustness, speed, and no line read twice."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import hyperscan
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.model import Progress
from flatline.parsers import (
    chainer,
    composer,
    config,
    coqui,
    cyclegan,
    darknet,
    deepspeech,
    deepspeed,
    detectron2,
    dglke,
    espnet,
    estimator,
    fairseq,
    fastai,
    hf_trainer,
    icefall,
    imagenet,
    kaldi,
    keras,
    levanter,
    lightning,
    marian,
    markers,
    maxtext,
    megatron,
    mindspore,
    mlperf,
    mxnet,
    nanotron,
    nerfstudio,
    nnunet,
    olmo,
    open_clip,
    openmmlab,
    paddle,
    paxml,
    plain,
    stylegan,
    tacotron,
    tensorpack,
    timm,
    torchtitan,
    tqdm,
    ultralytics,
    wenet,
)

FORMATS = (
    deepspeed,
    hf_trainer,
    keras,
    lightning,
    markers,
    maxtext,
    megatron,
    mlperf,
    plain,
    tqdm,
)
FRAMEWORKS = (
    chainer,
    composer,
    config,
    coqui,
    cyclegan,
    darknet,
    deepspeech,
    detectron2,
    dglke,
    espnet,
    estimator,
    fairseq,
    fastai,
    icefall,
    imagenet,
    kaldi,
    levanter,
    marian,
    mindspore,
    mxnet,
    nanotron,
    nerfstudio,
    nnunet,
    olmo,
    open_clip,
    openmmlab,
    paddle,
    paxml,
    stylegan,
    tacotron,
    tensorpack,
    timm,
    torchtitan,
    ultralytics,
    wenet,
)
"""Formats whose lines a generic one may read too: they are asked before it."""
EVERY = (*FORMATS, *FRAMEWORKS)
TRAINS = {
    "deepspeed": "steps: 10 loss: 2.5 iter time (s): 0.512 samples/sec: 12.345",
    "hf_trainer": "{'loss': 2.5, 'grad_norm': 1.0, 'learning_rate': 5e-05, 'epoch': 0.02}",
    "keras": "10/58 ━━━━━━━━━━━━━━━━━━━━ 32s 500ms/step - accuracy: 0.25 - loss: 1.75",
    "lightning": "Epoch 3:  12%|█▏  | 120/1000 [00:10<01:10, 12.50it/s, v_num=0, train_loss=2.5]",
    "maxtext": "completed step: 71, seconds: 30.309, TFLOP/s/device: 207.973, loss: 2.345",
    "megatron": " iteration 5/ 9 | consumed samples: 40 | elapsed time per iteration (ms): 10.5 |"
    " lm loss: 3.0E+00 | loss scale: 1.0 | number of skipped iterations: 0 |",
    "mlperf": ':::MLLOG {"key": "train_loss", "value": 1.25, "metadata": {"step_num": 10}}',
    "plain": "step 10/2000 loss 5.0625 grad_norm 0.375 step_time 43.5 ms tok/s 9436",
    "tqdm": "Steps:  12%|█▏        | 120/1000 [01:23<10:11,  1.25it/s, step_loss=0.125]",
}
"""One line of each format that no other may take for training."""
WORDS = [
    *TRAINS.values(),
    "[epoch=2][batch=3/8]:",
    "epoch       iteration   main/loss   validation/main/loss",
    '    "iteration": 10,',
    "0           400         101.233     129.077",
    "[olmo.train:816, rank=0] [step=41/739328]",
    "    train/CE loss=8.012",
    "Epoch[0] Batch [20]\tSpeed: 99.1 samples/sec\tcross-entropy=nan",
    "Epoch 1, batch 50, loss[loss=1.1, over 7012.00 frames. ]",
    "1epoch:train:1-100batch: loss=9.71, train_time=0.412",
    "20 (0.07%)          40.123 ms",
    "2023-01-01 10:00:00.123456: Epoch 3",
    "TRAIN Batch 4/3700 loss 12.6 rank 0",
    "--> STEP: 24/639 -- GLOBAL_STEP: 1325",
    "Epoch 3 |   Training | Elapsed Time: 0:01:12 | Steps: 34 | Loss: 45.1",
    "Step (% Done)       Train Iter (time)",
    "epoch     train_loss  valid_loss  time",
    "[4, 1.95, 0.11, '00:00']",
    "Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size",
    "  2/3   0G  4.2  nan  2.7  4  96: 100% ━━━━ 3/3 14.4it/s",
    "Epoch: [5][ 40/40]\tTime  0.258 ( 0.237)\tLoss 2.7e-03 (3.9e-03)",
    "Epoch(train)  [2][  50/1000]  lr: 1.0e-02",
    "epoch 002:     10 / 500 loss=15.125, num_updates=510",
    "iteration: 5 / 100 | lm_loss: 10.8",
    "Namespace(epochs=90, max_steps=5)",
    "loss = 7.875, step = 100",
    "Epoch 1/3",
    "Epoch: [0][  10/5005]",
    "Train Epoch: 1 [640/60000 (1%)]",
    "{'eval_loss': nan, 'reward': 1}",
    "TrainOutput(global_step=",
    "epoch 1 step 10/600 batch 3",
    "loss",
    "loss: ",
    "val loss ",
    "nan",
    "-inf",
    "1e999",
    "9" * 20,
    "10/100",
    "[3/4]",
    "100%|##| 4/4 [00:01<00:00, 1.00it/s]",
    "1.2.3",
    ":::MLLOG {",
    '"step": ',
    "resumed checkpoint step ",
    "━",
    "\0",
    " | ",
    ", ",
    " ",
]
PIECES = st.sampled_from(WORDS) | st.text(max_size=20)


def names(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def triggered(module: ModuleType, line: str) -> bool:
    return any(re.search(trigger, line) for trigger in module.TRIGGERS)


@pytest.mark.parametrize("module", EVERY, ids=names)
def test_triggers_mean_the_same_to_both_engines(module: ModuleType) -> None:
    """Hyperscan and `re` agree on which of the sample lines each trigger finds."""
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[trigger.encode() for trigger in module.TRIGGERS],
        ids=list(range(len(module.TRIGGERS))),
        elements=len(module.TRIGGERS),
        flags=[hyperscan.HS_FLAG_SINGLEMATCH] * len(module.TRIGGERS),
    )
    for line in WORDS:
        hits: set[int] = set()
        database.scan(line.encode(), lambda number, *_, hits=hits: hits.add(number))
        expected = {n for n, t in enumerate(module.TRIGGERS) if re.search(t, line)}
        assert hits == expected, line


@pytest.mark.parametrize("name", sorted(TRAINS))
def test_a_line_of_one_format_is_training_to_no_other(name: str) -> None:
    """Even where another's trigger fires on it too."""
    line = TRAINS[name]
    takers = []
    for module in FORMATS:
        reader = module.Reader()
        list(reader.feed("Epoch 4/9"))
        if triggered(module, line) and any(p.kind == "train" for p in reader.feed(line)):
            takers.append(module.FORMAT)
    assert takers == [name]


@pytest.mark.parametrize("module", EVERY, ids=names)
@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.lists(st.sampled_from(WORDS) | st.text(max_size=20), max_size=6), max_size=8)
)
def test_no_text_breaks_a_reader(module: ModuleType, lines: list[list[str]]) -> None:
    """Any text, in any order, gives values or nothing."""
    reader = module.Reader()
    for words in lines:
        for value in reader.feed("".join(words)):
            assert isinstance(value, Progress)
            assert value.step is None or value.step >= 0


@pytest.mark.parametrize(
    "line",
    [
        "loss " * 40_000,
        "step 1 " * 30_000,
        "'loss': " * 30_000,
        "Epoch 1 [" * 30_000,
        "a" * 200_000 + " loss: 1 step: 2",
        "1" * 200_000,
        "12%|" + "#" * 200_000,
        "Epoch 0:" + " " * 200_000 + "it/s v_num=",
        "iteration 1/ 2 |" + " a: 1 |" * 30_000,
        "saved " * 30_000 + "no checkpoint ",
        "[Rank 0] step=1, skipped=" + "0" * 200_000,
        ":::MLLOG {" * 20_000 + '"key": "train_loss"',
        "training from " * 20_000,
        ". - loss: 1 step" * 15_000,
        "epoch 001: 1 / 2 " * 12_000 + "num_updates=",
        "Namespace(" + "epochs=1, max_steps=" * 10_000,
        "Trainer is initialized with " * 7_000 + "total steps",
        "1/2 1G" + " 1.0" * 50_000 + ": 1%",
        "[1, 2" + ", 3.0" * 40_000,
    ],
    ids=lambda line: line[:16],
)
def test_a_hostile_line_takes_no_longer_than_a_long_one(line: str) -> None:
    """200 kB in well under a second: nothing backtracks without bound."""
    for module in EVERY:
        reader = module.Reader()
        list(reader.feed("Epoch 1/2"))
        began = time.process_time()
        list(reader.feed(line))
        assert time.process_time() - began < 1.0, module.FORMAT


def test_every_progress_format_names_itself() -> None:
    """The format's name is its file's."""
    for module in EVERY:
        assert names(module) == module.FORMAT


def _samples() -> Iterator[Path]:
    root = os.environ.get("FLATLINE_SAMPLES")
    folder = Path(root) if root else Path(__file__).resolve().parents[3] / "shared" / "samples"
    for part in ("frameworks", "torch", "jax", "slurm/joblogs"):
        yield from (
            path
            for path in sorted(folder.glob(f"{part}/**/*"))
            if path.suffix in (".log", ".out", ".err", ".tty")
        )


_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def test_no_recorded_line_is_two_training_points() -> None:
    """Every reader over every recorded log: what one takes for training no other does."""
    paths = list(_samples())
    if not paths:
        pytest.skip("the recorded samples are not here")
    points = 0
    for path in paths:
        readers = {module: module.Reader() for module in FORMATS}
        for raw in path.read_text("utf-8", "replace").split("\n"):
            for segment in raw.rstrip("\r").split("\r"):
                text = _ESCAPE.sub("", segment).rstrip()
                takers = [
                    module.FORMAT
                    for module, reader in readers.items()
                    if triggered(module, segment)
                    and sum(p.kind == "train" for p in reader.feed(text))
                ]
                assert len(takers) <= 1, (path.name, text)
                points += len(takers)
    assert points > 500
