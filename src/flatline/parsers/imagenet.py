"""
PyTorch's ImageNet example and the many loops written after it (MoCo, DINO, Swin, SimCLR).

`Epoch: [5][ 40/40]  Time  0.258 ( 0.237)  Data  0.254 ( 0.233)  Loss 2.7e+00 (3.9e+00) ...`:
the first number of a pair is the last step's, the one in brackets the mean of the epoch so far.
Of times the steps since the line before are told by the difference of two means, as far as their
decimals carry: one step in a hundred says little of a loader.  Epochs count from 0, or from 1
where a stream begins with the first half of it and no checkpoint was loaded before;
the step of an epoch is kept as printed, from 0 (`[  10/5005]`) in versions up to 2022 and from 1
(`[   11/5005]`) since.  `Test: [...]` lines are evaluation, and so are those of a second loop of
another length in the same epoch, which loops of one function for both print under `Epoch:`.

Source: `AverageMeter`, `ProgressMeter.display` and `main_worker`, pytorch/examples
imagenet/main.py, 2017 to 2025; `MetricLogger.log_every` of torchvision's references (and
DeiT, DINO, MAE), whose line is `Epoch: [0]  [ 10/5004]  eta: 0:10:00  lr: ...  time: 0.5`;
the example's evaluation (`Test: [10/782]  Time ...`, ` * Acc@1 0.1 Acc@5 0.5`); Swin's
`Train: [0/300][10/1251]  eta ... loss 6.9 (6.9) grad_norm 1.2 (1.3)`, microsoft/Swin-Transformer
main.py; `DataLoadingTime 0.047`, soumith/imagenet-multiGPU.torch train.lua.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from flatline.model import Progress
from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "imagenet"
FRAMEWORK = None
TRIGGERS = (
    r"Epoch: ?\[ *[0-9]+\]\[ *[0-9]+/[0-9]+\]\s",
    r"Train: ?\[ *[0-9]+/[0-9]+\]\[ *[0-9]+/[0-9]+\]\s",
    r"Epoch: ?\[ *[0-9]+\] +\[ *[0-9]+/ *[0-9]+\] +eta: ",
    r"Test: +\[ *[0-9]+/[0-9]+\]\s",
    r"=> (loaded|no) checkpoint ",
    r"Resume checkpoint [^ ]+\.pth",
)
_FIELDS = {
    "s": r"\b[Tt]ime:? +#",
    "loss": r"\b[Ll]oss:? +#",
    "norm": r"\bgrad_norm:? +#",
    "lr": r"\b(?:lr|LR|Lr):? +#",
    "data": r"\b[Dd]ata(?:[Ll]oading)?_?(?:[Tt]ime)?:? +#",
}
RULES = (
    rule("train", r"\bEpoch: ?\[ *(?P<epoch>[0-9]{1,7})\]\[ *(?P<n>[0-9]{1,12})/ *"
         r"(?P<of>[0-9]{1,12})\](?=\s)", says=fields(**_FIELDS)),
    rule("train", r"\bTrain: ?\[ *(?P<epoch>[0-9]{1,7})/(?P<epochs>[0-9]{1,7})\]"
         r"\[ *(?P<n>[0-9]{1,12})/ *(?P<of>[0-9]{1,12})\](?=\s)", says=fields(**_FIELDS)),
    rule("train", r"\bEpoch: ?\[ *(?P<epoch>[0-9]{1,7})\] +\[ *(?P<n>[0-9]{1,12})/ *"
         r"(?P<of>[0-9]{1,12})\](?= +eta: )", unit="images/s",
         says=fields(**_FIELDS, speed=r"\bimg/s: +#")),
    rule("eval", r"\bTest: *\[ *[0-9]{1,12}/ *[0-9]{1,12}\](?=\s)",
         says=fields(loss=r"\b[Ll]oss:? +#")),
    rule("checkpoint_loaded",
         r"=> loaded checkpoint .{1,400}?\(epoch (?P<epoch>[0-9]{1,7})[,)]"),
    rule("checkpoint_loaded", r"^\W{0,40}Resume checkpoint [\w./~-]{1,400}?"
         r"(?:checkpoint-(?P<epoch>[0-9]{1,7}))?\.pth\s*$"),
    rule("fresh", r"=> no checkpoint found at "),
)  # fmt: skip


_MEANS = re.compile(r"\b(Time|Data) +([0-9.]{1,16}) \( *([0-9]{1,9}\.([0-9]{1,9}))\)")
EXACT = 0.1
"""Of a mean over the steps between two lines, the most that the rounding of both may be."""


class Reader(RuleReader):
    """Keeps the epoch and the length of its training loop, and the means of the line before."""

    def __init__(self) -> None:
        super().__init__(RULES)
        self._epoch: tuple[float, int] | None = None
        self._before: tuple[int, dict[str, float]] | None = None
        self._first: int | None = None
        self._zero: int | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """At most one value a line."""
        return tuple(
            self._since(self._phase(self._counted(said)), text) for said in super().feed(text)
        )

    def _counted(self, said: Progress) -> Progress:
        """Of loops that call their first epoch 1, with a step that counts from there."""
        if self._zero is None and said.kind == "checkpoint_loaded":
            self._zero = 0
        if said.kind != "train" or said.epoch is None:
            return said
        if said.step is None or not said.per_epoch:
            return said
        if self._zero is None or said.epoch < self._zero:
            begins = said.epoch == 1 and 2 * (said.step - said.per_epoch) <= said.per_epoch
            self._zero = int(begins)
        if self._zero == 0:
            return said
        return replace(said, step=said.step - said.per_epoch)

    def _since(self, said: Progress, text: str) -> Progress:
        """With the times of all steps since the line before, of the same epoch."""
        if said.kind != "train" or said.step is None or not said.per_epoch:
            return said
        means = {name: (own, mean, digits) for name, own, mean, digits in _MEANS.findall(text)}
        n = said.step % said.per_epoch
        if means and all(float(own) == float(mean) for own, mean, _ in means.values()):
            self._first = n  # a mean of one step
        values = {name: float(mean) for name, (_, mean, _) in means.items()}
        before, self._before = self._before, (n, values)
        if before is None or n <= before[0] or not values.keys() <= before[1].keys():
            return said
        steps, first = n - before[0], 0 if self._first is None else self._first
        told = {name: (mean * (n - first + 1) - before[1][name] * (before[0] - first + 1)) / steps
                for name, mean in values.items()}  # fmt: skip
        rounded = max((10.0 ** -len(digits) for *_, digits in means.values()), default=0.0)
        unsure = max((abs(mean - before[1][name]) for name, mean in values.items()), default=0.0)
        off = (rounded * (n + 1) + (unsure if self._first is None else 0.0)) / steps
        whole = told.get("Time", 0.0)
        if whole <= 0 or off > EXACT * whole:
            return said
        data = told.get("Data")
        return replace(
            said, step_s=whole, data_s=None if data is None else min(max(0.0, data), whole)
        )

    def _phase(self, said: Progress) -> Progress:
        if said.kind != "train" or said.epoch is None or said.per_epoch is None:
            return said
        if self._epoch is not None and said.epoch == self._epoch[0]:
            if said.per_epoch != self._epoch[1]:
                return replace(said, kind="eval", step=None, planned=None, per_epoch=None)
            return said
        self._epoch = said.epoch, said.per_epoch
        return said
