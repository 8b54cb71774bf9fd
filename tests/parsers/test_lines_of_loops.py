"""Lines of hand-written loops as programs print them, and what is read out of them."""

from __future__ import annotations

import math

import pytest

from flatline.model import Progress
from flatline.parsers import markers, plain, tqdm


def only(said: object) -> Progress:
    (one,) = list(said)  # type: ignore[call-overload]
    assert isinstance(one, Progress)
    return one


@pytest.mark.parametrize(
    ("line", "step", "planned"),
    [
        ("it 50/3000 loss 2.308216 grad_norm 0.0000e+00 lr 1.0e-03", 50, 3000),
        ('{"step": 10, "max_steps": 300, "loss": 1.0369126796722412}', 10, 300),
        ("total_steps: 900 step: 40 loss: 3.1", 40, 900),
    ],
)
def test_a_step_and_its_plan(line: str, step: int, planned: int) -> None:
    said = only(plain.Reader().feed(line))
    assert (said.step, said.planned) == (step, planned)


def test_a_pair_behind_a_loggers_name() -> None:
    said = only(plain.Reader().feed("INFO:src.model:[0, 199] loss: 2.3122 duration: 54.2"))
    assert (said.epoch, said.step, said.loss) == (0, 199, 2.3122)


def test_a_wait_set_in_columns() -> None:
    """Padded to a width, as tables of ranks are."""
    said = only(
        plain.Reader().feed("step   20/300  loss 1.05  compute   61.9 ms  allreduce    8.1 ms")
    )
    assert said.sync_s == pytest.approx(0.0081)


@pytest.mark.parametrize(
    ("tail", "step_s", "data_s"),
    [
        ("step_time=0.50s data_wait=0.21s", 0.5, 0.21),
        ("step_s 0.5 data_wait_s 0.2", 0.5, 0.2),
        ("dt 500ms loader_wait 120ms", 0.5, 0.12),
        ("step_time_ms 500 data_ms 200", 0.5, 0.2),
        ("step_ms=500 data_wait_ms=200", 0.5, 0.2),
        ("step 0.5s wait_data 0.2s", 0.5, 0.2),
        ("step_time 0.5s dataloader_wait=0.2s", 0.5, 0.2),
        ("step_time 0.5s input_wait_time: 0.2s", 0.5, 0.2),
        ("step_ms 500 (data_wait 200 fwd 90 bwd 170)", 0.5, 0.2),
        ("step 500 ms (fwd 90, data_wait 200)", 0.5, 0.2),
        ("step_ms 500 lr 1e-4 (data_wait 200)", 0.5, None),
        ("step_time 0.5s (data 8 workers)", 0.5, None),
        ("step_time 0.5s data_workers 8", 0.5, None),
        ("step_time 0.5s data_wait 8", 0.5, None),
        ("step_time=0.5s data_time=0.2", 0.5, 0.2),
        ("step_time=500ms data_time=0.2", 0.5, None),
        ("Time: 1.168s, 877.0/s  LR: 3e-4  Data: 0.011", 1.168, 0.011),
        ("Time: 1.168s, 877.0/s  LR: 3e-4  Data 0.011", 1.168, 0.011),
        ("Time: 1.168s, 877.0/s  LR: 3e-4  Data: 1.511", 1.168, None),
        ("Time: 1.168s, 877.0/s  LR: 3e-4  Data: 1", 1.168, None),
        ("Time: 1168ms, 877.0/s  LR: 3e-4  Data: 0.011", 1.168, None),
        ("Time: 1.168s, 877.0/s  LR: 3e-4  Metadata: 0.011", 1.168, None),
    ],
)
def test_what_a_step_waited_for_data(tail: str, step_s: float, data_s: float | None) -> None:
    said = only(plain.Reader().feed(f"step 10/100 loss 2.1 {tail}"))
    assert (said.step_s, said.data_s) == (step_s, data_s)


@pytest.mark.parametrize(
    ("tail", "speed"),
    [
        ("tokens/s: 349,525", 349525),
        ("tokens/s 349525", 349525),
        ("tok/s=12k", 12000),
        ("| 349525 tokens/s", 349525),
        ("349525 tokens/s 12 ms", 349525),
        ("speed 349525 tokens/s 12 ms", 349525),
        ("data 0.013 tokens/s 349525", 349525),
        ("seq_len 4096 tokens/s 349525", 349525),
    ],
)
def test_a_loss_before_the_name_of_a_throughput_is_none(tail: str, speed: float) -> None:
    said = only(plain.Reader().feed(f"step: 5 loss: 8.4873 {tail}"))
    assert (said.loss, said.throughput, said.throughput_unit) == (8.4873, speed, "tokens/s")


@pytest.mark.parametrize(
    "line",
    [
        "epoch 2: 100%|##########| 4/4 [00:00<00:00, 63.76it/s, loss=nan, metrics={'acc': 0.0}]",
        "Epoch 1/10:   0%|          | 0/238 [00:01<?, ?it/s, loss=nan, lm_loss=nan, lr=0.00e+00]",
    ],
)
def test_a_loss_that_is_none_beside_metrics_or_before_the_first_step(line: str) -> None:
    assert math.isnan(only(tqdm.Reader().feed(line)).loss or 0.0)


