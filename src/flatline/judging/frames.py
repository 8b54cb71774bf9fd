"""
What the frames that an exception came out of were about: data, a model's files, the software.

Only the frames nearest to the exception count, innermost first: those further out are the same for
every failure of a program.  A folder that data lie in by the site's habit (`/data/user/project`)
says nothing, so a path is read from its package or from the folder of the script on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from flatline.logs.tracetext import CODE, FLUSH, FRAME, MARKS
from flatline.model import Frame

NEAREST = 6

_LIBRARY = re.compile(r".*/(?:(?:site|dist)-packages|transformers_modules)/")
"""`transformers_modules`: the code that comes with a model of the Hub."""
_STANDARD = re.compile(r"/lib(?:64)?/python\d[\d.]*/|^<")
_FOREIGN_FOLDERS = 4
"""Of a path that begins neither in a package nor at the script: so much of its end is read."""
_NO_DATA = (
    r"(?!(?:train|main|run|models?|nets?|network|layers?|modules?|loss|optim|config|trainer|engine)"
    r"\w*\.py)"
)
_DATA_FILES = re.compile(
    r"/torch/utils/data/_utils/(?:worker|fetch|collate)\.py"
    r"|/torch/utils/data/(?:dataloader\.py:_process_data$|sampler\.py)"
    r"|/(?:datasets|pyarrow|pandas|webdataset|torchdata|litdata|streaming)/"
    r"|/Data(?:[Ss]et|Loader|System)?\.py:|(?<!/torch/utils/data)/(?:\w+_)?datasets?\.py:|(?<!/torch/utils)/data/\w*datasets?\w*\.py:"
    rf"|(?<!/torch/utils)/(?:data(?:set)?|data_?loaders?|dataloading|dataset_\w+)/(?:\w+/)?{_NO_DATA}\w+\.py:"
    r"(?!<module>$|main$|train$)"
)
_OWN_DATA_FILES = re.compile(
    r"/(?:\w+_)?data(?:sets?)?(?:_?(?:utils?|loaders?|loading|modules?|generators?|iter\w*|prep\w*|readers?"
    r"|source|pipeline|process\w*|feeders?))?\.py:(?!main$|train$)"
    r"|/\w*[Dd]ata(?:[Ss]ets?)?_?(?:[Ll]oad(?:er)?s?|[Gg]enerators?|[Uu]tils?|[Rr]eaders?|Providers?|providers?"
    r"|[Mm]anagers?)\w*\.py:(?!main$|train$)|/(?:[Ll]oad|[Rr]ead|[Pp]repare)_?[Dd]ata\w*\.py:(?!main$|train$)"
    r"|/(?:\w+_)?(?:(?:pre)?process|preprocess\w*|vocab\w*|filelists?|formatters?|manifests?|image_iter)\.py:"
)
"""In a library files of such names may fetch anything (`keras/utils/data_utils.py`)."""
_BY_FILE = tuple(
    (re.compile(pattern), fault_class)
    for pattern, fault_class in (
        (r"/transformers/tokenization_utils\w*\.py:(?!\w*from_pretrained|__init__)", "data"),
        (r"/(?:huggingface_hub|safetensors)/|/transformers/(?:utils/hub|modeling_utils|"
         r"(?:models/\w+/)?tokenization_\w+|configuration_utils|models/auto)"
         r"|/torch/serialization\.py|/tensorflow/python/(?:training/(?:saver|checkpoint\w*)"
         r"|checkpoint/\w+)\.py"
         r"|/torch/(?:hub|utils/model_zoo)\.py:\w*(?:load_url|url_to_file|dict_from_url)$",
         "asset"),
        (r"/(?:yaml|omegaconf|yacs|ruamel)/|/yacs\.py:"
         r"|/site-packages/(?:(?:fastargs|mmengine|mmcv/utils|detectron2|fvcore/common)/config"
         r"|(?:configargparse|simple_parsing|ml_collections|dynaconf|pyhocon|absl/flags)\b)",
         "config"),
        (r"/site-packages/(?!.*:_?(?:save|write))(?:scipy/io/wavfile|soundfile|skimage/io|nibabel"
         r"|pydicom|SimpleITK|tifffile|decord|torchvision/io|PIL/(?:ImageFile|\w+Plugin))\b"
         r"|/site-packages/PIL/Image\.py:_?(?:open|load)\w*$",
         "data"),
        (r"/numba/cuda/cudadrv/|/triton/(?:compiler|runtime|backends)/|"
         r"<frozen importlib|/importlib/|/ctypes/|/google/protobuf/|pkg_resources|"
         r"/torch/utils/cpp_extension\.py",
         "env"),
    )
)  # fmt: skip
_READS_DATA = re.compile(
    r"(?:__getitem__|_?collate\w*|(?:pre)?process_(?:function|data)|tokenize\w*|_?(?:load|read|get|"
    r"prepare|build|parse|make|create)_(?:\w+_)?(?:data|datasets?|dataloaders?|corpus|annotations"
    r"|images?|vocab\w*|meta_?data|file_?lists?|samples|manifests?|records)"
    r"|_?(?:load|read|parse|prepare)_(?:\w+_)?features?)$|(?:verify|validate)_(?:\w+_)?data\w*$"
)
_PREPARES = re.compile(
    r"_?(?:load|get|prepare|build|make|create|generate)_(?:\w+_)?"
    r"(?:data|datasets?(?:_groups?)?|dataloaders?|corpus)(?:_(?:by|from|for|of)_\w+)?$"
    r"|_?(?:cache|precompute)_(?:\w+_)?(?:latents|embed(?:ding)?s|features|images"
    r"|text_encoder_outputs)(?:_to_disk)?$"
)
_READS_A_SET = re.compile(
    r"_?read_(?!\w*(?:arg|opt|conf|cfg|setting|model|weight|param|state|env|version))\w+$"
    r"|_?(?:load|parse)_(?:\w+_)?(?:files?|lines?|csv|txt|lists?|splits?|pairs|graphs?|texts?|audios?"
    r"|wavs?|scenes?|poses|cora|mnist|cifar\w*|imagenet|coco|voc)$"
)
"""By the name of a set (`load_cora`), of a format (`read_scp`)."""
_SETS_UP_DATA = re.compile(
    r"\b(?!DataLoader\()(?!\w*(?:Config|Model|Weights?|Checkpoint|File|FileSystem|Full|Safe|Yaml"
    r"|YAML)Loader)\w*(?:Data[sS]et|DataModule|DataGenerator|Loader|Corpus|Vocab(?:ulary)?)"
    r"\w{0,12}(?:\.(?:load|read|build|from_\w+))?\("
    r"|\b(?:iter|next)\(\w*(?:data|loader|iterator)\w*\)"
)
_READS_MODEL = re.compile(
    r"_?(?:load|restore|init|read|download)_(?:\w+_)?(?:weights|model|pretrained|state_dict|param"
    r"|embeddings?)\w*$|from_pretrained$"
)
_HANDS_WEIGHTS = re.compile(
    r"(?i)\b(\w+)\((?:[\w.]+\.)?(?!\w*(?:resum|restor|last|latest|feat|embed|class_?weight"
    r"|sample_?weight))\w*(?:pre_?train|weight|backbone"
    r"|vgg|resnet|alexnet|inception|mobilenet|densenet|bert)\w*_(?:path|file|mat|npy)\b"
)
_READS_SETTINGS = re.compile(
    r"_?(?:get|load|read|parse|merge)_(?:\w+_)?(?:configs?|cfg|conf|settings|hparams|yaml|opts?"
    r"|options|args)(?:_from\w*|_file)?$|merge_from_(?:file|list|other_cfg)$"
)
_OPENS_SETTINGS = re.compile(
    r"\b(?:OmegaConf\.load|yaml\.(?:safe_|full_)?load|Config\.fromfile)\("
)
_CALLS_AS_SET = re.compile(r"(?:_?instantiate|_?call_target|_create_component)\w*$")
"""Functions that call what a configuration names with the arguments it lists."""
_READS_WORDS = re.compile(
    r"\b\w*[Tt]okenizer\w*\.(?:from_file|load)\(|\b(?:_\w+\.)?SentencePieceProcessor"
)
"""Vocabularies come with the model."""
_IMPORTS = re.compile(r"(?:from|import) [\w.]")
_FETCHES = re.compile(r"/(?:urllib3?|http|ssl|socket|requests|gdown|wget|tarfile|zipfile)\b")


def nearest(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The innermost frames, their paths with slashes and from the package or the script on."""
    all_of = [replace(f, file=f.file.replace("\\", "/")) for f in frames]
    script = next((f.file for f in all_of if not _outside(f)), "")
    root = script[: script.rfind("/") + 1]
    return tuple(replace(f, file=_within(f.file, root)) for f in all_of[-NEAREST:])


