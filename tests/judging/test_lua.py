"""Errors of programs in Lua: what they are about is told by their words and the stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

FILE = "\t/home/u/torch/install/share/lua/5.1/torch/File.lua:390: in function 'load'\n"
LUAJIT = "/home/u/torch/install/bin/luajit: "
MAIN = "\ttrain.lua:9: in main chunk\n\t[C]: in function 'dofile'\n"


def verdict(folder: Path, said: str, *stack: str) -> Verdict:
    below = "stack traceback:\n\t[C]: in function 'error'\n" + "".join(stack) + MAIN
    (folder / "train.log").write_text(f"{LUAJIT}{said}\n{below}")
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("said", "stack", "wanted"),
    [
        ("/x/lua/5.1/torch/File.lua:301: table index is nil",
         (FILE, "\t./donkey.lua:20: in function 'setup'\n"), "data"),
        ("/x/lua/5.1/torch/File.lua:301: table index is nil",
         (FILE, "\t./models/vgg.lua:20: in main chunk\n"), "config"),
        ("/x/lua/5.1/torch/File.lua:301: table index is nil",
         (FILE, "\t./model.lua:20: in function 'build'\n"), "asset"),
        ("train.lua:14: attempt to perform arithmetic on field 'lr' (a nil value)", (), "config"),
        ("cannot open <val.t7> in mode r  at /x/TH/THDiskFile.c:670", (FILE,), "data"),
        ("cannot open <models/res.t7> in mode r  at /x/TH/THDiskFile.c:670", (FILE,), "asset"),
        ("cannot open <out/log.t7> in mode w  at /x/TH/THDiskFile.c:670", (FILE,), "config"),
    ],
)  # fmt: skip
def test_what_an_error_is_about(
    tmp_path: Path, said: str, stack: tuple[str, ...], wanted: str
) -> None:
    found = verdict(tmp_path, said, *stack)
    assert (found.code, found.fault_class, found.confidence < 0.8) == ("A1", wanted, True)


def test_a_line_that_says_more_decides(tmp_path: Path) -> None:
    """A card that is full is told by what the library says below the same name."""
    said = (
        "...torch/install/share/lua/5.1/nn/Container.lua:67: cuda runtime error (2) : out of"
        " memory at /tmp/cutorch/lib/THC/generic/THCStorage.cu:66"
    )
    assert verdict(tmp_path, said).code == "B1"
