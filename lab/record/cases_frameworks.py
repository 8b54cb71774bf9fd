"""Hugging Face Trainer, TRL with PEFT, Lightning and Keras, one process each."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from lab.record.case import Case, listed
from lab.record.data import write_corpus, write_records
from lab.record.stage import HOME, Cell, Stage

CASES: list[Case] = []
PROJECT = HOME / "proj"


def trainer(
    stage: Stage,
    cell: Cell,
    command: Sequence[str],
    log: str = "train.log",
    *,
    apart: bool = False,
) -> int:
    """A program on the local tiny model and its data; `apart` keeps stderr in a file of its own."""
    write_records(PROJECT / "data" / "train.jsonl", 4000)
    write_corpus(PROJECT / "data" / "corpus.txt", 2000)
    stage.own()
    made = stage.start(
        cell, ["python", "make_model.py", "data/corpus.txt", "models/tiny-gpt2"], ".made"
    )
    if made.wait():
        raise RuntimeError((stage.run / ".made").read_text())
    (stage.run / ".made").unlink()
    return play(stage, cell, command, log, apart=apart)


def play(
    stage: Stage,
    cell: Cell,
    command: Sequence[str],
    log: str = "train.log",
    *,
    apart: bool = False,
) -> int:
    err = log.replace(".log", ".err") if apart else None
    return stage.end(stage.start(cell, ["python", *command], log, err=err), 300)


@listed(CASES, origin="hf-trainer", about=("G1",), state="healthy", attribution="none")
def hf_trainer_reaches_its_end(stage: Stage) -> None:
    """A tiny GPT-2 trains for the planned 300 steps with three evaluations; nothing is done to it."""
    trainer(stage, stage.cell(), ["run_clm.py"])


@listed(
    CASES, origin="hf-trainer", about=("G1", "E2"), state="healthy", attribution="none",
    answers={"E2": "ruled_out"},
)  # fmt: skip
def hf_trainer_resumed(stage: Stage) -> None:
    """A run of 200 steps is started again with 400 planned and resume_from_checkpoint.

    Its log is the second one's: progress begins after step 200.  stderr has a file of its own.
    """
    cell = stage.cell()
    trainer(stage, cell, ["run_clm.py", "--max-steps", "200"], ".first.log")
    (stage.run / ".first.log").unlink()
    play(stage, cell, ["run_clm.py", "--max-steps", "400", "--resume"], apart=True)


@listed(
    CASES, origin="hf-trainer", about=("A1",), code="A1", attribution="job",
    cited=(("train.log", r"^KeyError: ", 0),), demo="wrong-column",
    title="The program asked for a data column that does not exist and died before its first step.",
)  # fmt: skip
def hf_wrong_column_name(stage: Stage) -> None:
    """--text-column names a column that the data set does not have."""
    trainer(stage, stage.cell(), ["run_clm.py", "--text-column", "content"])


@listed(CASES, origin="hf-trainer", about=("A1", "C5"), code="A1", attribution="job")
def hf_model_path_missing(stage: Stage) -> None:
    """--model is a folder that does not exist, with HF_HUB_OFFLINE=1.

    The message that ends the log speaks of a connection; no network is at fault.
    """
    trainer(stage, stage.cell(), ["run_clm.py", "--model", "models/tiny-gpt2-v2"])


@listed(CASES, origin="hf-trainer", about=("A1",), code="A1", attribution=("job", "unknown"))
def hf_hub_name_offline(stage: Stage) -> None:
    """--model is a name on the Hub that is not in the cache, with HF_HUB_OFFLINE=1."""
    trainer(stage, stage.cell(), ["run_clm.py", "--model", "acme/small-lm"])


@listed(CASES, origin="hf-trainer", about=("A1",), code="A1", attribution="job")
def peft_target_modules_not_found(stage: Stage) -> None:
    """LoRA is told to adapt q_proj and v_proj, which GPT-2 does not have."""
    trainer(stage, stage.cell(), ["sft.py", "--target-modules", "q_proj", "v_proj"])


@listed(CASES, origin="hf-trainer", about=("A1",), code="A1", attribution="job")
def hf_dataset_json_malformed(stage: Stage) -> None:
    """Line 1207 of the JSON lines file is cut in the middle."""
    cell = stage.cell()
    write_records(PROJECT / "data" / "bad" / "train.jsonl", 4000)
    path = PROJECT / "data" / "bad" / "train.jsonl"
    lines = path.read_text().splitlines()
    lines[1206] = lines[1206][:37]
    path.write_text("\n".join(lines) + "\n")
    trainer(stage, cell, ["run_clm.py", "--train-file", "data/bad/train.jsonl"])


@listed(CASES, origin="hf-trainer", about=("G1", "A1"), state="healthy", attribution="none")
def hf_fp16_on_cpu(stage: Stage) -> None:
    """fp16 is asked for on a host without an accelerator: it warns and trains to its end all the same."""
    trainer(stage, stage.cell(), ["run_clm.py", "--fp16"])


@listed(CASES, origin="hf-trainer", about=("E2", "A1"), code=("E2", "A1"), attribution="job")
def hf_resume_without_checkpoint(stage: Stage) -> None:
    """resume_from_checkpoint=True with an output folder that holds no checkpoint."""
    trainer(stage, stage.cell(), ["run_clm.py", "--resume", "--output-dir", "out-b"])


@listed(CASES, origin="hf-trainer", about=("E2",), code="E2", attribution="job")
def hf_checkpoint_weights_empty(stage: Stage) -> None:
    """The weights file of the newest checkpoint is emptied before the run is resumed."""
    cell = stage.cell()
    trainer(stage, cell, ["run_clm.py", "--max-steps", "100"], ".first.log")
    (stage.run / ".first.log").unlink()
    weights = next((PROJECT / "out" / "checkpoint-100").glob("*.safetensors"))
    weights.write_bytes(b"")
    stage.note(f"{weights.name} of checkpoint-100 was emptied")
    play(stage, cell, ["run_clm.py", "--max-steps", "300", "--resume"])


@listed(CASES, origin="hf-trainer", about=("E1",), code="E1", attribution="training")
def hf_loss_diverges(stage: Stage) -> None:
    """The learning rate of the Trainer is 8; the loss ends far above where it began."""
    trainer(stage, stage.cell(), ["run_clm.py", "--lr", "8", "--warmup-steps", "60"], apart=True)


@listed(
    CASES,
    origin="hf-trainer",
    about=("G1",),
    state=("healthy", "undetermined"),
    attribution=("none", "unknown"),
)
def trl_sft_lora_reaches_its_end(stage: Stage) -> None:
    """TRL's SFTTrainer with LoRA adapters for the planned 200 steps."""
    trainer(stage, stage.cell(), ["sft.py"])


