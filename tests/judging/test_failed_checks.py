"""CUDA's status in a failed check of a C++ program decides, not the abort that follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

STEPS = "".join(
    f"I0611 02:{n // 60:02d}:{n % 60:02d}.503301  7720 solver.cpp:228] Iteration {n * 20}, loss ="
    f" {4 / n:.5f}\n"
    for n in range(1, 40)
)
ABORTED = """*** Check failure stack trace: ***
    @     0x7f1b0c48d0cd  google::LogMessage::Fail()
    @     0x7f1b0c9438ba  caffe::caffe_gpu_memcpy()
    @           0x407a2c  train()
Aborted (core dumped)
"""
CAFFE = "F0611 02:40:29.117904  7720 math_functions.cu:81] Check failed: {}\n"
MXNET = (
    "terminate called after throwing an instance of 'dmlc::Error'\n"
    "  what():  [09:12:33] mshadow/./stream_gpu-inl.h:198: Check failed: {}\n"
)


def judged(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


@pytest.mark.parametrize(
    ("check", "code", "fault_class"),
    [
        (
            "error == cudaSuccess (77 vs. 0)  an illegal memory access was encountered",
            "A3",
            "cuda",
        ),
        ("error == cudaSuccess (700 vs. 0)", "A3", "cuda"),
        ("error == cudaSuccess (4 vs. 0)  unspecified launch failure", "A3", "cuda"),
        ("error == cudaSuccess (59 vs. 0)  device-side assert triggered", "A3", "cuda"),
        ("error == cudaSuccess (2 vs. 0)  out of memory", "B1", None),
        ("error == cudaSuccess (2 vs. 0)", "B1", None),
        ("error == cudaSuccess (39 vs. 0)  uncorrectable ECC error encountered", "B2", None),
        ("error == cudaSuccess (214 vs. 0)", "B2", None),
        ("status == CUDNN_STATUS_SUCCESS (8 vs. 0)  CUDNN_STATUS_EXECUTION_FAILED", "A3", "cuda"),
        ("status == CUBLAS_STATUS_SUCCESS (13 vs. 0)", "A3", "cuda"),
        ("status == CUDNN_STATUS_SUCCESS (2 vs. 0)  CUDNN_STATUS_ALLOC_FAILED", "B1", None),
        ("label_value >= 0 (-1 vs. 0)", "A2", "abort"),
    ],
)
def test_in_the_midst_of_training(
    tmp_path: Path, check: str, code: str, fault_class: str | None
) -> None:
    """By the text where there is one, else by the number; a check of something else stays one."""
    found = judged(tmp_path, STEPS + CAFFE.format(check) + ABORTED)
    assert (found.code, found.fault_class) == (code, fault_class)


@pytest.mark.parametrize(
    ("check", "code", "fault_class"),
    [
        ("error == cudaSuccess (35 vs. 0)  CUDA driver version is insufficient", "A1", "env"),
        ("error == cudaSuccess (8 vs. 0)  invalid device function", "A1", "env"),
        ("error == cudaSuccess (209 vs. 0)", "A1", "env"),
        ("error == cudaSuccess (10 vs. 0)  invalid device ordinal", "A1", "config"),
        ("status == CUDNN_STATUS_SUCCESS (6 vs. 0)  CUDNN_STATUS_ARCH_MISMATCH", "A1", "env"),
        ("e == cudaSuccess || e == cudaErrorCudartUnloading: CUDA: out of memory", "B1", None),
    ],
)
def test_before_the_first_step(
    tmp_path: Path, check: str, code: str, fault_class: str | None
) -> None:
    """What keeps a program from starting."""
    for text in (CAFFE.format(check) + ABORTED, MXNET.format(check) + "Aborted (core dumped)\n"):
        found = judged(tmp_path, "Creating layer data\n" + text)
        assert (found.code, found.fault_class) == (code, fault_class)


def test_within_the_exception_of_a_binding(tmp_path: Path) -> None:
    """MXNet raises the check's text in Python."""
    raised = (
        'Traceback (most recent call last):\n  File "train_cnn.py", line 203, in <module>\n'
        "    curr_loss = nd.mean(loss_result).asscalar()\n"
        "mxnet.base.MXNetError: [21:48:10] src/operator/nn/./../mxnet_op.h:576: Check failed: err"
        " == cudaSuccess ({} vs. 0) Name: mxnet_generic_kernel ErrStr:{}\n"
    )
    assert judged(tmp_path, raised.format(2, "out of memory")).code == "B1"
    found = judged(tmp_path, raised.format(48, "no kernel image is available for execution"))
    assert (found.code, found.fault_class) == ("A1", "env")
    found = judged(
        tmp_path, STEPS + raised.format(700, "an illegal memory access was encountered")
    )
    assert (found.code, found.fault_class) == ("A3", "cuda")


