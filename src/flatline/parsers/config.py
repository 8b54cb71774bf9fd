"""
The plan in a printed configuration: `Namespace(epochs=90)`, YAML, JSON, dotted dumps, options.

Steps: max_steps, max_train_steps, train_iters, max_iters, max_update and their like; epochs:
epochs, num_epochs, max_epochs, num_train_epochs.  Each is read as an assignment (`name=90`,
`name: 90`, `"name": 90`, Megatron's `name ....... 90`) or as an option of a command line
(`--name 90`), epochs as well where training is said to start for so many.  What is planned so is
weaker than what the program says it does: see `flatline.tracks.plan_of`.

Refused: counts of a warm-up, a scheduler, an evaluation or of steps in an epoch, told by the words
joined to the name; attributes of objects (`self.max_steps`), other than of a trainer's section;
help texts and defaults; values below 1 (`max_steps=-1` asks for epochs).

Source: argparse.Namespace; TrainingArguments.__str__ of transformers; `_print_args` of
Megatron-LM's megatron/training/arguments.py; yaml.dump and OmegaConf.to_yaml, as NeMo, Lightning's
CLI, torchtune and LLM Foundry print; json.dumps of dataclasses (torchtitan's job config); `set -x`
of bash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from flatline.model import Progress
from flatline.parsers._rules import Late

FORMAT = "config"
FRAMEWORK = None
GENERIC = 2
_STEPS = (
    r"max[_-]steps|max[_-]train[_-]steps|num[_-]train[_-]steps|train[_-]iters|max[_-]iters"
    r"|max[_-](?:num[_-])?iterations|max[_-]updates?|total[_-]training[_-]steps|num[_-]training[_-]steps"
)
_EPOCHS = r"epochs|(?:num|max|n|total|train|num[_-]train)[_-]epochs"
_LIKE = r"(steps|iters|iterations|updates?|epochs)"
TRIGGERS = (
    "_" + _LIKE + r"[\"']?( ?[:=] ?| \.+ |[ =])[\"']?[0-9]",
    "-" + _LIKE + r"[\"']?( ?[:=] ?| \.+ |[ =])[\"']?[0-9]",
    r"(^|[^A-Za-z_])epochs[\"']?( ?[:=] ?| \.+ |[ =])[\"']?[0-9]",
    r"(?i:training) for [0-9]+ epochs",
)
_NAME = rf"(?:(?P<steps>{_STEPS})|(?P<epochs>{_EPOCHS}))"
_VALUE = r"[\"']?(?P<value>[0-9]{1,3}(?:[,_][0-9]{3})+|[0-9]{1,12})(?:\.0+)?[\"']?(?![\w.%/])"
_ASSIGNED = Late(
    rf"(?i)(?<![\w.#\-])(?<![0-9] )(?:(?:trainer|training|train|train_cfg|solver)[./])?{_NAME}"
    rf"[\"']?(?: ?[:=] ?| \.{{3,}} ){_VALUE}",
)
_OPTION = Late(rf"(?i)(?<!\S)--(?:trainer\.|training\.)?{_NAME}[ =]{_VALUE}")
_ANNOUNCED = Late(
    r"(?i)(?:^|[\]:>] {0,3}|\bnow )(?:start(?:ing)?|begin(?:ning)?) training for"
    r" (?P<value>[0-9]{1,9}) (?P<epochs>epochs)\b(?P<steps>(?!))?"
)
_NOT_SAID = Late(
    r"(?i)\busage:|\bhelp=|\(default|default[:=]|add_argument|sched\w*[\"']?\s*[:=]?\s*[({.]"
    r"|^\s*(?:(?:def|class|return|assert|raise|if|for|while)\b|#)",
)
_LONGEST = 16_384
_KEPT = 64
"""Values one stream may set; more are a table, not a configuration."""


class Reader:
    """Reads one stream; says each value once."""

    def __init__(self) -> None:
        self._said: set[tuple[str, int]] = set()

    def feed(self, text: str) -> Iterable[Progress]:
        """What the line plans: a value for each name that sets one."""
        text = text[:_LONGEST]
        if len(self._said) >= _KEPT or (len(text) < 400 and _NOT_SAID.search(text)):
            return ()
        told: list[Progress] = []
        for found in (
            one for how in (_ASSIGNED, _OPTION, _ANNOUNCED) for one in how.pattern().finditer(text)
        ):
            kind = "steps" if found["steps"] else "epochs"
            value = int(re.sub("[,_]", "", found["value"]))
            if value < 1 or (kind, value) in self._said:
                continue
            self._said.add((kind, value))
            told.append(
                Progress("config", planned=value)
                if kind == "steps"
                else Progress("config", epochs=float(value))
            )
        return told
