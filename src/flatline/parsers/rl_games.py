"""
rl_games (Isaac Gym, Isaac Lab): `fps step: 91 fps step and policy inference: ... epoch: 1/500`.

An epoch, of one roll-out and its updates, is taken for the step.  No loss is printed, and the mean
reward only where it is the best so far.

Source: `print_statistics` and `train` of rl_games/common/a2c_common.py, Denys88/rl_games.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "rl_games"
FRAMEWORK = "rl_games"
TRIGGERS = (
    r"fps step and policy inference: [0-9.]+ ",
    r"saving next best rewards: ",
    r"=> saving checkpoint '[^\n]{1,400}_ep_[0-9]+_rew_",
    r"^MAX (EPOCHS|FRAMES) NUM!",
    r"^Network won!",
)
RULES = (
    rule(
        "train",
        r"\bfps step: [0-9.]{1,16} fps step and policy inference: [0-9.]{1,16} {1,2}fps total:"
        r" (?P<speed>[0-9.]{1,16})"
        r"(?: epoch: (?P<step>[0-9]{1,12})(?:/(?P<planned>[0-9]{1,12}))?)?",
        unit="frames/s",
    ),
    rule("eval", r"\bsaving next best rewards: {1,3}\[?(?P<loss><#>)", loss_name="best reward",
         falling=False),
    rule("checkpoint_saved", r"=> saving checkpoint '.{1,400}_ep_(?P<step>[0-9]{1,12})_rew_"),
    rule("finished", r"^(?:MAX (?:EPOCHS|FRAMES) NUM|Network won)!\s*$"),
)  # fmt: skip


def Reader() -> RuleReader:
    return RuleReader(RULES)