SUMMARY = """Traceback (most recent call last):
  File "tools/train.py", line 181, in main
    program.train(config, train_dataloader)
{}:{}

--------------------------------------
C++ Traceback (most recent call last):
--------------------------------------
{}
----------------------
Error Message Summary:
----------------------
{}
"""


@pytest.mark.parametrize(
    "frames", ["Not support stack backtrace yet.\n", "0   paddle::f()\n" * 30]
)
def test_the_summary_below_the_frames_of_native_code(tmp_path: Path, frames: str) -> None:
    """It decides over the exception's name: Paddle makes a MemoryError of a full card."""
    card = (
        "ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 96.000000MB"
        " memory on GPU 0, 7.998047GB memory has been allocated and available memory is only"
        " 0.000000B.\n (at ../paddle/fluid/memory/allocation/cuda_allocator.cc:86)"
    )
    host = "ResourceExhaustedError: Fail to alloc memory of 8589934592 size.\n (at a/cpu.cc:52)"
    text = SUMMARY.format("MemoryError", " ", frames, card)
    assert judged(tmp_path, text).code == "B1"
    assert judged(tmp_path, SUMMARY.format("MemoryError", " ", frames, host)).code != "B1"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("RuntimeError: GPU is out of memory", "B1"),
        ("[LightGBM] [Fatal] [CUDA] out of memory", "B1"),
        ("2026-03-01 10:00:00 ERROR engine: Out of GPU memory. Try a smaller batch.", "B1"),
        ("Error: failed to allocate 512 MB of device memory", "B1"),
        ("pygpu.gpuarray.GpuArrayException: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
         "B1"),
        ("CUDA failure 2: out of memory ; GPU=0 ; hostname=n1", "B1"),
        ("WARNING: if the GPU is out of memory, lower the batch", None),
        ("# RuntimeError: GPU is out of memory beyond batch 64", None),
        ("batch size finder: 64 failed with CUDA out of memory, trying 32", None),
        ("INFO: caught RuntimeError, GPU out of memory, skipping this batch", None),
    ],
)  # fmt: skip
def test_a_full_card_in_anybodys_words(tmp_path: Path, line: str, code: str | None) -> None:
    """In an error; advice, comments and what was caught are none."""
    assert judged(tmp_path, f"loading\n{line}\n").code == code


def test_a_full_card_that_was_got_over(tmp_path: Path) -> None:
    """The run went on to its steps."""
    assert judged(tmp_path, "Error: out of GPU memory\n" + STEPS).code != "B1"
    host = "Out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:1kB\n"
    assert judged(tmp_path, STEPS + host).code != "B1"


@pytest.mark.parametrize(
    ("code", "family"),
    [(-9, "A2"), (-11, "A2"), (0, None)],
)
def test_a_trainer_that_its_launcher_watched(
    tmp_path: Path, code: int, family: str | None
) -> None:
    """Paddle's launcher calls a process a container."""
    said = (
        "LAUNCH INFO 2024-03-09 23:58:52,611 Pod failed\n"
        "LAUNCH ERROR 2024-03-09 23:58:52,617 Container failed !!!\n"
        f"Container rank 1 status failed cmd ['python', 'train.py'] code {code} log ./w.1\n"
    )
    found = judged(tmp_path, STEPS + said)
    assert found.code == family
    if family:
        assert found.culprits[0].rank == 1
