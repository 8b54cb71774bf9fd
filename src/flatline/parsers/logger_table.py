"""
Blocks of `| name | value |` between dashed lines: OpenAI's loggers and Stable Baselines 3.

    --------------------------
    | loss        | 0.112    |
    | step        | 300      |
    --------------------------

A point is told once a block has named both its loss and its count (`step`, `iterations`,
`nupdates`), in whichever order; where no block names a loss, of each iteration beyond the first as
the next one begins, for Stable Baselines updates its policy between two, and the mean reward of an
episode as what is measured there.  Where a block speaks of rewards, returns or an agent's own
quantities, its losses are a policy's and a value's, which are not meant to fall.  Samples and
environment steps are no steps: a block that names these alone, and a reward, is a point without a
number, unless any names one.  A reward that is measured over episodes behind the blocks, as the
library's own examples do, ends the run; RL Zoo ends once it has learnt and says where it saves: in
a folder that it names after the environment and the run's number.

Source: `HumanOutputFormat` of baselines/logger.py, of guided_diffusion/logger.py (and of
improved-diffusion, and what is built on both) and of stable_baselines3/common/logger.py;
`ExperimentManager.save_trained_model` of DLR-RM/rl-baselines3-zoo; Stable Baselines 3's
examples (`evaluate_policy`).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from flatline.model import Progress
from flatline.parsers._rules import NUMBER, Late, count, number

FORMAT = "logger_table"
FRAMEWORK = None
ANCHORED = True
TRIGGERS = (
    r"(?:step|loss)(?: |  +)\| [-0-9nNiI]",
    r"(?:iterations|nupdates|grad_norm) +\| [-0-9nNiI]",
    r"(?:ep_rew_mean|ep_reward_mean|eprewmean) +\| [-0-9nN]",
    r"\b(?:ep_ret|epret)",
    r"^Saving to [^ ]+/[^ ]+_[0-9]+",
    r"total_timesteps +\| [0-9]",
    r"[Mm]ean[_ ]reward ?[=:] ?[-0-9]",
    r"(?:n_?updates|explained_variance|exploration_rate|approx_kl) +\| [-0-9nN]",
)
_ROW = Late(rf"\s*\| +(?:[\w]+/)?([\w-]+) +\| ({NUMBER}) +\|?\s*$")
_SAVES = Late(r"Saving to \S{1,300}/[\w.:-]{1,100}_[0-9]{1,6}(?:_[0-9a-f-]{36})?\s*$")
_MEASURES = Late(rf"[Mm]ean[_ ]reward ?[=:] ?{NUMBER} ?(?:\+/-|±) ?{NUMBER}\s*$")
_AGENTS = {"n_updates", "nupdates", "explained_variance", "exploration_rate", "approx_kl"}
_REWARDS = {"ep_rew_mean", "ep_reward_mean", "eprewmean"}
_COUNTS = {"step", "iterations", "nupdates"}


class Reader:
    """Reads one stream; holds what the block at hand has said."""

    def __init__(self) -> None:
        self._step: int | None = None
        self._loss: float | None = None
        self._norm: float | None = None
        self._rewarded = False
        self._told = self._counted = False
        self._reward: tuple[str, float | None] | None = None

    def feed(self, text: str) -> Iterable[Progress]:
        """A training point with the row that completes it."""
        row = _ROW.match(text[:400])
        if row is None:
            ends = self._rewarded and (_SAVES.match(text[:500]) or _MEASURES.match(text[:500]))
            return (Progress("finished"),) if ends else ()
        name, value = row[1], row[2]
        before = self._step if name == "iterations" else None
        if name.startswith("ep") or name in _AGENTS:
            self._rewarded = True
        self._counted = self._counted or name in _COUNTS
        if name == "total_timesteps" and not self._counted:
            return self._unnumbered()
        if name in _REWARDS:
            self._reward = name, number(value)
        if name in _REWARDS and not self._told and self._step is not None and self._step > 1:
            return _measured(self._step, name, number(value))
        if name == "grad_norm":
            self._norm = number(value)
        elif name in _COUNTS:
            self._step = count(value) if value.isdecimal() else _whole(number(value))
        elif name == "loss":
            self._loss = number(value)
        if self._step is None or self._loss is None:
            unsaid = before is not None and before > 1 and not self._told
            return (Progress("train", before),) if unsaid else ()
        said = Progress("train", self._step, loss=self._loss, grad_norm=self._norm,
                        falling=not self._rewarded)  # fmt: skip
        self._step = self._loss = self._norm = None
        self._told = True
        return (said,)

    def _unnumbered(self) -> Iterable[Progress]:
        """An iteration of a block that has no count of them."""
        reward, self._reward = self._reward, None
        if reward is None:
            return ()
        return (Progress("train", falling=False), *_measured(None, *reward))


def _measured(step: int | None, name: str, reward: float | None) -> Iterable[Progress]:
    """A reward by its own name, where it is a number."""
    known = reward is not None and isfinite(reward)
    return (Progress("eval", step, loss=reward, loss_name=name, falling=False),) if known else ()


def _whole(value: float | None) -> int | None:
    """What was printed as `1.2e+04`."""
    return int(value) if value is not None and 0 <= value < 1e15 and value == int(value) else None
