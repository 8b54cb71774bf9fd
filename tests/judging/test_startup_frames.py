"""What a failure at start-up is about, told by the way its exception took."""

from __future__ import annotations

import pytest

from flatline.judging.frames import above
from flatline.judging.startup_class import startup_class
from flatline.model import Frame

LIBRARY, OWN = "/venv/lib/python3.11/site-packages/", "/home/u/proj/"
UNPACK = "not enough values to unpack (expected 4, got 3)"
NO = "[Errno 2] No such file or directory: "
ZERO = "division by zero"


def frame(file: str, function: str, code: str = "") -> Frame:
    return Frame(file, 10, function, code)


MAIN = frame(OWN + "train.py", "main", "run(args)")


@pytest.mark.parametrize(
    ("exception", "said", "frames", "wanted"),
    [
        ("SyntaxError", "invalid syntax", [frame("t.py", "", "f = F(**conf, cmvn=cmvn)")], "env"),
        ("SyntaxError", "invalid syntax", [frame("t.py", "", "f = F(a b)")], "config"),
        ("IOError", "[Errno 2] No such file or directory: 'data/GloVe/GloVe_300.json'",
         [frame(OWN + "loader.py", "load_pretrained_embedding", "open(path)")], "asset"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: 'in/smpl_joints.npy'",
         [frame(OWN + "net.py", "__init__", "np.load(path)")], "asset"),
        ("Exception", "No pretrained model found.", [MAIN], "asset"),
        ("args.KeysError", "in `optim`: unknown key `lrr` is not allowed here", [MAIN], "config"),
        ("KeyError", "\"No object named 'tiny_net' found in 'HEADS' registry!\"",
         [frame(LIBRARY + "fvcore/common/registry.py", "get", "raise KeyError(")], "config"),
        ("KeyError", "'lrr' is not allowed", [frame(OWN + "t.py", "f", "b['lrr']")], "data"),
        ("IndexError", "indices in 'edge_label_index' reach 91, the nodes end at 88", [MAIN],
         "data"),
        ("IndexError", "indices in 'heads' reach 91, the list ends at 88", [MAIN], "config"),
        ("ValueError", "The input contains `inf`, or a value too large", [MAIN], "data"),
        ("OSError", "no compatible hashgrid kernels were found for compute capability 121",
         [MAIN], "env"),
        ("ValueError", "bf16 needs cards of compute capability 80", [MAIN], "config"),
        ("AssertionError", "camera model not handled", [
            frame(OWN + "scene/dataset_readers.py", "readCameras", "assert False, msg"),
        ], "data"),
        ("NotFoundError", "=; No such file or directory", [
            frame(OWN + "utils/config_util.py", "get_configs_from_pipeline_file", "f.read()"),
            frame(LIBRARY + "tensorflow/python/lib/io/file_io.py", "read", "self._preread()"),
        ], "config"),
        ("NotFoundError", "edges; No such file or directory", [
            frame(OWN + "train.py", "train", "restorer.restore(sess, name)"),
            frame(LIBRARY + "tensorflow/python/training/saver.py", "restore", "exists(prefix)"),
        ], "asset"),
        ("ValueError", UNPACK, [frame(OWN + "data_utils.py", "_filter")], "data"),
        ("ValueError", UNPACK, [frame(LIBRARY + "keras/utils/data_utils.py", "get")], "config"),
        ("ValueError", UNPACK, [frame(OWN + "inputter.py", "_load_vocab")], "data"),
        ("ValueError", UNPACK, [frame(OWN + "io.py", "read_scp", "a, b = line.split()")], "data"),
        ("ValueError", UNPACK, [frame(OWN + "io.py", "read_args", "a, b = argv")], "config"),
        ("ValueError", UNPACK, [frame(OWN + "rl.py", "main", "o, r, d = env.step(a)")], "env"),
        ("AssertionError", "", [
            frame(OWN + "run.py", "main", "ds = SpeechLoader(args)"),
            frame(OWN + "lists.py", "__init__", "assert ok"),
        ], "data"),
        ("ValueError", "prefetch_factor needs num_workers > 0", [
            frame(OWN + "run.py", "main", "dl = DataLoader(ds, prefetch_factor=2)"),
            frame(LIBRARY + "torch/utils/data/dataloader.py", "__init__", "raise ValueError("),
        ], "config"),
        ("RuntimeError", "expected 4 channels, but got 3", [
            frame(OWN + "run.py", "main", "net(next(iter(train_loader)))"),
            frame(LIBRARY + "torch/nn/modules/conv.py", "forward", "F.conv2d(x)"),
        ], "config"),
        ("RuntimeError", "the sizes do not match", [
            frame("/data/u/proj/train.py", "main", "net(x)"),
            frame("/data/u/proj/nets/unet.py", "forward", "x + skip"),
        ], "config"),
        ("AssertionError", "", [MAIN, frame(OWN + "data/voc.py", "parse", "assert ct > 0")],
         "data"),
        ("ZeroDivisionError", ZERO, [frame(OWN + "t.py", "main", "s /= len(loader)")], "data"),
        ("ZeroDivisionError", ZERO, [frame(OWN + "t.py", "main", "b // args.num_gpus")], "config"),
        ("AssertionError", "", [frame(OWN + "t.py", "f", "assert exists(args.data_root)")],
         "data"),
        ("AssertionError", "", [frame(OWN + "t.py", "f", "assert isfile(args.pretrained)")],
         "asset"),
        ("AssertionError", "", [frame(OWN + "data/b.py", "f", "assert args.workers > 0")],
         "config"),
        ("AttributeError", "'NoneType' object has no attribute 'shape'",
         [frame(OWN + "t.py", "f", "h, w = cv2.imread(p).shape[:2]")], "data"),
        ("AttributeError", "'NoneType' object has no attribute 'shape'",
         [frame(OWN + "model.py", "forward", "mask_token.shape")], "config"),
        ("AttributeError", "can't set attribute", [
            frame(OWN + "lit.py", "__init__", "self.hparams = hparams"),
            frame(LIBRARY + "torch/nn/modules/module.py", "__setattr__"),
        ], "env"),
        ("NameError", "name '_C' is not defined", [frame(OWN + "ops.py", "forward")], "env"),
        ("NameError", "name 'Imge' is not defined", [frame(OWN + "dataset.py", "f")], "config"),
        ("TypeError", "'type' object is not subscriptable", [MAIN], "env"),
        ("FileNotFoundError", "[Errno 2] No such file or directory: '/c/traindata_77ab.pt'",
         [MAIN], "data"),
        ("json.decoder.JSONDecodeError", "Expecting ',' delimiter: line 5", [
            frame(LIBRARY + "deepspeed/config.py", "__init__", "json.load(open(config, 'r'))"),
            frame("/usr/lib/python3.11/json/decoder.py", "raw_decode"),
        ], "config"),
        ("URLError", "<urlopen error timed out>", [
            frame(LIBRARY + "torch_geometric/datasets/planetoid.py", "download"),
            frame("/usr/lib/python3.11/urllib/request.py", "do_open"),
        ], "data"),
        ("KeyError", "'content-length'", [
            frame(LIBRARY + "torch/utils/model_zoo.py", "_download_url_to_file",
                  'int(u.headers["Content-Length"])'),
            frame(LIBRARY + "requests/structures.py", "__getitem__"),
        ], "asset"),
        ("socket.timeout", "timed out",
         [frame(LIBRARY + "urllib3/util/connection.py", "create_connection")], "asset"),
        ("socket.timeout", "timed out", [
            frame(LIBRARY + "urllib3/util/connection.py", "create_connection"),
            frame(LIBRARY + "wandb/sdk/internal/api.py", "send"),
        ], "env"),
        ("IsADirectoryError", "[Errno 21] Is a directory: 'configs'",
         [frame(LIBRARY + "yacs/config.py", "merge_from_file", "open(cfg_filename)")], "config"),
        ("NotFoundError", "sets/train; No such file or directory", [MAIN], "data"),
        ("errors_impl.NotFoundError", "libcudart.so.8.0: cannot open shared object file: No such"
         " file or directory", [MAIN], "env"),
        ("AssertionError", "Cannot sample 1500 from 0 files found in ir/1", [MAIN], "data"),
        ("OSError", "Failed to load tokenizer.", [MAIN], "asset"),
        ("ValueError", "num_samples should be a positive integer value, but got num_samples=",
         [MAIN], "data"),
        ("RuntimeError", "Dataset '/d/balls/data.yaml' error", [MAIN], "data"),
        ("lmdb.Error", "/d/curation.lmdb: No such file or directory", [MAIN], "data"),
        ("OSError", "Unable to open file (unable to open file: name = './checkpoint/train.h5',"
         " errno = 2)", [MAIN], "data"),
        ("FileNotFoundError", NO + "'E:\\\\w\\\\models\\\\my_vgg\\\\vgg16.npy'", [MAIN], "asset"),
        ("NotFoundError", "/lib/deepmd/libop_abi.so: undefined symbol: _ZN10tensorflow14kernel",
         [MAIN], "env"),
        ("FileNotFoundError", NO + "'./Config/CONFIG_Users:10_Cells:3.json'", [MAIN], "config"),
        ("json.decoder.JSONDecodeError", "Invalid \\escape: line 18 column 28", [
            frame(OWN + "train.py", "<module>", "config = json.load(open(args.config))"),
            frame("/usr/lib/python3.11/json/__init__.py", "load", "return loads(fp.read(),"),
            frame("/usr/lib/python3.11/json/__init__.py", "loads", "return _default_decoder.x"),
            frame("/usr/lib/python3.11/json/decoder.py", "decode", "self.raw_decode(s)"),
        ], "config"),
        ("RuntimeError", "SHA256 checksum does not not match",
         [frame(LIBRARY + "clip/clip.py", "_download")], "asset"),
    ],
)  # fmt: skip
def test_class_by_the_way(exception: str, said: str, frames: list[Frame], wanted: str) -> None:
    assert startup_class(exception, said, frames) == wanted


