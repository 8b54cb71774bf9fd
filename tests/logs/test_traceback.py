"""Tracebacks: every shape Python and its libraries print, whole, nested, cut and interrupted."""

from __future__ import annotations

import textwrap

import pytest

from flatline.logs.traceback import RawCrash, read_traceback
from flatline.logs.tracetext import written_out
from flatline.model import Frame

HEAD = "Traceback (most recent call last):\n"


def crash(text: str) -> RawCrash:
    lines = list(enumerate(textwrap.dedent(text).strip("\n").split("\n"), 1))
    found = read_traceback(lines)
    assert found is not None
    return found


def test_a_traceback_has_frames_an_exception_and_lines() -> None:
    """Files, lines, functions and source, in the order they were called."""
    found = crash(
        """
        Traceback (most recent call last):
          File "/a/train.py", line 28, in <module>
            main()
            ~~~~^^
          File "<frozen importlib._bootstrap>", line 241, in _call
          File "h5py/h5o.pyx", line 190, in h5py.h5o.open
        KeyError: "Unable to open object"
        """
    )

    assert found.frames == (
        Frame("/a/train.py", 28, "<module>", "main()"),
        Frame("<frozen importlib._bootstrap>", 241, "_call"),
        Frame("h5py/h5o.pyx", 190, "h5py.h5o.open"),
    )
    assert (found.exception, found.message) == ("KeyError", '"Unable to open object"')
    assert (found.head_line, found.exception_line, found.end_line) == (1, 7, 7)
    assert found.complete
    assert found.chain == ()


def test_code_over_several_lines_is_one_frame() -> None:
    """Python 3.13 prints all of a call, with marks between."""
    found = crash(
        """
        Traceback (most recent call last):
          File "/a/train.py", line 3, in f
            foo(
            ~~~^
                a,
                ^^
            ...<2 lines>...
            )
            ^
        torch.OutOfMemoryError: CUDA out of memory.
        """
    )

    assert found.frames == (Frame("/a/train.py", 3, "f", "foo("),)
    assert found.exception == "torch.OutOfMemoryError"


