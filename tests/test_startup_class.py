"""What a failure before the first step is about, told by its exception, message and frames."""

from __future__ import annotations

import pytest

from flatline.judging.startup_class import class_of_line, fetched, startup_class
from flatline.model import Frame

LIBRARY, OWN = "/venv/lib/python3.11/site-packages/", "/home/u/proj/"


NO_FILE = "[Errno 2] No such file or directory: "


def frame(file: str, function: str, code: str = "") -> Frame:
    return Frame(file, 10, function, code)


@pytest.mark.parametrize(
    ("exception", "said", "frames", "wanted"),
    [
        ("gymnasium.error.NamespaceNotFound", "Namespace MINI not found.", [], "env"),
        ("AssertionError", "Global batch size (30) must be divisible by the number of ranks (4)",
         [frame(OWN + "data/build.py", "build_loader", "assert size % world == 0")], "config"),
        ("KeyError", "'lr'", [frame(OWN + "t.py", "main", "lr = cfg['opt']['lr']")], "config"),
        ("KeyError", "'vit9'", [frame(OWN + "t.py", "main", "n = MODELS[args.arch]()")], "config"),
        ("KeyError", "'text'", [frame(OWN + "train.py", "tok", "f(batch[args.column])")], "data"),
        ("ValueError", "--image_column' value 'img' needs to be one of: a, b", [], "data"),
        ("ValueError", "--lr_scheduler' value 'cosin' needs to be one of: a, b", [], "config"),
        ("KeyError", "'ids'", [frame(OWN + "t.py", "f", "[b['ids'] for b in batch]")], "data"),
        ("KeyError", "'RANK'", [
            frame(OWN + "train.py", "main", "rank = os.environ['RANK']"),
            frame("/usr/lib/python3.11/os.py", "__getitem__", "raise KeyError(key) from None"),
        ], "env"),
        ("KeyError", "'newarch'", [
            frame(LIBRARY + "transformers/models/auto/configuration_auto.py", "from_pretrained",
                  'CONFIG_MAPPING[config_dict["model_type"]]'),
            frame(LIBRARY + "transformers/models/auto/configuration_auto.py", "__getitem__",
                  "raise KeyError(key)"),
        ], "env"),
        ("TypeError", "main() got an unexpected keyword argument 'version_base'",
         [frame(OWN + "run.py", "<module>", "@hydra.main(version_base=None)")], "env"),
        ("json.decoder.JSONDecodeError", "Expecting value: line 12 column 16 (char 320)",
         [frame(OWN + "train.py", "main", "config = json.load(f)")], "config"),
        ("json.decoder.JSONDecodeError", "Expecting value: line 12 column 16 (char 320)",
         [frame(OWN + "train.py", "main", "captions = json.load(f)")], "data"),
        ("ValueError", "expected input_1 to have 4 dimensions, but got array with shape (0, 1)",
         [frame(OWN + "train.py", "train", "model.fit(x, y)")], "data"),
        ("AttributeError", "'NoneType' object has no attribute 'tokenize'",
         [frame(OWN + "utils.py", "load", "token = config.tokenizer.tokenize(text)")], "asset"),
        ("AttributeError", "'NoneType' object has no attribute 'tokenize'",
         [frame(OWN + "utils.py", "load", "token = config.reader.tokenize(text)")], "config"),
        ("AttributeError", "'NoneType' object has no attribute 'config'",
         [frame(LIBRARY + "ray/rllib/utils/tf_ops.py", "gpus", "d = tf.config.list()")], "env"),
        ("AttributeError", "'module' object has no attribute 'Session'",
         [frame(OWN + "util.py", "train", "with tf.Session() as sess:")], "env"),
        ("AttributeError", "'module' object has no attribute 'Drift'",
         [frame(OWN + "util.py", "train", "with helpers.Drift() as sess:")], "config"),
        ("KeyError", "'backbone.blocks.0.attn.relative_position_bias_table'",
         [frame(OWN + "train.py", "<module>", "main()")], "asset"),
        ("KeyError", "'model.layers.train'", [frame(OWN + "t.py", "f", "b['x']")], "data"),
        ("AttributeError", "'FwdCNN' object has no attribute 'intype'",
         [frame(OWN + "train.py", "<module>", "model.intype('gpu')"),
          frame(LIBRARY + "torch/nn/modules/module.py", "__getattr__", "raise")], "config"),
        ("AttributeError", "'LlamaModel' object has no attribute '_prune'",
         [frame(LIBRARY + "peft/tuners/lora.py", "_replace", "model._prune()"),
          frame(LIBRARY + "torch/nn/modules/module.py", "__getattr__", "raise")], "env"),
        ("TypeError", "stat: path should be string, bytes, os.PathLike or integer, not NoneType",
         [frame(LIBRARY + "transformers/configuration_utils.py", "get_config_dict",
                "if os.path.isdir(pretrained_model_name_or_path):"),
          frame("/usr/lib/python3.6/genericpath.py", "isdir", "st = os.stat(s)")], "config"),
        ("TypeError", "stat: path should be string, bytes, os.PathLike or integer, not NoneType",
         [frame(LIBRARY + "transformers/models/bert/tokenization_bert.py", "__init__",
                "if not os.path.isfile(vocab_file):"),
          frame("/usr/lib/python3.6/genericpath.py", "isfile", "st = os.stat(path)")], "asset"),
        ("FileNotFoundError", NO_FILE + "'logs/2018_GPU_1.log'",
         [frame(OWN + "multiproc.py", "<module>", '"w")')], "config"),
        ("FileNotFoundError", NO_FILE + "'out/train.csv'",
         [frame(OWN + "prep.py", "main", "with open(path, 'wb') as f:")], "config"),
        ("FileNotFoundError", NO_FILE + "'data/train.csv'",
         [frame(OWN + "prep.py", "main", 'open(dst, "w").write(open(src).read())')], "data"),
        ("FileNotFoundError", NO_FILE + "'data/train.csv'",
         [frame(OWN + "prep.py", "main", 'merge(open(p), fields.get("mode", "a"))')], "data"),
        ("KeyError", "'model.encoder.weight'",
         [frame(OWN + "train.py", "main", "w = cfg['model.encoder.weight']")], "config"),
        ("FileNotFoundError", NO_FILE + "'data/train.csv'",
         [frame(OWN + "prep.py", "main", "with open(path, 'rb') as f:")], "data"),
        ("KeyError", "'state_dict'",
         [frame(OWN + "ckpt.py", "load_pretrain", "d = checkpoint['state_dict']")], "asset"),
        ("KeyError", "'conv1.weight'",
         [frame(OWN + "resnet.py", "_load", "conv.weight.data.copy_(state_dict_tv[n])")], "asset"),
        ("TypeError", "__init__() got an unexpected keyword argument 'prefix'",
         [frame(OWN + "checkpoint.py", "__init__", "super().__init__(prefix=p)")], "env"),
        ("IndexError", "list index out of range",
         [frame(OWN + "sets.py", "__init__", "k = [x.split()[0] for x in lines]")], "data"),
        ("IndexError", "list index out of range",
         [frame(OWN + "main.py", "main", "g = [x.split()[0] for x in args.lines]")], "config"),
        ("AssertionError", "",
         [frame(OWN + "main.py", "get", "assert len(self.rgb_lst) == len(self.gt)")], "data"),
        ("AssertionError", "",
         [frame(OWN + "main.py", "get", "assert len(self.layers) > 3")], "config"),
        ("FileExistsError", "[Errno 17] File exists: 'outputs/train_run1'", [], "config"),
        ("TypeError", "Net.__init__() got an unexpected keyword argument 'hiden_dim'",
         [frame(OWN + "run.py", "main", "net = hydra.utils.instantiate(cfg.model)")], "config"),
        ("json.decoder.JSONDecodeError", "Expecting value: line 1 column 1 (char 0)",
         [frame(OWN + "sets.py", "__getitem__", "args = json.loads(call['arguments'])")], "data"),
        ("FileExistsError", "[Errno 17] File exists: '/s/checkpoints/run1'", [], "config"),
        ("RuntimeError", "Resource temporarily unavailable",
         [frame(LIBRARY + "torch/autograd/graph.py", "_engine_run_backward", "run(*a)")], "env"),
        ("FileNotFoundError", NO_FILE + "'x/base.yaml'", [], "config"),
        ("FileNotFoundError", NO_FILE + "'/d/coco/a.json'", [], "data"),
        ("FileNotFoundError", NO_FILE + "'ds_config.json'", [], "config"),
        ("FileNotFoundError", NO_FILE + "'w/vgg.pth'", [], "asset"),
        ("FileNotFoundError", NO_FILE + "'/llm/vocab.txt'", [], "asset"),
        ("FileNotFoundError", NO_FILE + "'/scratch/x7'", [
            frame(LIBRARY + "torchvision/datasets/folder.py", "find_classes", "os.scandir(d)"),
        ], "data"),
        ("FileNotFoundError", NO_FILE + "'/scratch/x7'", [], "asset"),
        ("FileNotFoundError", "Dataset 'd/coco.yaml' images not found", [], "data"),
        ("TypeError", "TrainingArguments.__init__() got an unexpected keyword argument 'x'",
         [frame(OWN + "train.py", "main", "TrainingArguments(x=1)")], "env"),
        ("TypeError", "__new__() got an unexpected keyword argument 'antialiasing'",
         [frame(OWN + "render.py", "render", "s = GaussianRasterizationSettings(")], "env"),
        ("TypeError", "__init__() got an unexpected keyword argument 'gpus'",
         [frame(OWN + "train.py", "main", "trainer = pl.Trainer(gpus=1)")], "env"),
        ("TypeError", "Accelerator.unwrap() got an unexpected keyword argument 'k'",
         [frame(LIBRARY + "trl/trainer.py", "train", "self.a.unwrap(m, k=True)")], "env"),
        ("TypeError", "Net.__init__() got an unexpected keyword argument 'depht'",
         [frame(OWN + "train.py", "main", "net = Net(depht=64)")], "config"),
        ("TypeError", "Net.forward() got an unexpected keyword argument 'labels'",
         [frame(LIBRARY + "torch/nn/modules/module.py", "_call_impl", "forward_call(*a, **k)")],
         "config"),
        ("AttributeError", "'TokenizerFast' object has no attribute 'old'",
         [frame(LIBRARY + "trl/trainer.py", "__init__", "tokenizer.old")], "env"),
        ("AttributeError", "'NoneType' object has no attribute 'shape'",
         [frame(LIBRARY + "trl/trainer.py", "__init__", "x.shape")], "config"),
        ("AttributeError", "'LlamaConfig' object has no attribute 'rope'",
         [frame(LIBRARY + "trl/trainer.py", "__init__", "config.rope")], "config"),
        ("AssertionError", "MMCV==2.2.0 is used but incompatible", [], "env"),
        ("AssertionError", "no_sync is incompatible with gradient partitioning", [], "config"),
        ("ValueError", "y contains previously unseen labels: 'dog'", [], "data"),
        ("ValueError", "hidden size must be divisible by heads", [], "config"),
        ("RuntimeError", "stack expects each tensor to be equal size",
         [frame(LIBRARY + "torch/utils/data/_utils/collate.py", "default_collate")], "data"),
        ("IndexError", "list index out of range",
         [frame(OWN + "corpus.py", "__getitem__", "return self.rows[i]")], "data"),
        ("RuntimeError", "unable to open file </hf/models--a--b/x.safetensors> in read-only mode",
         [], "asset"),
        ("ValueError", "text input must be of type `str` (single example)",
         [frame(LIBRARY + "transformers/tokenization_utils_base.py", "_call_one")], "data"),
        ("OSError", "can't load it",
         [frame(LIBRARY + "transformers/tokenization_utils_base.py", "from_pretrained")], "asset"),
        ("soundfile.LibsndfileError", "<exception str() failed>", [], "data"),
        ("IndexError", "index 9 is out of bounds",
         [frame(OWN + "fairseq/data/language_pair_dataset.py", "ordered_indices")], "data"),
        ("XlaRuntimeError", "it is not implemented for CUDA below version 12.3", [], "env"),
    ],
)  # fmt: skip
def test_class_of_an_exception(
    exception: str, said: str, frames: list[Frame], wanted: str
) -> None:
    assert startup_class(exception, said, frames) == wanted


