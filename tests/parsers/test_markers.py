"""What hand-written loops say of checkpoints, starts and ends."""

from __future__ import annotations

import re

import pytest

from flatline.model import Progress
from flatline.parsers import markers


def said(line: str) -> list[Progress]:
    values = list(markers.Reader().feed(line))
    assert not values or any(re.search(t, line) for t in markers.TRIGGERS), line
    return values


@pytest.mark.parametrize(
    ("line", "kind", "step", "epoch"),
    [
        ("Resuming from checkpoint: out/ckpt.pt (step 1000)", "resume", 1000, None),
        ("Resuming training from out/checkpoint-250", "resume", 250, None),
        ("INFO resumed epoch: 3, iter: 1000", "resume", 1000, 3.0),
        ("Resumed training at epoch 7", "resume", None, 7.0),
        ("Resuming from last.pt", "resume", None, None),
        ("Training starts at step 1001", "resume", 1000, None),
        (
            "[launch] >>> RESUMING lm-3b from /ckpt/lm-3b iteration 21500 <<<",
            "resume",
            21500,
            None,
        ),
        ("Training starts at step 1", "fresh", 1, None),
        ("training from step 0 to 3300", "fresh", 0, None),
        ("INFO ckpt: auto-resume: nothing to load below out dir", "fresh", None, None),
        ("resume: tried /w/last.ckpt, none found, training begins at step 0", "fresh", None, None),
        ("--- out/state.pth: nothing there, beginning anew", "fresh", None, None),
        ("epoch 4 done, f1 0.81, saved out/b/last.pt", "checkpoint_saved", None, 4.0),
        ("INFO saved to 'latest.ckpt' at step 300", "checkpoint_saved", 300, None),
        ("INFO ckpt: wrote step 500 in 9.2s", "checkpoint_saved", 500, None),
        ("INFO Training from iteration 500 to 3300", "resume", 499, None),
        ("total_steps=16550 resumed from step 12000", "resume", 12000, None),
        ("=> no checkpoint found at 'model.pth.tar'", "fresh", None, None),
        ("No checkpoint found, training from scratch", "fresh", None, None),
        ("no checkpoint found; will start with the base model weights", "fresh", None, None),
        ("There were no checkpoints found in /x. Training from scratch.", "fresh", None, None),
        ("=> loaded checkpoint 'x.pth.tar' (epoch 3)", "checkpoint_loaded", None, 3.0),
        ("Restored checkpoint at step 500", "checkpoint_loaded", 500, None),
        ("Saved checkpoint to out/step_1000.pt", "checkpoint_saved", 1000, None),
        ("Checkpoint saved at step 1000: /x/y.pt", "checkpoint_saved", 1000, None),
        ("[12:00:01] saved ckpt-500", "checkpoint_saved", 500, None),
        ("INFO ckpt: saved /nfs/a/step_000025 in 15.1s (blocking)", "checkpoint_saved", 25, None),
        (
            "[NeMo I 2026-02-03 04:05:06 nemo_logging:393] Async checkpoint save for step 750"
            " (/out/step=749-last.ckpt) finalized successfully.",
            "checkpoint_saved",
            750,
            None,
        ),
        ("checkpoint-50 written in 63.8s (model+optimizer)", "checkpoint_saved", 50, None),
        ("[INFO] checkpoint-40: 42.1 GB in 193.4s", "checkpoint_saved", 40, None),
        ("Training completed", "finished", None, None),
        ("INFO:v:Training is done. The program is closed.", "finished", None, None),
        ("2026-01-01 12:00:00 INFO Training complete.", "finished", None, None),
        ("[rank0] INFO training finished in 123.4s", "finished", None, None),
        ("=== Training done! ===", "finished", None, None),
        ("[2026-01-01 12:00:00] INFO [trainer:88] Training loop complete", "finished", None, None),
        ("Training loop has finished.", "finished", None, None),
        ("I0101 12:00:00.0 7 main.py:3] Training complete at step 300", "finished", 300, None),
        (
            "2026-01-01 12:00:00,1 training finished, best epoch 45 (dice 0.84)",
            "finished",
            None,
            None,
        ),
        (" > Training done. Best model: best_model_930.pth", "finished", None, None),
        ("EarlyStopping - INFO - EarlyStopping: Stop training", "finished", None, None),
        ("training finished: reached the last step (1636/1636)", "finished", 1636, None),
        ("INFO training complete; at max steps", "finished", None, None),
        ("training complete; weights written to runs/a", "finished", None, None),
        ("[rank0] Training finished. Model saved at /out/step-900/", "finished", 900, None),
        ("max_duration reached. exiting with status 0", "finished", None, None),
        (
            "INFO training time limit was reached, saving state, exits with exit code 0",
            "finished",
            None,
            None,
        ),
        (
            "Time limit reached. Elapsed time is 1:00:02. Signaling Trainer to stop.",
            "finished",
            None,
            None,
        ),
        ("Training done - after final epoch, exiting", "finished", None, None),
        ("[rank0] training completed (reached target step)", "finished", None, None),
        ("Training finished, reached maximum_iterations", "finished", None, None),
        (
            "INFO [rank 3 c7] surrogate: finished, tearing down process group",
            "finished",
            None,
            None,
        ),
        ("2026-01-01 12:00:00 All done. Destroying the process group", "finished", None, None),
    ],
)
def test_facts(line: str, kind: str, step: int | None, epoch: float | None) -> None:
    """Plain statements in the past or present."""
    (value,) = said(line)
    assert (value.kind, value.step, value.epoch) == (kind, step, epoch)