@pytest.mark.parametrize(
    ("line", "exception", "message"),
    (
        ("KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("AssertionError", "AssertionError", ""),
        ("AssertionError: ", "AssertionError", ""),
        ("queue.Empty", "queue.Empty", ""),
        ("socket.timeout: timed out", "socket.timeout", "timed out"),
        ("app.f.<locals>.MyThing: x", "app.f.<locals>.MyThing", "x"),
        ("SystemExit: 1", "SystemExit", "1"),
        ("Unlucky: a class of the user's own", "Unlucky", "a class of the user's own"),
        ("torch.distributed.DistBackendError: NCCL error in: x.cpp:1", None, None),
    ),
)
def test_the_exception_line_is_known_by_its_shape(
    line: str, exception: str | None, message: str | None
) -> None:
    """With a message or without, of a module or not."""
    found = crash(HEAD + f'  File "/a.py", line 1, in f\n    x()\n{line}')

    assert found.exception == (exception or line.partition(":")[0])
    assert message is None or found.message == message


def test_a_message_may_have_several_lines() -> None:
    """CUDA's hints, a state dict's keys; a blank line or another record ends it."""
    cuda = crash(
        HEAD
        + '  File "/a.py", line 1, in f\n'
        + "RuntimeError: CUDA error: device-side assert triggered\n"
        + "CUDA kernel errors might be asynchronously reported.\n"
        + "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        + "\n"
        + "W1120 15:49:16.604000 21317 torch/x.py:1028] Sending"
    )
    keys = crash(
        HEAD
        + '  File "/a.py", line 1, in f\n'
        + "RuntimeError: Error(s) in loading state_dict for Net:\n"
        + '\tMissing key(s) in state_dict: "a.weight".\n'
        + "\tsize mismatch for b: copying a param with shape torch.Size([2])\n"
        + "2024-05-01 05:42:27,123 INFO next"
    )

    assert cuda.message.endswith("CUDA_LAUNCH_BLOCKING=1")
    assert (cuda.exception_line, cuda.end_line) == (3, 5)
    assert "size mismatch" in keys.message
    assert "INFO next" not in keys.message
    assert keys.end_line == 5


def test_a_paragraph_of_the_same_message_stands_behind_a_blank_line() -> None:
    """As torch prints its hints; what is not such a paragraph does not belong."""
    text = HEAD + '  File "/a.py", line 1, in f\nRuntimeError: CUDA error: x\n\n'

    assert crash(text + "Device-side assertion tracking was not enabled").end_line == 5
    assert crash(text + "Epoch 3 done").end_line == 3


def test_what_is_printed_behind_an_exception_is_not_its_message() -> None:
    """A caught exception was logged, and the program goes on."""
    text = HEAD + '  File "/a.py", line 1, in f\nOSError: no file\n'

    assert crash(text + "retrying without it\nstep 1").message == "no file"
    assert crash(text + "  detail\nstep 1").message == "no file\n  detail"
    assert crash(HEAD + "NCCLError: failed in:\nx.cpp\nncclSystemError: y\nstep").end_line == 4


def test_launchers_tables_are_part_of_their_message() -> None:
    """torchrun's summary is the message of its exception."""
    found = crash(
        """
        Traceback (most recent call last):
          File "/bin/torchrun", line 8, in <module>
            sys.exit(main())
        torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
        ============================================================
        train.py FAILED
        ------------------------------------------------------------
        Root Cause (first observed failure):
        [0]:
          rank      : 1 (local_rank: 1)
        ============================================================
        """
    )

    assert found.exception.endswith("ChildFailedError")
    assert "rank      : 1 (local_rank: 1)" in found.message
    assert found.end_line == 11


def test_chained_exceptions_come_oldest_first() -> None:
    """With how each led to the next; frames are those of the last."""
    found = crash(
        """
        Traceback (most recent call last):
          File "/a.py", line 1, in f
            int("x")
        ValueError: invalid literal

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/b.py", line 2, in g
        app.ConfigError: bad config

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "/c.py", line 3, in h
        OSError: [Errno 28] No space left on device
        """
    )

    assert found.chain == (
        ("ValueError", "invalid literal", "cause"),
        ("app.ConfigError", "bad config", "context"),
    )
    assert found.exception == "OSError"
    assert [frame.file for frame in found.frames] == ["/c.py"]
    assert (found.head_line, found.end_line) == (1, 16)


def test_a_chain_whose_second_traceback_is_missing_ends_before_it() -> None:
    """The process died while it printed."""
    found = crash(
        HEAD
        + '  File "/a.py", line 1, in f\nValueError: x\n\n'
        + "During handling of the above exception, another exception occurred:\n"
    )

    assert (found.exception, found.chain, found.complete) == ("ValueError", (), True)


def test_members_of_a_group_are_in_the_chain() -> None:
    """All of them, those of inner groups too, and what they were raised from."""
    found = crash(
        """
          + Exception Group Traceback (most recent call last):
          |   File "/a.py", line 9, in <module>
          |     raise ExceptionGroup("eg", [ValueError(1), inner])
          | ExceptionGroup: eg (2 sub-exceptions)
          +-+---------------- 1 ----------------
            | Traceback (most recent call last):
            |   File "/b.py", line 3, in f
            | KeyError: 'k'
            |
            | During handling of the above exception, another exception occurred:
            |
            | Traceback (most recent call last):
            |   File "/b.py", line 5, in f
            | ValueError: 1
            +---------------- 2 ----------------
            | ExceptionGroup: inner (1 sub-exception)
            +-+---------------- 1 ----------------
              | TypeError: 2
              +------------------------------------
        after
        """
    )

    assert (found.exception, found.message) == ("ExceptionGroup", "eg (2 sub-exceptions)")
    assert found.frames[0].file == "/a.py"
    assert found.chain == (
        ("KeyError", "'k'", "context"),
        ("ValueError", "1", "group"),
        ("ExceptionGroup", "inner (1 sub-exception)", "group"),
        ("TypeError", "2", "group"),
    )
    assert found.end_line == 19


def test_a_syntax_error_has_a_place_without_a_function() -> None:
    """Its last frame is where the parser stood."""
    found = crash(
        """
        Traceback (most recent call last):
          File "/a.py", line 1, in <module>
            import b
          File "/b.py", line 3
            foo bar
                ^^^
        SyntaxError: invalid syntax
        """
    )

    assert found.frames[-1] == Frame("/b.py", 3, "", "foo bar")
    assert found.exception == "SyntaxError"


def test_repeated_frames_are_passed_over() -> None:
    """A recursion is counted, not printed."""
    found = crash(
        """
        Traceback (most recent call last):
          File "/a.py", line 2, in f
            f()
          [Previous line repeated 969 more times]
        RecursionError: maximum recursion depth exceeded
        """
    )

    assert (found.exception, len(found.frames)) == ("RecursionError", 1)


def test_a_worker_of_the_dataloader_is_the_cause() -> None:
    """Its traceback stands in the message of the parent's exception."""
    found = crash(
        """
        Traceback (most recent call last):
          File "/train.py", line 9, in <module>
            for x in loader:
        KeyError: Caught KeyError in DataLoader worker process 0.
        Original Traceback (most recent call last):
          File "/torch/utils/data/_utils/worker.py", line 309, in _worker_loop
            data = fetcher.fetch(index)
        KeyError: 'image'

        2024-05-01 05:42:27,123 INFO next
        """
    )

    assert found.message == "Caught KeyError in DataLoader worker process 0."
    assert found.chain == (("KeyError", "'image'", "cause"),)
    assert (found.exception_line, found.end_line) == (4, 8)
    assert [frame.file for frame in found.frames] == [
        "/train.py",
        "/torch/utils/data/_utils/worker.py",
    ]


def test_a_spawned_process_is_the_cause() -> None:
    """`torch.multiprocessing.spawn` puts its traceback behind a blank line."""
    found = crash(
        """
        Traceback (most recent call last):
          File "/train.py", line 9, in <module>
        torch.multiprocessing.spawn.ProcessRaisedException: 

        -- Process 1 terminated with the following error:
        Traceback (most recent call last):
          File "/torch/multiprocessing/spawn.py", line 90, in _wrap
        RuntimeError: boom
        """
    )

    assert found.chain == (("RuntimeError", "boom", "cause"),)
    assert found.end_line == 8


def test_rays_task_error_holds_the_workers_exception() -> None:
    """Its frames follow the exception line without a head of their own."""
    found = crash(
        """
        Traceback (most recent call last):
          File "/driver.py", line 9, in <module>
            ray.get(x)
        ray.exceptions.RayTaskError(ValueError): ray::Worker.run() (pid=123, ip=10.0.0.2)
          File "/worker.py", line 4, in run
            raise ValueError("boom")
        ValueError: boom
        """
    )

    assert found.exception == "ray.exceptions.RayTaskError(ValueError)"
    assert found.message == "ray::Worker.run() (pid=123, ip=10.0.0.2)"
    assert found.chain == (("ValueError", "boom", "cause"),)
    assert found.end_line == 7


def test_a_pools_remote_traceback_is_quoted() -> None:
    """The quotes around it are no part of the message."""
    found = crash(
        '''
        Traceback (most recent call last):
          File "/pool.py", line 125, in worker
        ValueError: boom
        """

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/main.py", line 3, in <module>
        ValueError: boom
        '''
    )

    assert found.chain == (("ValueError", "boom", "cause"),)
    assert found.frames[0].file == "/main.py"


@pytest.mark.parametrize(
    "stray",
    (
        "/usr/lib/python3.11/x.py:37: UserWarning: The given buffer is not writable",
        "  warnings.warn(",
        " 50%|█████     | 5/10 [00:05<00:05,  1.00s/it]",
        "2024-05-01 05:42:27,123 INFO: a thread goes on",
        "Epoch: [3]  [2280/3658]  eta: 0:03:10",
        "loss: 2.5",
        "INFO: still here",
        "",
    ),
)
@pytest.mark.parametrize("place", (2, 4))
def test_a_line_of_another_thread_is_passed_over(stray: str, place: int) -> None:
    """Between frames or before the exception line."""
    lines = (HEAD + '  File "/a.py", line 1, in f\n    x()\n  File "/b.py", line 2, in g\n'
             "    y()\nValueError: boom").split("\n")  # fmt: skip
    lines.insert(place + 1, stray)
    found = crash("\n".join(lines))

    assert (found.exception, found.message, found.complete) == ("ValueError", "boom", True)
    assert [frame.file for frame in found.frames] == ["/a.py", "/b.py"]


def test_an_exception_that_a_copy_pushed_in_stands_behind_what_raised_it() -> None:
    """Copies lose lines and blanks: code that raises is followed by what was raised."""
    found = crash(
        "     Traceback (most recent call last):\n"
        '     File "main.py", line 104, in <module>\n'
        "      self.labels = self.csv_file['emotion']\n"
        "      raise KeyError(key) from err\n"
        "      KeyError: 'emotion'"
    )

    assert (found.exception, found.message, found.complete) == ("KeyError", "'emotion'", True)


def test_a_traceback_that_is_cut_off_is_not_complete() -> None:
    """The frames that were printed stay; nothing is made up."""
    found = crash(HEAD + '  File "/a.py", line 1, in f\n    x()')

    assert not found.complete
    assert (found.exception, found.message, len(found.frames)) == ("", "", 1)
    assert found.end_line == 3


def test_a_traceback_that_another_program_follows_is_not_complete() -> None:
    """It was killed while it printed; what comes later is not its exception."""
    later = "".join(f"2024-05-01 05:42:{n:02d} INFO step {n}\n" for n in range(40))
    found = crash(HEAD + '  File "/a.py", line 1, in f\n' + later + "ValueError: of another")

    assert not found.complete
    assert found.end_line == 2


def test_tracebacks_printed_at_once_are_read_as_one() -> None:
    """Eight processes without labels, line by line: each frame once, the first exception."""
    lines = [HEAD.rstrip(), '  File "/a.py", line 1, in f', "    x()",
             '  File "/b.py", line 2, in g', "    y()", "OSError: no file"]  # fmt: skip
    found = crash("\n".join(line for line in lines for _ in range(8)))

    assert (found.exception, found.message.split("\n")[0]) == ("OSError", "no file")
    assert [frame.file for frame in found.frames] == ["/a.py", "/b.py"]
    assert found.complete


def test_a_head_behind_a_progress_bar_is_a_head() -> None:
    """tqdm leaves the cursor at the end of its bar."""
    found = crash(
        " 10%|█         | 1/10 [00:01<00:09]" + HEAD + '  File "/a.py", line 1, in f\nOSError: x'
    )

    assert found.exception == "OSError"


def test_an_indented_traceback_is_read_at_its_indent() -> None:
    """As loggers print it that indent their records."""
    found = read_traceback(
        [(7, "    " + HEAD.rstrip()), (8, '      File "/a.py", line 1, in f'), (9, "        x()"),
         (10, "    OSError: x"), (11, "next")]
    )  # fmt: skip

    assert found is not None
    assert (found.exception, found.frames[0].code, found.end_line) == ("OSError", "x()", 10)


def test_ipython_prints_the_name_first() -> None:
    """And its own frames."""
    found = crash(
        """
        ValueError                                Traceback (most recent call last)
        Cell In[3], line 1
        ----> 1 foo()

        File ~/x.py:12, in foo(x)
             11 def foo(x):
        ---> 12     raise ValueError("boom")

        ValueError: boom
        """
    )

    assert (found.exception, found.message) == ("ValueError", "boom")
    raises = 'raise ValueError("boom")'
    assert found.frames == (Frame("In[3]", 1, "", "foo()"), Frame("~/x.py", 12, "foo", raises))


def test_rich_draws_a_box() -> None:
    """accelerate and typer print tracebacks so."""
    found = crash(
        """
        ╭───────────── Traceback (most recent call last) ─────────────╮
        │ /a/train.py:12 in main                                      │
        │                                                             │
        │   11 def main():                                            │
        │ ❱ 12     raise ValueError("boom")                           │
        ╰─────────────────────────────────────────────────────────────╯
        ValueError: boom
        """
    )

    assert (found.exception, found.message) == ("ValueError", "boom")
    assert found.frames == (Frame("/a/train.py", 12, "main"),)


def test_what_begins_with_no_head_is_no_traceback() -> None:
    """Nor does nothing."""
    assert read_traceback([]) is None
    assert read_traceback([(1, "ValueError: boom")]) is None


def test_a_message_is_kept_to_a_bound() -> None:
    """A dumped tensor in a message is not handed on whole."""
    found = crash(HEAD + '  File "/a.py", line 1, in f\nValueError: ' + "x" * 9000)

    assert len(found.message) == 2000


ONE_LINE = (
    r"""Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nValueError"""
)


@pytest.mark.parametrize(
    "line",
    [
        f'      "py_callstack": "{ONE_LINE}: bad \\"x\\"\\n",',
        f'{{"exc": "{ONE_LINE}: bad \\"x\\"", "ts": 1}}',
        "b'" + ONE_LINE.replace(r"\"", '"') + r""": bad "x"\n' later""",
    ],
    ids=["torchelastic", "json", "bytes"],
)
def test_one_written_out_in_a_line(line: str) -> None:
    """Records of errors hold a whole traceback as a string; what follows the string is no part."""
    found = read_traceback([(1, text) for text in written_out(line)])

    assert found is not None
    assert (found.exception, found.message) == ("ValueError", 'bad "x"')
    assert found.frames == (Frame("a.py", 3, "f", "g()"),)
    assert written_out("Traceback (most recent call last):") == [HEAD.strip()]


def test_native_frames_below_an_exception_name_it_anew() -> None:
    """Paddle prints what failed below them; without that summary the exception stays."""
    text = """
        Traceback (most recent call last):
          File "a.py", line 1, in <module>
            f()
        MemoryError: 

        --------------------------------------
        C++ Traceback (most recent call last):
        --------------------------------------
        0   paddle::f()
        """
    summary = """
        ----------------------
        Error Message Summary:
        ----------------------
        ResourceExhaustedError: 

        Out of memory error on GPU 0. (at ../cuda_allocator.cc:86)
        an other line
        """
    alone, summed = crash(text), crash(text + summary)

    assert (alone.exception, alone.end_line) == ("MemoryError", 4)
    assert (summed.exception, summed.chain) == (
        "ResourceExhaustedError",
        (("MemoryError", "", "cause"),),
    )
    assert summed.message == "Out of memory error on GPU 0. (at ../cuda_allocator.cc:86)"
    assert summed.frames == alone.frames