def test_an_address_to_read_on_at_is_nothing_that_was_to_be_fetched() -> None:
    """An error of the driver that names a page on data sets stays one of the driver."""
    said = "The NVIDIA driver on your system is too old. See https://docs.example/data/driver"
    assert fetched(said) is None
    assert fetched("Download from https://a.example/sets/train.tar.gz failed.") == "data"
    assert fetched("Download from https://a.example/x failed.") is None


def test_one_line_is_enough_where_it_names_the_exception() -> None:
    assert class_of_line("[rank0]: ImportError: no module") == "env"
    assert class_of_line("ValueError: File data/mix.jsonl not found.") == "data"
    assert class_of_line("ValueError(\"Folder mel_16k does not exist in '/d/data'.\")") == "data"
    assert class_of_line("something failed") is None


@pytest.mark.parametrize(
    ("exception", "said", "frames", "wanted"),
    [
        ("Exception", "Installed CUDA version 12.1 does not match the version", [], "env"),
        ("AssertionError", "The `num_classes` (80) does not match `CLASSES`",
         [frame(OWN + "mmdet/datasets/utils.py", "_check_head")], "config"),
        ("KeyError", "\"Dataset 'P' is not registered!\"", [], "config"),
        ("TypeError", "Descriptors should not be created directly",
         [frame("C:\\py\\lib\\site-packages\\google\\protobuf\\descriptor.py", "__new__")], "env"),
        ("OSError", "Unable to open file (name = './run1/model.h5', errno = 2)",
         [frame(OWN + "run.py", "main"), frame(LIBRARY + "keras/training.py", "load_weights")],
         "asset"),
        ("FileNotFoundError", NO_FILE + "'/seg/x_preprocessed/plans.pkl'", [], "data"),
        ("ValueError", "bad", [frame(LIBRARY + "torch/utils/data/sampler.py", "f")], "data"),
        ("SyntaxError", "invalid syntax",
         [frame(OWN + "utils.py", "<module>", "raise ValueError(f'metrics: {m}')")], "env"),
        ("SyntaxError", "invalid syntax", [frame(OWN + "utils.py", "f", "x = (1,")], "config"),
        ("KeyError", "'Non-existent config key: MODEL.WETGHTS'", [], "config"),
        ("AssertionError", "invalid file[/c/coco/annotations/train.json] for Source", [], "data"),
        ("AssertionError", "Checkpoint /data/zoo/R-50.pkl not found!", [], "asset"),
        ("Exception", "weights/yolov3.pt missing, try downloading from elsewhere", [], "asset"),
        ("Misconfiguration", "You requested GPUs: [0] But your machine only has: []", [], "env"),
        ("ValueError", "need at least one array to stack", [], "data"),
        ("RuntimeError", "HCCL error: [ModuleNotFoundError: No module named 'tbe.x']", [], "env"),
        ("AssertionError", "ca_forward miss in module _ext", [], "env"),
        ("XlaRuntimeError", "tensor is on GPU, but no GPU backend was provided.", [], "env"),
        ("RuntimeError", "No OpenCL platform was found", [], "env"),
        ("ValueError", "no OpenCL kernel named blur", [], "config"),
        ("g.GraphError", "the input has 17 isolated nodes", [], "data"),
        ("ValueError", "0-in-degree nodes in this block", [], "data"),
        ("ValueError", "two nodes of the module graph have one name", [], "config"),
        ("ValueError", "cannot reshape array of size 1 into shape (2,4)",
         [frame("In[3]", "<module>", "mesh = np.array(jax.devices()).reshape(shape)")], "env"),
        ("ValueError", "layers.0.q_proj.weight doesn't have any device set.", [], "config"),
        ("LightGBMError", "GPU Tree Learner was not enabled in this build.", [], "env"),
        ("RuntimeError", "Cannot load cudnn shared library.", [], "env"),
        ("AssertionError", "No valid data found in yard_train.", [], "data"),
        ("AssertionError", "Image Not Found /mnt/set/images/b_0417.jpg, workdir: /w", [], "data"),
        ("ImportError", "dlopen(libcv.so): Library not loaded: /usr/lib/libz.1. Reason: image not"
         " found", [], "env"),
        ("AssertionError", "Found unexpected labels in the training set", [], "data"),
        ("ValueError", "list.remove(x): x not in list",
         [frame(OWN + "checks.py", "verify_dataset_integrity", "names.remove(i)")], "data"),
        ("hydra.errors.ConfigCompositionException", "You must specify 'model'", [], "config"),
        ("google.protobuf.text_format.ParseError", "168:21 : no field named \"G\"", [], "config"),
        ("RuntimeError", "Download from https://a.example/W.pdparams failed.", [], "asset"),
        ("ConnectionError", "HTTPSConnectionPool(host='d.example', port=443): Max retries exceeded"
         " with url: /sets/train.tar.gz (Caused by x)", [], "data"),
        ("AssertionError", "pretrained bert file does not exist", [], "asset"),
        ("Exception", "No such file or directory (os error 2)",
         [frame(OWN + "voice.py", "__init__", "self.t = Tokenizer.from_file(vocab)")], "asset"),
    ],
)  # fmt: skip
def test_class_by_words_files_and_syntax(
    exception: str, said: str, frames: list[Frame], wanted: str
) -> None:
    assert startup_class(exception, said, frames) == wanted


