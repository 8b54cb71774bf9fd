"""
OpenPCDet: `epoch: 0/80, acc_iter=50, cur_iter=49/464, ... loss=1.5, d_time=0.01(0.02), ...`.

`acc_iter` counts the iterations of the run, also over a resume; `cur_iter` those of the epoch.
`b_time` is a whole iteration, `d_time` what of it was spent waiting for data, each with its mean
behind it.  Without `--use_logger_to_record` the same is drawn as bars, which `tqdm` reads.

Source: tools/train_utils/train_utils.py and tools/train.py, open-mmlab/OpenPCDet, since 0.6.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "openpcdet"
FRAMEWORK = "OpenPCDet"
TRIGGERS = (r"[0-9], acc_iter=[0-9]+, cur_iter=", r"\*\*\*\*End training ")
RULES = (
    rule("train", r"\bepoch: (?P<epoch>[0-9]{1,7})/(?P<epochs>[0-9]{1,7}), acc_iter=(?P<step>"
         r"[0-9]{1,12}), cur_iter=(?P<n>[0-9]{1,12})/(?P<of>[0-9]{1,12}), ",
         says=fields(loss=r"(?<![\w.])loss=#", s=r"\bb_time=#", data=r"\bd_time=#",
                     lr=r"(?<![\w.])lr=#")),
    rule("finished", r"\*{10}End training [^*\n]{1,200}\*{10,40}\s*$"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