@listed(CASES, origin="lightning", about=("A3",), code=("A3", "A1"), attribution="job")
def lightning_validation_shape(stage: Stage) -> None:
    """The validation table has 11 columns where the network takes 12: the first epoch trains, then
    validation raises."""
    play(stage, stage.cell(), ["lit.py", "--val-columns", "11"])


@listed(
    CASES,
    origin="lightning",
    about=("A1",),
    code="A1",
    attribution=("job", "infrastructure", "unknown"),
)
def lightning_gpu_not_there(stage: Stage) -> None:
    """Lightning is told to use a GPU on a host that has none."""
    play(stage, stage.cell(), ["lit.py", "--accelerator", "gpu"])


@listed(CASES, origin="lightning", about=("A3", "A1"), code=("A3", "A1"), attribution="job")
def lightning_monitor_not_logged(stage: Stage) -> None:
    """Early stopping watches `valid_loss`; the module logs `val_loss`."""
    play(stage, stage.cell(), ["lit.py", "--monitor", "valid_loss"])


@listed(
    CASES, origin="lightning", about=("G1",), state=("healthy", "undetermined"), attribution=("none", "unknown"),
)  # fmt: skip
def lightning_reaches_its_end(stage: Stage) -> None:
    """Four epochs of a small regressor; metrics.csv is what its CSV logger wrote."""
    play(stage, stage.cell(), ["lit.py"])
    stage.keep(PROJECT / "logs" / "lightning_logs" / "version_0" / "metrics.csv", "metrics.csv")


@listed(CASES, origin="keras", about=("A1",), code=("A1", "A3"), attribution="job")
def keras_wrong_number_of_classes(stage: Stage) -> None:
    """The last layer has 4 units and the labels 5 classes: fit() raises in its first batch."""
    play(stage, stage.cell(), ["keras_fit.py", "--classes", "4"])


@listed(
    CASES,
    origin="keras",
    about=("G1",),
    state=("healthy", "undetermined"),
    attribution=("none", "unknown"),
)
def keras_reaches_its_end(stage: Stage) -> None:
    """Six epochs of a small classifier with verbose=2."""
    play(stage, stage.cell(), ["keras_fit.py"])
    shutil.rmtree(PROJECT / "logs", ignore_errors=True)