def asked_for(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The same without those that fetch or unpack whatever they are given."""
    return nearest([f for f in frames if not _FETCHES.search(f.file.replace("\\", "/"))])


def in_library(near: Sequence[Frame]) -> bool:
    return bool(near) and bool(_LIBRARY.match(near[-1].file))


def reads_model(frame: Frame) -> bool:
    return bool(_READS_MODEL.match(frame.function) or _READS_WORDS.search(frame.code or ""))


def given_weights(near: Sequence[Frame]) -> bool:
    """Whether the innermost function was handed a file of weights to take apart."""
    if len(near) < 2:
        return False
    calls = _HANDS_WEIGHTS.finditer(near[-2].code or "")
    return any(call[1] == near[-1].function for call in calls)


def from_settings(near: Sequence[Frame]) -> bool:
    """Whether what was called, and with what, was a configuration's to say."""
    return bool(near) and _CALLS_AS_SET.match(near[-1].function) is not None


def kind_of(frame: Frame) -> str | None:
    """data, asset or env, by the file and the function alone."""
    at = f"{frame.file}:{frame.function}"
    if _DATA_FILES.search(at) or (not _outside(frame) and _OWN_DATA_FILES.search(at)):
        return "data"
    return next((kind for rule, kind in _BY_FILE if rule.search(at)), None)


def kind_of_any(near: Sequence[Frame]) -> str | None:
    """Of the innermost frame that says it; none does where a model was called."""
    for frame in reversed(near):
        if "/torch/nn/" in frame.file:
            return None
        if found := kind_of(frame):
            return found
        if _READS_DATA.match(frame.function):
            return "data"
        if reads_model(frame):
            return "asset"
        if _READS_SETTINGS.match(frame.function) or _OPENS_SETTINGS.search(frame.code or ""):
            return "config"
        if _SETS_UP_DATA.search(frame.code or "") or (
            not _outside(frame) and _READS_A_SET.match(frame.function)
        ):
            return "data"
    return None


def prepares_data(frames: Sequence[Frame]) -> bool:
    """Whether the way there leads through a function that makes the data set or its loader."""
    return any(_PREPARES.match(frame.function) for frame in frames)


def on_import(frames: Sequence[Frame]) -> bool:
    """Whether a library could not even be imported: it was raised by its modules' own bodies, or
    by an extension in native code, and no line of the program was run in between."""
    way = [f for f in frames if not f.file.startswith("<frozen")]
    asked = [at for at, f in enumerate(way) if _IMPORTS.match((f.code or "").strip())]
    if not asked:
        return False
    if asked[-1] == len(way) - 1:
        return True
    return any(
        way[at + 1].function == "<module>" and all(_outside(f) for f in way[at + 1 :])
        for at in asked
    )


def codes(near: Sequence[Frame]) -> tuple[str, ...]:
    """The lines of code of the innermost frames, innermost first."""
    return tuple(frame.code for frame in reversed(near) if frame.code)


def _outside(frame: Frame) -> bool:
    """Whether it is of a library or of Python itself."""
    path = frame.file.replace("\\", "/")
    return bool(_LIBRARY.match(path) or _STANDARD.search(path))


def _within(path: str, root: str) -> str:
    if package := _LIBRARY.match(path):
        return "/site-packages/" + path[package.end() :]
    if root and path.startswith(root):
        return "/" + path[len(root) :]
    return "/" + "/".join(path.split("/")[-_FOREIGN_FOLDERS:])


def above(lines: Sequence[str]) -> tuple[Frame, ...]:
    """The frames that these lines end in, of a traceback that was printed without its head: Ray
    heads it otherwise, and Python has none where a source does not parse."""
    found: list[Frame] = []
    code: str | None = None
    texts = [line.rstrip() for line in lines]
    for at in range(len(texts) - 1, -1, -1):
        text = texts[at]
        if frame := FRAME.match(text if text.startswith(" ") else f"  {text}"):
            found.insert(0, Frame(frame[1], int(frame[2]), frame[3] or "", code))
            code = None
        elif MARKS.match(text):
            continue
        elif code is None and (CODE.match(text) or (at and FLUSH.match(texts[at - 1]))):
            code = text.strip()
        else:
            break
    return tuple(found)