@pytest.mark.parametrize(
    ("frames", "wanted"),
    [
        ([frame(LIBRARY + "spacy/__init__.py", "<module>", "from .x import y"),
          frame(LIBRARY + "pydantic/main.py", "<module>", "class M(")], "env"),
        ([frame(OWN + "train.py", "<module>", "from pandas._libs import hashtable")], "env"),
        ([frame(OWN + "train.py", "<module>", "from settings import S"),
          frame(OWN + "settings.py", "<module>", "raise ValueError('bad')")], "config"),
        ([frame(OWN + "train.py", "<module>", "import plugins"),
          frame(LIBRARY + "plugins/__init__.py", "<module>", "import_module(name)"),
          frame(OWN + "mine.py", "<module>", "raise ValueError('bad')")], "config"),
    ],
)  # fmt: skip
def test_a_library_that_cannot_be_imported(frames: list[Frame], wanted: str) -> None:
    """Not one whose import runs the user's own code."""
    assert startup_class("ValueError", "bad", frames) == wanted


@pytest.mark.parametrize(
    ("package", "field", "wanted"),
    [
        ("site-packages/det-0.1-py3.7.egg/det/", "bifpn", "env"),
        ("site-packages/det-0.1-py3.7.egg/det/", "https", "config"),
        ("site-packages/det/", "bifpn", "config"),
    ],
)
def test_a_field_that_a_copied_package_does_not_know(
    package: str, field: str, wanted: str
) -> None:
    found = startup_class(
        "google.protobuf.text_format.ParseError",
        f'33:7 : Message type "det.protos.Ssd" has no field named "{field}".',
        [frame(f"C:/venv/lib/{package}config_util.py", "read")],
    )
    assert found == wanted


