"""
What a failure at start-up is about: the data, the configuration, the software, or an asset.

    data    the dataset: absent, empty, malformed, without the column or label asked for
    config  a setting, or code that does not fit what it is given
    env     a package, driver, architecture or variable of the environment
    asset   a model, tokenizer or checkpoint that cannot be had

Whoever knows the line already (a signature) has the last word; this is for exceptions whose type
alone does not say: a missing file, key, argument or attribute.  Read, in this order: the type, the
words of the message, what the path names, and the frames the exception came out of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from flatline.model import Frame

DEFAULT = "config"
_NEAREST = 6
"""Frames: those further out are the same for every failure of a program."""

_BY_TYPE = tuple(
    (re.compile(pattern), fault_class)
    for pattern, fault_class in (
        (r"text_format\.ParseError$|Config\w*(?:Exception|Error)$|^yaml\.", "config"),
        (r"cudadrv\.|(?:Nvvm|Linker|CompilationError|PTXError|OutOfResources)\w*$", "env"),
        (r"(ModuleNotFound|Import|PackageNotFound|DistributionNotFound|VersionConflict|Glibc)"
         r"\w*(Error)?$", "env"),
        (r"(RepositoryNotFound|EntryNotFound|LocalEntryNotFound|GatedRepo|HFValidation|"
         r"RevisionNotFound|HfHubHTTP|SafetensorError|OfflineModeIsEnabled)\w*$", "asset"),
        (r"(JSONDecode|UnicodeDecode|ArrowInvalid|ArrowTypeError|ArrowNotImplemented|CastError|"
         r"Libsndfile|UnidentifiedImage|BadZip|BadGzip|DatasetGeneration|DatasetNotFound|DataFilesNotFound|Parser|EmptyData|"
         r"UnexpectedSplits|NonMatchingSplits|DatasetBuild)\w*$", "data"),
    )
)  # fmt: skip
_VERSIONS = re.compile(
    r"\bincompatible\b.*(?:\bversions?\b|\d\.\d)|(?:\bversions?\b|\d\.\d).*\bincompatible\b|"
    r"\bmachine only has: \[\]|out of date|not (?:been )?(?:installed|compiled)|"
    r"\bversions?\b.{0,80}(?:not match|mismatch|differ)|mismatch.{0,40}\bversions?\b|"
    r"(?:please|try|need to|must) (?:\w+ )?(?:pip |conda )?(?:re)?(?:install|upgrade|update"
    r"|downgrade)\b|(?:requires?|needs?|supported (?:in|by|with)) [\w.-]{1,40} ?(?:version|[<>=]=)"
    r"|(?:below|older than|prior to|newer than) (?:version )?v?\d"
    r"|(?:version|release) \S{1,30} (?:is|or) (?:required|newer|later|higher)"
    r"|\bNo module named\b|\bmiss in module _ext\b|\bnot enabled in this build\b"
    r"|\b(?:isn't|not) (?:implemented|supported) (?:on|for|by) (?:the )?backend\b"
    r"|\bre-?(?:compile|build) with\b|\b(?:compiled|built) without\b"
    r"|\bcannot (?:load|open|find)\b.{0,40}\b(?:shared|dynamic) librar",
    re.IGNORECASE,
)
_ABOUT_DATA = re.compile(
    r"\b(?:dataset|corpus|manifest)\b.{0,80}\b(?:empty|no |missing|must|without|with an?|contain"
    r"|have|has|found|exist)|\bcolumns?\b|\bunseen labels?|\bno (?:valid )?(?:images|samples|"
    r"examples|records|rows|files) |\bno (?:valid |usable )?data (?:found|in|available)\b|"
    r"\blabels? .{0,40}(?:out of|invalid|range)|\bmalformed\b|"
    r"\bunexpected (?:labels?|values?) (?:found )?in\b|"
    r"\bcorrupted? (?:file|image|record|sample|jpeg)|\bcould not convert string to float"
    r"|\bat least one array to (?:stack|concatenate)",
    re.IGNORECASE,
)
_SETTING = re.compile(
    r"\bnum_(?:classes|labels)\b|\bvocab_size\b|is not (?:registered|in the [\w ]{1,40}registry)"
    r"|\bconfig key\b|\bunrecognized (?:configuration|argument)"
)
_BY_WORDS = ((_SETTING, "config"), (_VERSIONS, "env"), (_ABOUT_DATA, "data"))
_NEW_SYNTAX = re.compile(r"(?:^|\W)f['\"]|:=|^\s*print [^(]|\basync\b|^\s*match ")
"""What a Python older or newer than the code's does not know."""
_EXCEPTION = re.compile(r"([\w.]{1,120}(?:Error|Exception)): (.*)")
_MISSING = re.compile(r"(?:FileNotFound|NotADirectory|IsADirectory)Error$")
_NOT_THERE = re.compile(
    r"(?i:the |cannot open |unable to open |couldn't find )?(?:[A-Za-z]{2,20} ){0,3}(?i:"
    r"file|path|directory|folder|data(?:set)?|checkpoint"
    r"|model|weights?|tokenizer|config(?:uration)?)\b.{1,240}(?:not found|n[o']t exist|Errno 2\b)"
    r"|[Uu]nable to open file |No such file or directory\b|invalid file ?\["
    r"|\S{1,240}\.(?:pth?|ckpt|bin|h5) (?:is )?missing\b"
)
_MODELS_FILE = re.compile(
    r"(?i:the )?(?i:checkpoint|model|weights?|tokenizer)\b"
    r"|(?i:[a-z]{2,20} ){0,2}(?i:pre-?trained)\b"
)
_GIVEN_PATH = re.compile(r"['\"]([^'\"]{1,400})['\"]|(\S*/\S+)")
_PATHS = tuple(
    (re.compile(pattern, re.IGNORECASE), fault_class)
    for pattern, fault_class in (
        (r"\.(?:pth?|ckpt|safetensors|onnx|pdparams|msgpack|gguf|caffemodel)$|(?:^|/)(?:tokenizer"
         r"|vocab|merges)[^/]*$|pretrain|checkpoint|weights?(?:/|\b)|pytorch_model|\.model$|"
         r"(?:^|/)models?(?:/|--)", "asset"),
        (r"\.(?:ya?ml|toml|ini|cfg|conf|py|sh|env)$|config[\w-]{0,20}\.json$", "config"),
        (r"\.(?:parquet|jsonl|csv|tsv|arrow|tar|zip|tfrecords?|np[yz]|h5|hdf5|lmdb|mdb|zst|txt|idx"
         r"|jpe?g|png|wav|flac|mp[34]|nii(?:\.gz)?|bin|json)$", "data"),
        (r"(?:^|[/_-])(?:data(?:sets?)?|(?:pre)?processed|corpus|corpora|imagenet|coco|cifar\w*|train|val|valid|test"
         r"|images?|labels?|annotations?|splits?|manifests?)(?:[/_.-]|$)", "data"),
    )
)  # fmt: skip
_KEYED_IN_ENV = re.compile(r"\benviron\b|CONFIG_MAPPING|_MAPPING\[")
_KEYED_IN_SETTINGS = re.compile(
    r"\b(?i:\w*_)?(?i:cfg|config|conf|args|opts?|hparams|hps|params|settings|options|kwargs)"
    r"(?:\.\w+)*\[|\b[A-Z_]{4,}\[|\bregistry\b"
)
_SETTINGS = re.compile(
    r"'(?:\w*Config|Namespace|EasyDict|HParams|Munch|AttrDict|\w*Arguments)' obj"
)
_OBJECTS = re.compile(
    r"'(?!NoneType|[A-Z]\w*(?:Tensor|Dataset|Array)')[A-Z]\w+' object has no attr"
)
_CALL = re.compile(
    r"unexpected keyword argument|required (?:positional|keyword-only) argument|positional "
    r"arguments? but|multiple values for argument"
)
_LIBRARY_CALL = re.compile(
    r"\b(?:(?:Seq2Seq)?TrainingArguments|(?:Seq2Seq|SFT|DPO|PPO|GRPO|KTO|ORPO|Reward)?Trainer|"
    r"(?:SFT|DPO|PPO|GRPO|KTO|ORPO|Lora|BitsAndBytes)Config|Accelerator|ModelCheckpoint|"
    r"_run_hydra|DistributedDataParallel|FullyShardedDataParallel|DataLoader|FastLanguageModel)\b|"
    r"\b(?:pl|L|lightning|torch|tf|keras|nn|F|optim|np|pd|jax|jnp|optax|flax|datasets|accelerate|"
    r"transformers|wandb|sns|plt|dist|deepspeed)\.\w[\w.]*\("
)
"""Callables of libraries, by the names and the aliases they go by: what they take changes with
their version, and no file of the user's defines them."""
_MODELS_OWN = re.compile(r"\bforward\(\)|\.forward\(|_call_impl")
_LIBRARY = re.compile(r"/(?:site|dist)-packages/")
_BY_FRAME = tuple(
    (re.compile(pattern), fault_class)
    for pattern, fault_class in (
        (r"/(?:datasets|pyarrow|pandas|webdataset|torchdata|litdata|streaming)/|"
         r"/torch/utils/data/_utils/(?:worker|fetch|collate)\.py|"
         r"/torch/utils/data/(?:dataloader\.py:_process_data$|sampler\.py)|/(?:\w+_)?datasets?\.py:|"
         r"/data/\w*datasets?\w*\.py:", "data"),
        (r"/transformers/tokenization_utils\w*\.py:(?!\w*from_pretrained|__init__)", "data"),
        (r"/(?:huggingface_hub|safetensors)/|/transformers/(?:utils/hub|modeling_utils|"
         r"tokenization_utils\w*|configuration_utils|models/auto)|/torch/serialization\.py",
         "asset"),
        (r"/numba/cuda/cudadrv/|/triton/(?:compiler|runtime)/|"
         r"<frozen importlib|/importlib/|/ctypes/|/google/protobuf/|pkg_resources|"
         r"/torch/utils/cpp_extension\.py",
         "env"),
    )
)  # fmt: skip
_READS_DATA = re.compile(
    r"(?:__getitem__|_?collate\w*|(?:pre)?process_(?:function|data)|tokenize\w*|(?:load|read|get|"
    r"prepare|build)_(?:\w+_)?(?:data|datasets?|dataloaders?|corpus|annotations|images?))$|(?:verify|validate)_(?:\w+_)?data\w*$"
)
_READS_MODEL = re.compile(
    r"_?(?:load|restore|init|read|download)_(?:\w+_)?(?:weights|model|pretrained|state_dict|params"
    r"|embeddings?)\w*$|from_pretrained$"
)


