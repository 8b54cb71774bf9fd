"""
MAPPO's on-policy code and HARL: an update of so many, and the mean reward below it.

    Env mamujoco Task Humanoid-v2-9|8 Algo happo Exp a updates 20/2000 episodes, total num timesteps 80000/8000000, FPS 623.
    Some episodes done, average episode reward is 504.2.

Each update trains on a roll-out, which it calls an episode.  No loss is printed; the reward is
told as what is measured.  The first update is 0 in the one and 1 in the other.

Source: the runners of marlbenchmark/on-policy onpolicy/runner; `BaseLogger` of PKU-MARL/HARL
harl/common/base_logger.py.
"""  # noqa: E501

from __future__ import annotations

from flatline.parsers._rules import RuleReader, rule

FORMAT = "mappo"
FRAMEWORK = "mappo"
TRIGGERS = (
    r" episodes, total num timesteps [0-9]+/[0-9]+, FPS",
    r"(?i:average episode rewards?) is [-0-9n]",
    r"(?i:average step reward) is [-0-9n]",
)
RULES = (
    rule(
        "train",
        r"\bupdates (?P<step>[0-9]{1,12})/(?P<planned>[0-9]{1,12}) episodes,"
        r" total num timesteps [0-9]{1,15}/[0-9]{1,15}, FPS (?P<speed>[0-9]{1,12})",
        unit="frames/s",
    ),
    rule(
        "eval",
        r"(?i)\b(?:evaluation|eval) average episode rewards? is (?P<loss><#>)",
        loss_name="evaluation's average episode reward",
        falling=False,
    ),
    rule(
        "eval",
        r"(?i)\baverage episode rewards? is (?P<loss><#>)",
        loss_name="average episode reward",
        falling=False,
    ),
    rule(
        "eval",
        r"(?i)\baverage step reward is (?P<loss><#>)",
        loss_name="average step reward",
        falling=False,
    ),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