def test_frames_above_an_exception_without_a_head() -> None:
    lines = [
        "worker.py:78 -- Unhandled error: ray::Runner.run() (pid=11, ip=10.0.0.4)",
        '  File "/home/u/actor.py", line 24, in run',
        "    env = ResourceEnv(mesh)",
        "          ^^^^^^^^^^^^^^^^^",
    ]
    assert above(lines) == (Frame("/home/u/actor.py", 24, "run", "env = ResourceEnv(mesh)"),)
    assert above([*lines, "step 12 loss 0.3"]) == ()
    source = ['File "train.py", line 40', "    f(f'{x}')", "            ^"]
    assert above(source) == (Frame("train.py", 40, "", "f(f'{x}')"),)


INSTANTIATE = frame(LIBRARY + "tuner/config/_instantiate.py", "_create_component",
                    "return _component_(*args, **kwargs)")  # fmt: skip


@pytest.mark.parametrize(
    ("said", "frames", "wanted"),
    [
        ("lora_qwen() got an unexpected keyword argument 'lora_rnk'", [INSTANTIATE], "config"),
        ("TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'",
         [INSTANTIATE], "env"),
        ("lora_qwen() got an unexpected keyword argument 'lora_rnk'",
         [frame(LIBRARY + "tuner/models.py", "build", "lora_qwen(**options)")], "env"),
    ],
)  # fmt: skip
def test_what_a_configuration_calls_with_its_own_arguments(
    said: str, frames: list[Frame], wanted: str
) -> None:
    assert startup_class("TypeError", said, [MAIN, *frames]) == wanted


@pytest.mark.parametrize(
    ("said", "wanted"),
    [("_ARRAY_API not found", "env"), ("the field _ARRAY_API not found in table", "config")],
)
def test_a_module_built_for_another_numpy(said: str, wanted: str) -> None:
    native = frame(LIBRARY + "av/__init__.py", "bootstrap", "load(name)")
    assert startup_class("AttributeError", said, [MAIN, native]) == wanted