_READS_WORDS = re.compile(r"\b\w*[Tt]okenizer\w*\.(?:from_file|load)\(|\bSentencePieceProcessor\b")
"""Vocabularies come with the model."""
_FETCHED = re.compile(
    r"\bdownload\w*\b.{1,300}\bfailed\b|\bfail\w* to (?:download|fetch)\b|\bMax retries exceeded\b"
    r"|\bfailure in name resolution\b|\burlopen error\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://(\S{1,400})|host='([\w.-]{1,200})'|with url: (\S{1,400})")


def startup_class(exception: str, said: str, frames: Sequence[Frame] = ()) -> str:
    """data, config, env or asset, of an exception's type, its message and its frames."""
    near = tuple(replace(f, file=f.file.replace("\\", "/")) for f in frames[-_NEAREST:])
    if found := _first(_BY_TYPE, exception):
        return found
    if exception.endswith("SyntaxError"):
        return "env" if any(_NEW_SYNTAX.search(code) for code in _codes(near[-1:])) else DEFAULT
    if _MISSING.search(exception) or _NOT_THERE.match(said):
        return _what_is_missing(said, near)
    if _FETCHED.search(said):
        return fetched(said) or "asset"
    if exception.endswith("KeyError") and not _SETTING.search(said):
        return _keyed(near)
    if found := _first(_BY_WORDS, said):
        return found
    if exception.endswith("TypeError") and _CALL.search(said):
        return "env" if _of_a_library(said, near) else DEFAULT
    if exception.endswith("AttributeError"):
        return (
            "env"
            if _OBJECTS.search(said) and _in_library(near) and not _SETTINGS.search(said)
            else DEFAULT
        )
    return _by_frame(near) or DEFAULT


