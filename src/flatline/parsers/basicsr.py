"""
BasicSR and the restoration and super-resolution code built on it.

    [name..][epoch:  0, iter:     100, lr:(3.000e-05,)] [eta: 4:06:17, time (data): 1.663 (0.247)]
        l_pix: 8.1951e-03 l_percep: ...

Iterations are counted over the whole run and carry thousands commas.  The first loss that is not
a GAN's own stands for the others: those of a generator and its discriminator need not fall.

MMSR and what was built on it (SRFlow) end without the time.

Source: `MessageLogger.__call__` of basicsr/utils/logger.py, `train_pipeline` of basicsr/train.py,
XPixelGroup/BasicSR.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "basicsr"
FRAMEWORK = "BasicSR"
TRIGGERS = (
    r"\]\[epoch: *[0-9]+, iter: *[0-9,]+, lr:\(",
    r"Total epochs: [0-9]+; iters: [0-9]",
    r"Resuming training from epoch: [0-9]+, iter: [0-9]",
    r"Start training from epoch: [0-9]+, iter: [0-9]",
    r"Saving models and training states",
    r"End of training\.( Time consumed: |$)",
)
RULES = (
    rule(
        "train",
        r"\]\[epoch: *(?P<epoch>[0-9,]{1,9}), iter: *(?P<step>[0-9,]{1,15}), lr:\(",
        says=fields(
            loss=r" l_(?!g_gan|d_|gan)\w{1,40}: #",
            s=r", time \(data\): #",
            data=r", time \(data\): [0-9.]+ \(#",
            lr=r"#",
        ),
    ),
    rule("plan", r"\bTotal epochs: [0-9]{1,9}; iters: (?P<planned>[0-9]{1,12})"),
    rule("fresh", r"\bStart training from epoch: 0, iter: 0\b"),
    rule("resume", r"\b(?:Start|Resuming) training from epoch: \d{1,9}, iter: (?P<step>\d{1,12})"),
    rule("checkpoint_saved", r"\bSaving models and training states"),
    rule("finished", r"\bEnd of training\.(?: Time consumed: |\s*$)"),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