@pytest.mark.parametrize(
    ("exception", "said", "frames", "wanted"),
    [
        ("IOError", "SavedModel file does not exist at: /data/net/{saved_model.pb}", [], "asset"),
        ("IOError", "The file does not exist at: /d/data/net.csv", [], "data"),
        ("ValueError", "'./dit' is neither a valid local path nor a valid repo id.", [], "asset"),
        ("ValueError", "'./dit' is neither a valid number nor a list.", [], "config"),
        ("RuntimeError", "CUDA environment is not correctly set up", [], "env"),
        ("RuntimeError", "CuPy is not correctly installed.", [], "env"),
        ("RuntimeError", "The scheduler of the optimizer is not configured", [], "config"),
        ("RuntimeError", "the SHA256 checksum of net.pt does not match",
         [frame(OWN + "run.py", "<module>", "import pix"),
          frame(LIBRARY + "pix/__init__.py", "<module>", "net = fetch(NAME)")], "asset"),
        ("RuntimeError", "the table of symbols does not match",
         [frame(OWN + "run.py", "<module>", "import pix"),
          frame(LIBRARY + "pix/__init__.py", "<module>", "net = fetch(NAME)")], "env"),
        ("KeyError", "('optim', 'rate')",
         [frame(LIBRARY + "fastargs/config.py", "validate", "got = self.content[way]")], "config"),
        ("KeyError", "'mean'",
         [frame(OWN + "run.py", "main", "net = resnet.build(args.resnet_path, x)"),
          frame(OWN + "resnet.py", "build", "table['mean']")], "asset"),
        ("KeyError", "'mean'",
         [frame(OWN + "run.py", "main", "train(args.resnet_path, rows)"),
          frame(OWN + "run.py", "train", "f(rows)"),
          frame(OWN + "run.py", "f", "table['mean']")], "data"),
        ("MisconfigurationException", "You requested gpu: [0]\n But your machine only has: []",
         [], "env"),
        ("MisconfigurationException", "You requested gpu: [2]\n But your machine only has: [0]",
         [], "config"),
        ("ValueError", "unknown format 7",
         [frame(OWN + "run.py", "f", "wavfile.read(path)"),
          frame(LIBRARY + "scipy/io/wavfile.py", "read", "raise ValueError(x)")], "data"),
        ("RuntimeError", "keys are mismatched between dump/tr/text and exp/stats/tr/text_shape",
         [], "data"),
        ("ValueError", "number of lines differs between '/c/a.de' and '/c/a.en': 1000 != 998",
         [], "data"),
        ("RuntimeError", "keys are mismatched between out/a.pth and out/b.pth", [], "config"),
        ("ValueError", "number of heads does not match in encoder and decoder", [], "config"),
        ("ValueError", "unknown format 7",
         [frame(OWN + "run.py", "f", "wavfile.write(path, rate, made)"),
          frame(LIBRARY + "scipy/io/wavfile.py", "write", "raise ValueError(x)")], "config"),
    ],
)  # fmt: skip
def test_what_is_told_by_a_name_and_what_is_near_it(
    exception: str, said: str, frames: list[Frame], wanted: str
) -> None:
    assert startup_class(exception, said, frames) == wanted