def class_of_line(text: str, frames: Sequence[Frame] = ()) -> str | None:
    """The same, of an exception that is one line of a log; None where it names none."""
    named = _EXCEPTION.search(text)
    return startup_class(named[1], named[2], frames) if named else None


def _what_is_missing(said: str, near: tuple[Frame, ...]) -> str:
    """Of which kind a file is by its name; by who looked for it where the name does not say."""
    if _MODELS_FILE.match(said) or any(
        _READS_MODEL.match(f.function) or _READS_WORDS.search(f.code or "") for f in near
    ):
        return "asset"
    if re.match(r"(?:The )?[Dd]ataset\b|Couldn't find (?:a dataset|any class)", said):
        return "data"
    for given in _GIVEN_PATH.finditer(said):
        if found := _first(_PATHS, given[1] or given[2]):
            return found
    return _by_frame(near) or "asset"


def fetched(said: str) -> str | None:
    """Of which kind something is that did not come over the network, by its address; None where
    that does not say, or an address only tells where to read on."""
    if not _FETCHED.search(said):
        return None
    parts = [part for found in _ADDRESS.findall(said) for part in found if part]
    return next((kind for part in parts if (kind := _first(_PATHS, part.rstrip(" '\",.)")))), None)


def _keyed(near: tuple[Frame, ...]) -> str:
    """By what was asked for the key: the environment, settings, or else a record of the data."""
    if any(_KEYED_IN_ENV.search(code) for code in _codes(near)):
        return "env"
    for frame in reversed(near):
        if frame.code and _KEYED_IN_SETTINGS.search(frame.code):
            return "config"
        if found := _first(_BY_FRAME, f"{frame.file}:{frame.function}"):
            return found
    return "data"


def _of_a_library(said: str, near: tuple[Frame, ...]) -> bool:
    code = next(iter(_codes(near)), "")
    if _MODELS_OWN.search(f"{said} {code}"):
        return False
    return _in_library(near) or bool(_LIBRARY_CALL.search(said) or _LIBRARY_CALL.search(code))


def _in_library(near: tuple[Frame, ...]) -> bool:
    return bool(near) and bool(_LIBRARY.search(near[-1].file))


def _by_frame(near: tuple[Frame, ...]) -> str | None:
    for frame in reversed(near):
        if found := _first(_BY_FRAME, f"{frame.file}:{frame.function}"):
            return found
        if _READS_DATA.match(frame.function):
            return "data"
        if _READS_MODEL.match(frame.function) or _READS_WORDS.search(frame.code or ""):
            return "asset"
    return None


def _codes(near: tuple[Frame, ...]) -> tuple[str, ...]:
    """The lines of code of the innermost frames, innermost first."""
    return tuple(frame.code for frame in reversed(near) if frame.code)


def _first(rules: Iterable[tuple[re.Pattern[str], str]], *texts: str) -> str | None:
    return next((kind for text in texts for rule, kind in rules if rule.search(text)), None)
