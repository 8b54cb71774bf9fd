"""
CycleGAN and pix2pix: `(epoch: 1, iters: 100, time: 0.306, data: 0.201) G_GAN: 1.2 D_real: 0.6`.

`iters` counts images within the epoch, which are no steps; what is read is that an epoch is being
trained.  The losses are those of adversaries, which are not meant to fall.

Source: `Visualizer.print_current_losses` of util/visualizer.py,
junyanz/pytorch-CycleGAN-and-pix2pix, and the many copies of it.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "cyclegan"
FRAMEWORK = None
TRIGGERS = (r"\(epoch: [0-9]+, iters: [0-9]+, time: ",)
RULES = (
    rule("train", r"\(epoch: (?P<epoch>[0-9]{1,7}), iters: [0-9]{1,12}, time: [0-9.]{1,12}(?:, "
         r"data: [0-9.]{1,12})?\) "),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
