"""Lines that `srun -l` cut in two."""

from __future__ import annotations

from pathlib import Path

from flatline.collect import Request, collect


def test_a_line_cut_across_a_signature_is_read_whole(tmp_path: Path) -> None:
    """slurmstepd passes 1,024 bytes on at a time; srun labels both parts and ends the first."""
    steps = "".join(f"{r}: step {s}/100 loss {5 - s / 100}\n" for s in range(3) for r in range(4))
    head = "RuntimeError: " + "x" * 976 + " CUDA error: device-side asse"
    cut = f"1: {head}\n2: hello\n1: rt triggered\n3: bye\n"
    (tmp_path / "job.log").write_text(steps + cut, "utf-8")

    facts = collect(Request((str(tmp_path),)))

    assert [m.signature.id for m in facts.matches] == ["cuda-device-assert"]
    assert facts.matches[0].cite.line == 13