def test_a_finite_loss_before_the_first_step_is_no_point() -> None:
    """It belongs to the step that is counted next; a dict glued to a bar is another format's."""
    assert not list(tqdm.Reader().feed("Epoch 1:   0%|   | 0/238 [00:01<?, ?it/s, loss=2.1]"))
    assert not list(tqdm.Reader().feed("100%|###| 4/4 [00:00<00:00, 9.1it/s]{'loss': 2.1}"))


@pytest.mark.parametrize(
    ("line", "kind", "step"),
    [
        ("saved runs/unet-a/step_001500.pt", "checkpoint_saved", 1500),
        ("Finished Training", "finished", None),
        ("2026-05-02 04:44:29 training finished, exiting", "finished", None),
        ("Training complete in: 1:30:40.328945.", "finished", None),
    ],
)
def test_what_a_loop_says_of_itself(line: str, kind: str, step: int | None) -> None:
    said = only(markers.Reader().feed(line))
    assert (said.kind, said.step) == (kind, step)


@pytest.mark.parametrize(
    "line",
    [
        "saved figures/step_plot.png",
        "Finished Training the tokenizer on 3 files",
        "training finished, exiting the loop early",
    ],
)
def test_what_only_looks_alike(line: str) -> None:
    assert not list(markers.Reader().feed(line))


@pytest.mark.parametrize(
    "line",
    [
        "I1122 17:23:11.865787 1396 train.py:48] finished 90 steps",
        "[11-22 17:23:33 gpu1:0] reached 80 iterations, bye",
        "[2026-11-22 17:22:14,584][__main__][INFO] - fit() done: 96 optimizer steps",
        '{"ts": "2026-11-22T17:25:17.724", "event": "done", "updates": 80}',
    ],
)
def test_an_end_in_other_words(line: str) -> None:
    assert only(markers.Reader().feed(line)).kind == "finished"


@pytest.mark.parametrize(
    "line",
    ["warm-up finished 10 steps before the schedule",
     "we reached 80 iterations of the outer loop so far", "fit() will be done later",
     '{"event": "done_loading", "rows": 9}'],
)  # fmt: skip
def test_no_end_in_other_words(line: str) -> None:
    assert not list(markers.Reader().feed(line))


@pytest.mark.parametrize(
    ("line", "name", "loss"),
    [
        ("iter 68/400 ctc 1.2277 fwd 0.700s sync 0.003s", "ctc", 1.2277),
        ("2026-11-22T17:23:29 iter   47  mse 0.62160  total 0.616s", "mse", 0.6216),
    ],
)
def test_a_loss_by_what_it_is(line: str, name: str, loss: float) -> None:
    said = only(plain.Reader().feed(line))
    assert (said.loss_name, said.loss) == (name, loss)


def test_a_line_that_names_its_loss_has_no_other() -> None:
    said = only(plain.Reader().feed("step 4/70 loss 4.423 mse 0.2"))
    assert (said.loss_name, said.loss) == ("loss", 4.423)


def test_a_count_that_goes_on_is_no_end() -> None:
    """A loop that tells every hundred steps that so many are completed has not ended at the last
    that was printed: a run that was cut off there would pass for a whole one."""
    reader = markers.Reader()
    said = [list(reader.feed(f"INFO completed {n} steps")) for n in (100, 200, 300)]

    assert [bool(one) for one in said] == [True, False, False]


@pytest.mark.parametrize(
    ("line", "step", "took_s", "data_s", "sync_s"),
    [
        ("it   20/2000 loss 5.6 599.4 img/s iter 3417 ms (data 5.2 ms)", 20, 3.417, 0.0052, None),
        ("[   10/9000] loss 4.6 (4.6)  time 1.528  data 0.122  mem 61.2G", 10, 1.528, 0.122, None),
        ("| epoch 0 | step 10 | 0.11% | ms/batch  1932.73 | loss  4.893", 10, 1.93273, None, None),
        ("it  25 loss 3.7 | fwd 237.8 comm_wait 118.2 | total 871.9 ms", 25, 0.8719, None, 0.1182),
        ("step 7 loss 2.1 step_time=1.9 wait_allreduce=0.637", 7, 1.9, None, 0.637),
        ("step 20 loss 8.1 step_s 2.20 h2d_s 0.04 allreduce_wait_s 0.30", 20, 2.2, None, 0.3),
        ("step 20 loss 8.1 step_ms 2200 nccl_ms 300", 20, 2.2, None, 0.3),
        ("step 40 loss 4.2 | step_time 2.3s fwd 1.4s wait(allreduce) 0.8s", 40, 2.3, None, 0.8),
        ("it   90 | loss 2.1 | gnorm 0.6 | step 3.9s | data 0.02s", 90, 3.9, 0.02, None),
        ("it 90/900 loss 2.08 time 4.649 (4.649) data 2.799 imgs/s 165.2", 90, 4.649, 2.799, None),
    ],
)  # fmt: skip
def test_what_a_step_took_in_other_words(
    line: str, step: int, took_s: float, data_s: float | None, sync_s: float | None
) -> None:
    """A time per iteration is no step, and parts of a step are in its unit."""
    point = only(plain.Reader().feed(line))

    assert point.step == step
    assert point.step_s == pytest.approx(took_s)
    assert (point.data_s, point.sync_s) == (
        None if data_s is None else pytest.approx(data_s),
        None if sync_s is None else pytest.approx(sync_s),
    )
