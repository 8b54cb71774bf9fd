"""
Cosmos and other loops of NVIDIA's imaginaire4: `[.../iter_speed.py:81:every_n_impl] 100 :
iter_speed 2.41 seconds per iteration | Loss: 0.2310`.

The number in front is the iteration of the run; the speed is the mean since the line before.  The
first iterations are printed one by one, with a count of them (`Hit counter`).  A loss of a
validation carries its own words and is left alone.

Source: `IterSpeed.every_n_impl` of callbacks/iter_speed.py, `Trainer.train` of trainer.py and
`Checkpointer` of checkpointer.py in NVIDIA's cosmos-predict1 and -predict2 repositories.
"""

from __future__ import annotations

from flatline.parsers._rules import RuleReader, fields, rule

FORMAT = "cosmos"
FRAMEWORK = "Cosmos"
TRIGGERS = (
    r" : iter_speed [0-9.]+ seconds per iteration",
    r"Iteration [0-9]+: Hit counter: [0-9]",
    r"Validation loss \(iteration [0-9]+\): ",
    r"trainer\.py:[0-9]+:train\] Done with training\.",
    r"Saved checkpoint \(local\): ",
)
RULES = (
    rule(
        "train",
        r"\b(?P<step>[0-9]{1,12}) : iter_speed (?=[0-9.]{1,12} seconds per iteration)",
        says=fields(
            s=r"# seconds per iteration", loss=r"\| Loss: #", norm=r"\b[Gg]rad[_ ]?[Nn]orm: #"
        ),
    ),
    rule(
        "train",
        r"\bIteration (?P<step>[0-9]{1,12}): Hit counter: [0-9]",
        says=fields(loss=r"\| Loss: #", s=r"\| Time: #"),
    ),
    rule("eval", r"\bValidation loss \(iteration (?P<step>[0-9]{1,12})\): "),
    rule(
        "checkpoint_saved", r"\bSaved checkpoint \(local\): \S{0,300}?iter_(?P<step>[0-9]{1,12})"
    ),
    rule("finished", r"\btrainer\.py:[0-9]{1,6}:train\] Done with training\."),
)


def Reader() -> RuleReader:
    return RuleReader(RULES)
