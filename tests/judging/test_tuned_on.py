"""Weights that are not there, of a model to begin with or of a run that was to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose

SETTINGS = """2026-02-18 11:20:07,551:INFO:__main__:Running {}Recipe with resolved config:

checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
  checkpoint_dir: /models/l3-8b
  checkpoint_files:
  - part-00001-of-00004.safetensors
{}  output_dir: {}
resume_from_checkpoint: {}

"""
RAISED = """Traceback (most recent call last):
  File "/venv/bin/tune", line 8, in <module>
    sys.exit(main())
  File "/venv/lib/python3.12/site-packages/recipes/finetune.py", line 270, in setup
    state = self.load_checkpoint(cfg.checkpointer)
  File "/venv/lib/python3.12/site-packages/torchtune/training/checkpointing/_utils.py", line 90,\
 in get_path
    raise ValueError(f"No file with name: {{filename}} found in {{input_dir}}.")
ValueError: No file with name: part-00001-of-00004.safetensors found in {}.
"""
ADAPTER = "  adapter_checkpoint: epoch_0/adapter_model.pt\n"


@pytest.mark.parametrize(
    ("recipe", "more", "resume", "folder", "told"),
    [
        ("FullFinetune", "", "true", "runs/a", ("E2", "empty")),
        ("FullFinetune", "", "True", "/models/l3-8b", ("E2", "empty")),
        ("LoRAFinetune", "", "true", "runs/a", ("E2", "empty")),
        ("FullFinetune", "", "false", "/models/l3-8b", ("A1", "asset")),
        ("LoRAFinetune", "", "true", "/models/l3-8b", ("A1", "asset")),
        ("Finetune", ADAPTER, "true", "/models/l3-8b", ("A1", "asset")),
    ],
    ids=["what it saved", "of an older release", "where an adapter was saved", "begins anew",
         "the base of an adapter", "the base of an adapter that is named"],
)  # fmt: skip
def test_weights_that_are_not_there(
    tmp_path: Path, recipe: str, more: str, resume: str, folder: str, told: tuple[str, str]
) -> None:
    text = SETTINGS.format(recipe, more, "./runs/a/", resume) + RAISED.format(folder)
    (tmp_path / "train.log").write_text(text)
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.fault_class) == told


def test_without_any_settings(tmp_path: Path) -> None:
    """Nothing says that it resumes."""
    (tmp_path / "train.log").write_text(RAISED.format("runs/a"))
    verdict = diagnose(collect(Request((str(tmp_path),))))

    assert (verdict.code, verdict.fault_class) == ("A1", "asset")
