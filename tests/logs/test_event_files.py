"""TensorBoard's event files are lines of text: a line a step, cited and verified as logs are."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flatline.collect import Request, collect
from flatline.logs.event_files import is_event_file
from flatline.logs.reading import open_text
from logs.event_writing import event, first, part, record, simple, tensor, written

AT = 1_700_000_000.25


def lines(tmp_path: Path, data: bytes) -> tuple[list[str], list[str]]:
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(data)
    with open_text(path, path.name) as file:
        text = b"".join(block.data for block in file.blocks())
        return text.decode().splitlines(), [gap.reason for gap in file.gaps]


def test_scalars_of_a_step_stand_on_one_line(tmp_path: Path) -> None:
    """Those of TensorFlow 1 and 2 alike, dated by the first."""
    data = written(
        event(AT, 120, simple("train/loss", 1.5)),
        event(AT + 0.1, 120, tensor("train/lr", 2e-5), tensor("acc", 0.5, content=True)),
        event(AT + 9, 121, simple("train/loss", math.nan)),
    )

    assert lines(tmp_path, data) == (
        [
            "2023-11-14T22:13:20.250000Z tfevents step 120: train/loss=1.5 train/lr=2e-05 acc=0.5",
            "2023-11-14T22:13:29.250000Z tfevents step 121: train/loss=nan",
        ],
        [],
    )


def test_a_file_cut_at_its_end_is_read_up_to_there(tmp_path: Path) -> None:
    """As a run that was killed leaves it."""
    data = written(event(AT, 1, simple("loss", 2.0)), event(AT, 2, simple("loss", 1.0)))[:-7]
    found, gaps = lines(tmp_path, data)

    assert [line.rpartition(" ")[2] for line in found] == ["loss=2.0"]
    assert gaps == ["cut off within its last record"]


def test_a_damaged_record_is_left_out_and_the_next_is_read(tmp_path: Path) -> None:
    """Its checksum tells; a damaged length ends the reading."""
    one, two = event(AT, 1, simple("loss", 2.0)), event(AT, 2, simple("loss", 1.0))
    found, gaps = lines(tmp_path, written(one[:20] + b"\xff" + one[21:], two))
    assert len(found) == 1
    assert gaps == ["1 damaged records were left out"]

    found, gaps = lines(tmp_path, written(one, b"\x00" + two[1:]))
    assert len(found) == 1
    assert "not read from there" in gaps[0]


def test_what_is_no_scalar_is_passed_over(tmp_path: Path) -> None:
    """Images, texts, tensors of more numbers, and graphs."""
    image = part(1, b"image") + part(4, b"\x08\x01" + part(4, b"PNG"))
    vector = part(1, b"v") + part(8, b"\x08\x01" + part(5, b"\0" * 8))
    text = part(1, b"t") + part(8, b"\x08\x07" + part(8, b"hello"))
    found, gaps = lines(tmp_path, written(event(AT, 1, image, vector, text), event(AT, 2)))

    assert (found, gaps) == ([], [])


def test_a_tag_cannot_pass_for_anything_else(tmp_path: Path) -> None:
    """It is one word on its line, and no error line of the run."""
    (tmp_path / "run").mkdir()
    tag = "x\nTraceback (most recent call last):\nRuntimeError: CUDA out of memory. loss=9"
    path = tmp_path / "run" / "events.out.tfevents.1"
    path.write_bytes(written(event(AT, 1, simple(tag, 1.0), simple("loss", 2.0))))
    facts = collect(Request((str(tmp_path / "run"),)))

    assert (facts.matches, facts.crashes) == ((), ())
    assert [list(track.loss) for track in facts.tracks] == [[2.0]]


def test_event_files_are_training_progress_and_no_job_log(tmp_path: Path) -> None:
    """Cited by line; nothing is concluded from what they do not say."""
    events = [event(AT + n, n * 10, simple("train/loss", 3.0 / (n + 1)),
                    simple("train/grad_norm", 0.5)) for n in range(20)]  # fmt: skip
    (tmp_path / "events.out.tfevents.1").write_bytes(written(*events))
    facts = collect(Request((str(tmp_path),)))
    track = facts.main_track()

    assert track is not None
    assert (track.steps[-1], track.loss[1], track.grad_norm[0]) == (190, 1.5, 0.5)
    assert "step 10: train/loss=1.5" in facts.point(track, 1).cite.text
    assert (facts.log_lines, facts.stores) == (0, {"training events"})


def test_a_file_that_is_only_called_so_is_a_gap(tmp_path: Path) -> None:
    """Content decides."""
    (tmp_path / "events.out.tfevents.1").write_bytes(b"\x01\x02\x03\x04" * 20)
    facts = collect(Request((str(tmp_path),)))

    assert "does not begin as an event file" in facts.gaps[0].reason


@pytest.mark.parametrize("data", (b"", b"\0" * 40, b"\x18" + b"\0" * 30, record(b"\x0a\x00")))
def test_what_does_not_begin_with_a_checked_record_is_none(data: bytes) -> None:
    """Four zero bytes are not enough."""
    assert not is_event_file(data)
    assert is_event_file(first())


@given(st.binary(max_size=300), st.integers(0, 200))
@settings(max_examples=80, deadline=None)
def test_no_damage_is_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, at: int
) -> None:
    """Whatever stands in a record that its checksum approves of."""
    folder = tmp_path_factory.mktemp("events")
    whole = written(event(AT, 1, simple("loss", 2.0)), record(data), event(AT, 2, data))
    lines(folder, whole)
    lines(folder, whole[:40] + data + whole[40 + at :])


def test_a_long_file_is_read_by_its_tags(tmp_path: Path) -> None:
    """The time before each step is no label of a container engine's, however many there are."""
    scalars = (
        (simple("lm_loss", 9 - n / 40), simple("load_balancing_loss", 1.0),
         simple("iteration-time", 6.5))
        for n in range(200)
    )  # fmt: skip
    data = written(*(event(AT + 6.5 * n, n, *one) for n, one in enumerate(scalars)))
    (tmp_path / "events.out.tfevents.1.host").write_bytes(data)
    track = collect(Request((str(tmp_path),))).main_track()

    assert track is not None
    assert (len(track), set(track.step_s), set(track.balance)) == (200, {6.5}, {1.0})
    assert track.at[-1] - track.at[0] == pytest.approx(6.5 * 199)
