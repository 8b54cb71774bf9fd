"""
nanotron: `iteration: 5 / 100 | consumed_tokens: 1.31M | elapsed_time_per_iteration_ms: 312 | ...`.

Numbers are written for people (`4.2K`, `1.31M`), so step time and throughput have three digits at
most.  "Saving checkpoint at" says that a save began and is not taken for one.

Source: `DistributedTrainer.train_step_logs` of nanotron/trainer.py, `LoggerWriter` and
`human_format` of nanotron/logging; 0.3 to 0.4.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "nanotron"
FRAMEWORK = "nanotron"
TRIGGERS = (r"iteration: [0-9]+ / [0-9]+ \| ",)
RULES = (
    rule(
        "train",
        r"\biteration: (?P<step>[0-9]{1,12}) / (?P<planned>[0-9]{1,12}) \|",
        unit="tokens/s",
        loss_name="lm_loss",
        says=fields(
            loss=r"\blm_loss: #",
            lr=r"\blr: #",
            norm=r"\bgrad_norm: #",
            ms=r"\b(?:elapsed_)?time_per_iteration_ms: ([0-9.]{1,16}(?:e[-+][0-9]{1,3})?[KMGB]?)",
            speed=r"\btokens_per_sec: ([0-9.]{1,16}(?:e[-+][0-9]{1,3})?[KMGB]?)",
        ),
    ),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