@pytest.mark.parametrize(
    ("before", "kinds"),
    [
        (["Run canceled due to time limit reached, stopping in 10 more steps..."], []),
        (["Run cancelled due to a tag"], []),
        (["Run canceled, stopping in 10 more steps..."], []),
        (["Run canceled due to a tag", "Checkpoint successfully loaded"], ["finished"]),
        (["Checkpoint successfully loaded", "Run canceled due to a tag"], []),
        (["Dry run canceled"], ["finished"]),
    ],
)
def test_an_end_after_the_run_was_called_off_is_none(before: list[str], kinds: list[str]) -> None:
    """Up to where it is taken up again."""
    reader = markers.Reader()
    lines = [*before, "INFO Training loop complete"]

    assert [value.kind for line in lines for value in reader.feed(line)] == kinds


def test_torchtitan_names_the_plan_where_it_starts() -> None:
    """Older versions print it on the same line."""
    (value,) = said(
        "Training starts at step 1, with local batch size 1, global batch size 8, sequence length "
        "2048, total steps 1000 (warmup 200)"
    )
    assert (value.kind, value.planned) == ("fresh", 1000)


@pytest.mark.parametrize(
    "line",
    [
        "To resume training from step 1000, run: python train.py",
        "Will resume training from checkpoint step 100",
        "if no checkpoint found, training from scratch",
        "no checkpoint found, cannot evaluate the pretrained encoder",
        "error: no checkpoint found: pretrained/enc.pt",
        "resume_from_checkpoint=None",
        "Resuming from checkpoint: None",
        "Not resuming: no such file",
        "resume: if nothing is found, training begins at step 0",
        "shard index: nothing found, starting at step 0",
        "resume: nothing found, starting the evaluation",
        "loaded the weights saved in out/last.pt",
        "saved the curves of the last.png",
        "python train.py --resume out/step_100.pt",
        "wandb: Resuming run glad-sun-12",
        "Resuming download from shard 3 step 7",
        "Resuming glad-sun-12 from the cloud",
        "Failed to load checkpoint at step 100",
        "Saving checkpoint to out/step_100.pt",
        "Loading checkpoint at step 100",
        "Saved checkpoint every 100 steps",
        "Loaded pretrained checkpoint from /models/step_1000.pt",
        "Loaded CLIP weights from checkpoint",
        "Some weights of the model checkpoint at bert-base were not used when initializing",
        "Early stopping patience: 10",
        "INFO loop: not finished, destroying process group",
        "INFO once finished, destroying process group",
        "INFO rank 3 failed: destroying process group",
        "INFO warm-up finished, destroying process group of the pipeline",
        "INFO evaluation finished, destroying process group",
        "Early stopping!",  # of a fold, a stage or one rank: another may follow, and fail
        "Early stopping triggered at epoch 4",
        "Training time: 118.3s",
        "Total training time: 1:00:00",
        "EarlyStopping counter: 3 out of 10",
        "EarlyStopping: 3 / 10",
        "loading checkpoint-40: 42.1 GB in 193.4s",
        "uploaded checkpoint-40: 42.1 GB in 193.4s",
        "checkpoint-40 is written in 4 shards",
        "Training complete at step 300 of stage 1",
        "Training finished, bests below",
        "Training finished: reached the wall-clock limit (1636/5000)",
        "Training finished: lost the last step",
        "Stage 1 training complete, model saved to /out",
        "Epoch 3: training complete, model saved to /out",
        "Training complete, model saved to memory for stage 2",
        "max_time reached, exiting with code 01",
        "max_time reached, exiting with code 1",
        "max_time reached, exiting and requeued",
        "max_time reached for rank 3, exiting with code 0",
        "if max_time is reached, exits with code 0",
        "Training finished reached the last step",
        "Training not finished: reached the last step of stage 1",
        "Training finished: reached the last steppe",
        "early_stopping: True",
        "[Early Stopping]",
        "Will early stop at epoch 5",
        "Epoch training time: 33.1 s",
        "Training time per epoch: 12 s",
        "Total training time budget: 12 hours",
        "Training new model from scratch - Total size=117.00M params",
        "Once training is done, run eval",
        "Epoch 3 training complete",
        "Training completed epoch 3",
        "Training loop complete for epoch 3",
        "Inner training loop complete",
        "Before the training loop is complete nothing is written",
        "will go on training from step 0 to 3300",
        "optimizer: nothing to load",
        "warm-up of the training from step 0 to 100",
        "training_complete: False",
        "successfully saved checkpoint at iteration     500 to /c",
        "Saved a checkpoint at step 100.",
        "No existing checkpoints found, not restoring checkpoint.",
        "Restored all states from the checkpoint at /x/epoch=3-step=400.ckpt",
        "Loaded model weights from the checkpoint at /x/epoch=3-step=400.ckpt",
        "Finished saving the checkpoint (or staging if async is enabled)in 2.34 seconds.",
    ],
)
def test_near_misses_say_nothing(line: str) -> None:
    """Intentions, conditions, failures, beginnings, new weights, and other formats' lines."""
    assert said(line) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("2025-04-29 09:57:11,534 | INFO | trainer | finished 2400/2400 steps, best val_loss 1.61,"
         " exiting 0", (2400, 2400, None)),
        ("Finished training: steps 1500/1500.", (1500, 1500, None)),
        ("[rank0] completed 3/3 epochs", (None, None, 3.0)),
        ("Training completed: 1000/1000 steps in 3.2h", (1000, 1000, None)),
        ("max steps reached (1350), exiting", (1350, 1350, None)),
        ("INFO Maximum steps reached", (None, None, None)),
        ("max_steps reached, final checkpoint written to /scratch/final", (None, None, None)),
        ("Hit max epochs this instance, done", (None, None, None)),
        ("INFO total_timesteps reached, exiting.", (None, None, None)),
        ("Reached the maximum epochs", (None, None, None)),
        ("WARNING: Max epochs reached before any env was done", None),
        ("max episode steps reached", None),
        ("Reached max steps for evaluation, done", None),
        ("max_steps reached, evaluating the final model", None),
        ("stops when max steps reached", None),
        ("INFO reward model: max steps reached (40)", None),
        ("[stage 1] max steps reached", None),
        ("INFO stage 1: finished 20/20 steps", None),
        ("INFO completed 500/500 steps of stage 1", None),
        ("INFO reward model: finished 20/20 steps", None),
        ("INFO completed 199/199 iterations", None),
        ("finished 1200/2400 steps", None),
        ("0/0 done: 0/0 steps", None),
        ("will have finished 20/20 steps", None),
        ("INFO eval: completed 50/50 steps", None),
        ("INFO warm-up: finished 20/20 steps", None),
        ("downloaded: finished 20/20 files", None),
    ],
)  # fmt: skip
def test_all_of_so_many(
    line: str, said: tuple[int | None, int | None, float | None] | None
) -> None:
    """As many as there are, of training and of nothing else."""
    found = [(p.kind, p.step, p.planned, p.epoch) for p in markers.Reader().feed(line)]

    assert found == ([] if said is None else [("finished", *said)])


def test_verls_last_validation_is_its_end() -> None:
    """Not the first one, which it makes before training, and not a metric of that name."""
    for text, kinds in (
        ("(TaskRunner pid=18) (\"Final validation metrics: {'val-core/x/mean@1': 0.71}\")", 1),
        ("(TaskRunner pid=18) (\"Initial validation metrics: {'val-core/x/mean@1': 0.5}\")", 0),
        ("fold 1 Final validation metrics: {'acc': 0.71}", 0),
    ):
        assert len([*markers.Reader().feed(text)]) == kinds
