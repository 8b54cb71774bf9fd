"""
Ray's tables: what a trainer reported of an iteration, and how far a lone trial of Tune has come.

    Training finished iteration 3 at 2025-04-08 06:28:34. Total running time: 7min 13s
    │ time_this_iter_s      144.0 │
    │ loss                 0.3847 │

    Trial status: 1 RUNNING
    │ Trial name              status       iter     total time (s)       ts     reward │
    │ PPO_merge_5f1c2_00000   RUNNING        12            184.213    48000     31.207 │

Older ones draw a row as `| PPO_merge_5f1c2_00000 | RUNNING | 10.0.0.7:4242 | 12 | 184.213 | 48000
| 31.207 |`: where its head was cut off and one trial alone is told of, its columns are these.

A trainer reports what it likes, once an epoch as a rule.  Where Tune has several trials they take
turns in its tables, which are left alone.  A status is printed every half minute, whether or not
an iteration has ended since; its seconds are those of the trial's training.  Returns and rewards
are told as measured, not as losses.

Source: `AirResultProgressCallback._print_result`, `TuneTerminalReporter` and `on_trial_complete`
of ray-project/ray python/ray/tune/experimental/output.py (2.7 and later), and `trial_progress_str`
of python/ray/tune/progress_reporter.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, count, number

FORMAT = "ray_train"
FRAMEWORK = "ray"
ANCHORED = True
TRIGGERS = (
    "Training finished iteration [0-9]",
    "│ time_this_iter_s ",
    "│ (?:train(?:ing)?[_/])?loss  ",
    "Trial status: [0-9]",
    "Number of trials: [0-9]",
    "Trial name  ",
    " RUNNING  ",
    "Trial [^ ]+ completed (?:training )?after [0-9]",
    "Training completed after [0-9]+ iteration",
)
_BEGINS = Late(r"\s*Training finished iteration (\d{1,9}) at \d{4}-")
_TOOK = Late(rf"│ time_this_iter_s {{1,40}}({NUMBER}) {{0,9}}│")
_LOSS = Late(rf"│ ((?:train(?:ing)?[_/])?loss) {{1,60}}({NUMBER}) {{0,9}}│")
_STATUS = Late(r"\s*(?:Trial status: |Number of trials: (?:\d{1,6}/)?\d{1,6} \()(\d.{0,200})$")
_LONE = Late(r"1 (RUNNING|PENDING|TERMINATED|ERROR|PAUSED)\)?\s*$")
_COMPLETED = Late(
    r"\s*Trial \S{1,200} completed (?:training )?after (\d{1,9}) iterations? at \d{4}-"
)
_TRAINED = Late(r"\s*Training completed after \d{1,9} iterations? at \d{4}-")
_HEADLESS = Late(
    r"\s*[|│] (?P<trial>[\w.-]{1,200}_\d{5}) +[|│] RUNNING +[|│] [\d.]{7,15}:\d{1,5} +[|│]"
    rf" +(\d{{1,9}}) +[|│] +({NUMBER}) +[|│] +\d{{1,15}} +[|│](?: +({NUMBER}) +[|│])?\s*$"
)
_CELLS = Late(r"\s*[|│]\s*|\s{2,}")
_REPORTED = Late(r"(?:train(?:ing)?[_/])?loss$")
_REWARD = Late(r"(?:[\w./]{0,40}[_ /])?(?:reward|return)(?:_mean)?$")


class Reader:
    """Reads one stream; holds the iteration at hand, and the columns of the trial's table."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._took_s: float | None = None
        self._lone = self._over = False
        self._names: list[str] = []
        self._told: tuple[int, float | None] | None = None
        self._trial: str | None = None
        self._headed = False

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point with the loss that an iteration reported, or of the lone trial."""
        text = text[:1000]
        if found := _BEGINS.match(text):
            self._step, self._took_s = int(found[1]), None
        elif _TRAINED.match(text):
            return (Progress("finished"),)
        elif found := _TOOK.search(text):
            self._took_s = number(found[1])
        elif (found := _LOSS.search(text)) and self._step is not None:
            step, self._step = self._step, None
            return (
                Progress("train", step, loss=number(found[2]), loss_name=found[1],
                         step_s=self._took_s),
            )  # fmt: skip
        elif found := _STATUS.match(text):
            lone, self._headed = _LONE.match(found[1]), True
            self._lone, self._names = lone is not None and not self._over, []
            if self._lone and lone is not None and lone[1] == "TERMINATED":
                return self._ended()
        elif self._lone:
            return self._of_a_trial(text)
        elif not self._headed:
            return self._without_a_head(text)
        return ()

    def _without_a_head(self, text: str) -> Iterable[Progress]:
        found = _HEADLESS.match(text)
        self._headed = "Trial name" in text
        if found is None:
            return ()
        self._headed = self._trial not in (None, found["trial"])  # several take turns
        self._trial = found["trial"]
        said = dict(zip(("iter", "total time (s)", "reward"), found.groups()[1:], strict=True))
        return () if self._headed else self._row({n: v for n, v in said.items() if v})

    def _of_a_trial(self, text: str) -> Iterable[Progress]:
        if found := _COMPLETED.match(text):
            return self._ended(int(found[1]))
        cells = [cell.strip() for cell in _CELLS.pattern().split(text.strip().strip("|│").strip())]
        if cells[0] == "Trial name":
            self._names = cells
        if len(cells) != len(self._names) or "RUNNING" not in cells[1:2]:
            return ()
        return self._row(dict(zip(self._names, cells, strict=True)))

    def _ended(self, step: int | None = None) -> Iterable[Progress]:
        """What a program tunes after that is another run."""
        self._over, self._lone = True, False
        return (Progress("finished", step),)

    def _row(self, said: dict[str, str]) -> Iterable[Progress]:
        step, ran = count(said.get("iter")), number(said.get("total time (s)"))
        before = self._told
        if step is None or (before is not None and step == before[0]):
            return
        self._told = step, ran
        took = None
        if before is not None and before[1] is not None and ran is not None and step > before[0]:
            took = (ran - before[1]) / (step - before[0])
        rewards = {n: number(v) for n, v in said.items() if _REWARD.match(n)}
        loss = next(
            ((n, number(v)) for n, v in said.items() if _REPORTED.match(n)), ("loss", None)
        )
        yield Progress("train", step, loss=loss[1], loss_name=loss[0], falling=not rewards,
                       step_s=took if took is not None and took > 0 else None)  # fmt: skip
        for name, reward in list(rewards.items())[:1]:
            if reward is not None and isfinite(reward):
                yield Progress("eval", step, loss=reward, loss_name=name, falling=False)
