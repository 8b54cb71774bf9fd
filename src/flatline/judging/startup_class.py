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

from flatline.judging.by_object import by_object
from flatline.judging.frames import (
    asked_for,
    codes,
    from_settings,
    given_weights,
    in_library,
    kind_of,
    kind_of_any,
    nearest,
    on_import,
    reads_model,
)
from flatline.model import Frame

DEFAULT = "config"

_BY_TYPE = tuple(
    (re.compile(pattern), fault_class)
    for pattern, fault_class in (
        (r"text_format\.ParseError$|Config\w*(?:Exception|Error)$|^yaml\."
         r"|(?:^|\.)(?:Scanner|Composer|Constructor)Error$", "config"),
        (r"cudadrv\.|(?:Nvvm|Linker|CompilationError|PTXError|OutOfResources|NoSuchDisplay"
         r"|DisplayConnection)\w*$", "env"),
        (r"Permission(?:Denied)?Error$", "env"),
        (r"(ModuleNotFound|Import|(?:Package|Namespace)NotFound|DistributionNotFound|VersionConflict|Glibc)"
         r"\w*(Error)?$", "env"),
        (r"(RepositoryNotFound|EntryNotFound|LocalEntryNotFound|GatedRepo|HFValidation|"
         r"RevisionNotFound|HfHubHTTP|SafetensorError|OfflineModeIsEnabled)\w*$", "asset"),
        (r"(JSONDecode|UnicodeDecode|ArrowInvalid|ArrowTypeError|ArrowNotImplemented|CastError|"
         r"Libsndfile|ImageFileError|UnidentifiedImage|BadZip|BadGzip|DatasetGeneration|DatasetNotFound|DataFilesNotFound|Parser|EmptyData|"
         r"^lmdb\.|UnexpectedSplits|NonMatchingSplits|DatasetBuild)\w*$", "data"),
    )
)  # fmt: skip
_OF_ANYTHING = re.compile(r"Misconfiguration\w*$")
"""What Lightning raises for a setting, and for what the machine lacks to follow it."""
_LACKS = re.compile(r"\bmachine only has: \[\]|\bnot installed\b|\bpip install\b")
_VERSIONS = re.compile(
    r"\bincompatible\b.*(?:\bversions?\b|\d\.\d)|(?:\bversions?\b|\d\.\d).*\bincompatible\b|"
    r"\bmachine only has: \[\]|out of date"
    r"|not (?:been )?(?:(?:correctly|properly) )?(?:installed|compiled)|"
    r"\b(?:CUDA|cuDNN|CuPy|NCCL|ROCm) (?:\w+ )?(?:is |was |has )?not (?:been )?"
    r"(?:correctly |properly )?(?:set ?up|configured)\b|"
    r"\bversions?\b.{0,80}(?:not match|mismatch|differ)|mismatch.{0,40}\bversions?\b|"
    r"(?:please|try|need to|must) (?:\w+ )?(?:pip |conda )?(?:re)?(?:install(?:ing)?|upgrade"
    r"|update|downgrade)\b|(?:requires?|needs?|supported (?:in|by|with)) [\w.-]{1,40} ?"
    r"(?:version|[<>=]=)"
    r"|(?:below|older than|prior to|newer than) (?:version )?v?\d"
    r"|(?:version|release) \S{1,30} (?:is|or) (?:required|newer|later|higher)"
    r"|\b(?:is|was|were)(?:n[o']t| not) (?:build|built) with\b"
    r"|\b(?:is|are) not available\b.{0,30}\binstalled\b|\bmake sure (?:that )?\S{1,40} (?:is|are) "
    r"(?:correctly |properly )?installed\b|\bNo module named\b|\bmiss in module _ext\b"
    r"|\bnot enabled in this build\b"
    r"|\b(?:CUDA|GPU|MPI|NCCL) (?:support )?(?:is )?not enabled\b"
    r"|\bsupport has (?:not )?been built\b|^Resource temporarily unavailable$"
    r"|\blib\w{1,40}\.so\S{0,12} (?:is |was )?(?:not|cannot|could not be)(?: be)? found\b"
    r"|\bpaging file is too small\b|\bcannot open shared object\b|\bundefined symbol: "
    r"|\bre-?(?:compile|build) with\b|\b(?:compiled|built) without\b|\bnot built with\b"
    r"|^_ARRAY_API not found$|\bno package called\b|\bPackage \S{1,60} not found\b"
    r"|\b(?:implemented|supported) (?:on|for|by) (?:the )?backend\b|\bcompatible\b.{0,60}"
    r"\bfor compute capability\b"
    r"|\b(?:cannot|can't|could not|unable to|failed to) (?:load|open|find)\b.{0,40}"
    r"\blibrar(?:y|ies)\b|\b(?:modules?|wheels?|binary|binaries|builds?) (?:found|available|built)"
    r" for\b.{0,40}\b(?:python|platform|architecture|version)\b"
    r"|'(?:type|ABCMeta)' object is not subscriptable|operand type\(s\) for \|: '(?:type|None)"
    r"|'str' object has no attribute 'remove\w{1,3}fix'|\bdataclass\(\) got an unexpected keyword"
    r"|\bMissing parentheses in call to 'print'|\b(?:find|working|missing|broken)\b.{0,30}"
    r"\binstallation\b|\bCould not run '\S{1,80}' with arguments from the '\w+' backend"
    r"|\b(?:missing|not set|unset|undefined)\b.{0,60}\benvironment variables?\b"
    r"|\bNo backend type associated with device type (?!cpu|cuda)\w"
    r"|\bno (?:GPU|CUDA|TPU|NPU|XPU|ROCm|HIP|OpenCL|SYCL|Vulkan) (?:backend|devices?|platforms?)"
    r" (?:was |were |is |are )?(?:provided|found|available|visible|detected)\b",
    re.IGNORECASE,
)
_ABOUT_DATA = re.compile(
    r"\b(?:dataset|corpus|manifest)\b.{0,80}\b(?:empty|no |missing|must|without|with an?|contain"
    r"|have|has|found|exist)|\bcolumns?\b|\bunseen labels?|\bno (?:valid )?(?:images|samples|"
    r"examples|records|rows|files) |\bno (?:valid |usable )?data (?:found|in|available)\b|"
    r"\b(?:no|not found any) (?:\w+ ){0,2}(?:images?|samples?|examples?|records?|utterances?|"
    r"annotations?|sequences?|clips?) (?:were |was )?(?:found|left|available|in)\b|"
    r"\b(?:image|label|video|audio)s? not found:? ['\"]?\S{1,400}"
    r"\.(?:jpe?g|png|bmp|tiff?|txt|npy|mp4|wav|flac)\b|"
    r"\bnum_samples should be a positive|\bimages not found,? missing path\b|\bdataset pipeline\b|"
    r"^Dataset '[^']{1,400}' error\b|\bno (?:\w+ )?(?:sample|training) data to (?:train|fit|init)|"
    r"\bfind any files\b|\bfrom 0 files\b|\bleast populated class\b|\bscene type\b|"
    r"_columns?\b.{1,80}\bneeds to be one of\b|\bcontains (?:NaN|`?[+-]?inf)\b|"
    r"\bunique values of\b|\bindices in '\w*edge_\w+'|\biterator\w*GetNext|"
    r"\blabels? .{0,40}(?:out of|invalid|range)|\bmalformed\b|"
    r"\bfound in the (?:data(?:set)?|labels?)\b|\bunexpected (?:labels?|values?) (?:found )?in\b|"
    r"\bcorrupted? (?:file|image|record|sample|jpeg)|\bcould not convert string to float"
    r"|\bat least one array to (?:stack|concatenate)|\bgot array with shape \(0,"
    r"|\b(?:(?:0|zero)-(?:in|out)-degree|isolated|dangling) (?:node|vert|edge)"
    r"|\b(?:found|loaded|read) 0 (?!model|weight|checkpoint)(?:\w+ )?(?:file|image|sample)s?\b",
    re.IGNORECASE,
)
_SETTING = re.compile(
    r"\bnum_(?:classes|labels)\b|\b[Bb]atch[ _]?size\b.{0,60}\bdivisible\b|\bvocab_size\b"
    r"|is not (?:registered|in the [\w: ]{1,40}registry)|\bfound in '\w{1,40}' registry\b"
    r"|\bconfig key\b|\b(?i:undefined|unknown|unexpected|extra) keys?\b.{0,80}\bnot allowed\b"
    r"|\bhave any device set\b|\bunrecognized (?:configuration|argument)"
    r"|\b(?:must|should) be one of\b|\balready (?:been )?(?:registered|used|defined"
    r"|exists? in [\w ]{0,40}registry)\b|\b[Oo]verride '[^']{1,80}' not found"
    r"|\b(?i:you (?:should|must|need to)|please) (?:provide|specify|give|pass|set) (?:an? |the )?"
    r"\w"
    r"|\b(?i:unknown|unsupported|unrecogni[sz]ed|invalid|undefined) (?i:dataset|data ?set|task)\b"
    r"|\b(?i:dataset|task) \S{1,60} (?:is )?not (?:supported|implemented|recogni[sz]ed)\b"
)
_OPTION = re.compile(r"(?:^|[\s('\"`])--[a-z][\w-]+")
_ABOUT_MODEL = re.compile(
    r"\bload(?:ing)? (?:an? |the )?(?:\w+ ){0,2}(?:model|weights|checkpoint|tokenizer)\b"
    r".{0,80}\b(?:incompatible|unknown|corrupt\w*|neither|not exists?|fail\w*)\b"
    r"|\b(?:fail\w*|unable) to load (?:the )?(?:pre-?trained )?"
    r"(?:tokenizer|processor|model|weights)\b"
    r"|\b(?:neither|nor|not) a valid (?:repo(?:sitory)? id|model (?:id(?:entifier)?|name))\b"
    r"|\bto load model not exists?\b|\bCan't find model '[a-z]|\b(?i:processor) was not found\b"
    r"|\bno pre-?trained (?:model|weights|checkpoint)s? (?:was |were )?(?:found|exists?)\b"
    r"|\b(?:checkpoint|weights?|tokenizer)(?: file)?\b.{0,120}\b(?:n[o']t exist|not found)\b",
    re.IGNORECASE,
)
_WITH_ADVICE = re.compile(r"Unable to load weights\b")
"""What follows is advice on settings (transformers)."""
_BY_WORDS = (
    (_WITH_ADVICE, "asset"), (_SETTING, "config"), (_VERSIONS, "env"), (_ABOUT_MODEL, "asset"),
    (_ABOUT_DATA, "data"), (_OPTION, "config"),
)  # fmt: skip
_NEW_SYNTAX = re.compile(
    r"(?:^|\W)f['\"]|:=|^\s*print [^(]|\basync\b|^\s*match "
    r"|\(.*\*\*[\w.\[\]'\"]+, ?(?:\w+ ?=|[*^]|$)"
)
"""What a Python older or newer than the code's does not know."""
_EXCEPTION = re.compile(r"([\w.]{1,120}(?:Error|Exception))(?:: |\([\"'])(.*)")
_MISSING = re.compile(r"(?:FileNotFound|NotADirectory|IsADirectory)Error$")
_ERRNO = re.compile(r"\[Errno (?:2|20|21)\] ")
"""What Python 2 calls an IOError or OSError."""
_SOUGHT = re.compile(r"; No such file or directory(?:$|\n)|\bfind any matching files for\b")
"""TensorFlow's words, behind the name of the file."""
_NOT_THERE = re.compile(
    r"(?i:the (?:provided )?|cannot open |unable to open |couldn't find )?"
    r"(?:[A-Za-z]{2,20} ){0,3}(?i:file(?:name)?|path|directory|folder|data(?:set)?|checkpoint"
    r"|data[ _]?(?:root|dir|path|folder)"
    r"|model|weights?|tokenizer|config(?:uration)?)\b.{1,240}(?:not found|n[o']t exist|Errno 2\b)"
    r"|.{0,100}\bLocalFileSystem(?:::Open\b|: fail to open )"
    r"|[Uu]nable to open file |No such file or directory\b|invalid file ?\["
    r"|\S{1,240}\.(?:pth?|ckpt|bin|h5) (?:is )?missing\b"
    r"|(?i:could not|cannot|can't|failed to|unable to) (?:open|read) (?:\w+ ){0,3}['\"]?"
    r"\S*/\S+\.\w{2,10}\b"
)
_AT_THE_ROOT = re.compile(r"['\"]/[\w.-]{1,200}\.\w{1,10}['\"]$")
"""What a variable that is empty leaves of a path."""
_TO_WRITE = re.compile(
    r"^(?!.*open\(.*open\()(?:|.*\bopen\([^()]{1,200}, ?)(?:mode ?= ?)?"
    r"['\"][wxa]b?\+?['\"] ?[,)]"
)
"""A file that is made where there is no such folder."""
_REMOVES = re.compile(r"\bos\.(?:remove|unlink|rmdir)\(|\.unlink\(|\brmtree\(")
"""What another rank has removed already."""
_MODELS_FILE = re.compile(
    r"(?i:the )?(?i:checkpoint|(?:saved_?)?model|weights?|tokenizer)\b"
    r"|(?i:[a-z]{2,20} ){0,2}(?i:pre-?trained)\b"
)
_GIVEN_PATH = re.compile(r"['\"]([^'\"]{1,400})['\"]|(\S*/\S+|\b[\w-]{1,200}\.[a-z]\w{1,9}\b)")
_PATHS = tuple(
    (re.compile(pattern, re.IGNORECASE), fault_class)
    for pattern, fault_class in (
        (r"-\d{4}\.params$|\.(?:usd[acz]?|urdf|xacro|mjcf)$", "asset"),  # MXNet's; a robot
        (r"(?:^|/)(?:train|val|valid|test)(?:_?(?:data|set))?\.(?:h5|hdf5|np[yz]|bin|t7)$",
         "data"),
        (r"(?:^|/)(?:vgg|resnet|inception|alexnet|mobilenet|densenet)[\w.-]{0,40}\."
         r"(?:np[yz]|h5|mat)$", "asset"),
        (r"(?:^|[/_])(?:(?:train|val|valid|test|eval|dev)_?)?(?:data(?:set)?|features?|samples)"
         r"(?:_[\w-]*)?\.pth?$", "data"),
        (r"\.(?:pth?|ckpt|safetensors|onnx|pdparams|msgpack|gguf|caffemodel)$|(?:^|/)(?:tokenizer"
         r"|vocab|merges)[^/]*$|pretrain|checkpoint|weights?(?:/|\b)|pytorch_model|\.model$|"
        r"(?:^|/)params\.json$|"
         r"\.(?:bin|safetensors)\.index\.json$|[a-z]_model$|"
         r"(?:^|/)models?(?:/|--)|(?:^|/)(?:glove|word2vec|fasttext|smplx?|mano)(?:\b|_)|\.vec$",
         "asset"),
        (r"\.(?:ya?ml|toml|ini|cfg|conf|py|sh|env)$|config[\w:.-]{0,80}\.json$", "config"),
        (r"\.(?:parquet|jsonl|rec|csv|tsv|arrow|tar|zip|tfrecords?|np[yz]|h5|hdf5|lmdb|mdb|zst|txt|idx"
         r"|jpe?g|png|wav|flac|mp[34]|nii(?:\.gz)?|bin|json)$", "data"),
        (r"(?:^|[/_-])(?:data(?:sets?)?|(?:pre)?processed|corpus|corpora|imagenet|coco|cifar\w*|train|val|valid|test"
         r"|images?|labels?|annotations?|splits?|manifests?)(?:[/_.-]|$)", "data"),
        (r"(?:^|/)(?:configs?|cfgs?|conf)(?:/|$)", "config"),
    )
)  # fmt: skip
_PARAMETER = re.compile(
    r"'?(?:\w+\.){2,}(?:weight|bias|gamma|beta|running_(?:mean|var)|num_batches_tracked"
    r"|relative_position_bias_table|relative_position_index|position_ids)'?$"
)
"""The name of a model's parameter, which a file of weights lacks."""
_KEYED_IN_ENV = re.compile(r"\benviron\b|CONFIG_MAPPING|_MAPPING\[")
_READS_SETTINGS = re.compile(
    r"\bjson\.loads?\(.{0,60}(?:config|cfg|conf|hparams|settings|options|opt)\b"
    r"|\b(?:config|cfg|conf|hparams|settings) *= *json\.load\("
)
_KEYED_IN_SETTINGS = re.compile(
    r"\b(?i:\w*_)?(?i:cfg|config|conf|args|opts?|hparams|hps|params|settings|options|kwargs)"
    r"(?:\.\w+)*\[|\b[A-Z_]{4,}\[|\bregistry\b"
    r"|\b(?!(?:batch|rows?|samples?|examples?|items?|data\w*|df|records?|features?|ex|x)\[)\w+"
    r"\[(?:self\.)?(?:args|opts?|cfg|config|hparams|FLAGS|flags|params)\.\w+\]|\w\[['\"]\w+['\"]\]\("
)
_SETTINGS = re.compile(
    r"'(?:\w*Config|Namespace|EasyDict|HParams|Munch|AttrDict"
    r"|(?!(?:Seq2Seq)?TrainingArg)\w*Arguments)' obj"
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
    r"_run_hydra|\w+DataParallel|DataLoader|FastLanguageModel|GaussianRasterizationSettings)\b|"
    r"\b(?:pl|L|lightning|torch|tf|keras|nn|F|optim|np|pd|jax|jnp|optax|flax|datasets|accelerate|"
    r"transformers|wandb|sns|plt|dist|deepspeed|OmegaConf)\.\w[\w.]*\(|@hydra\.main\("
)
"""Callables of libraries, by the names and the aliases they go by: what they take changes with
their version, and no file of the user's defines them."""
_MODELS_OWN = re.compile(r"\bforward\(\)|\.forward\(|_call_impl")
_REMOVED = re.compile(
    r"'str' object has no attribute 'decode'|'dict' object has no attribute '(?:iter\w+|has_key)'"
    r"|object has no attribute 'next'$|'dict' object has no attribute 'unfreeze'"
    r"|Can't get attribute '\w+' on <module '[^']+' from '[^']*(?:site|dist)-packages"
)
"""Methods that Python 3, h5py 3, PyTorch and flax took away; classes that a pickle still names."""
_MODULES_OWN = re.compile(r"/torch/nn/modules/module\.py$")
_READ_ONLY = re.compile(r"can't set attribute|has no setter")
_RECORDS = re.compile(
    r"'(?:str|list|dict|int|float|tuple)' object has no attr"
    r"|'NoneType' object has no attribute '(?:shape|size|ndim|astype|copy|convert|dtype|text)'"
)
"""What a record holds that is not as it should be; an image that cannot be read is None."""
_COUNTED = re.compile(
    r"\blen\(|(?i:num|n|total|count)_?\w*(?:batch|sample|item|example|image|size|step)|\b(?:leng|counter)\b"
)
_SHARES = re.compile(r"gpu|world|device|batch_size|heads?\b|accum|worker", re.IGNORECASE)
_OF_A_GYM = re.compile(r"\benvs?\.(?:step|reset)\(")
"""What gym gives back changed with 0.26."""
_OF_DEVICES = re.compile(r"\bjax\.(?:local_)?devices\(")
"""A mesh that fewer devices are visible than it was written for."""
_NONE_LEFT = re.compile(r"to unpack \(expected \d+, got 0\)|more than 0 values to unpack")
_COUNTS = re.compile(
    r"\bassert (?:len\(\s*[\w.]*(?:data|imag|img|file|dir|sample|anno|line|row|label|path|record)"
    r"\w*\s*\)|\w*(?:samples|images|utterances|records|files)) *(?:>|!=|==)"
)
_ASSERTS_PATH = re.compile(r"\bassert\b.*\b(?:exists|isfile|isdir|is_file|is_dir)\b.*")
_PATH_NAMES = (
    (re.compile(r"(?i)pre_?train|weight|ckpt|check_?point|model|smpl|vocab|token"), "asset"),
    (re.compile(r"(?i)data|train|image|img|anno|label|corpus|manifest|split|root"), "data"),
    (re.compile(r"(?i)cfg|conf|yaml|opt\b"), "config"),
)
_ASSERTS_SETTING = re.compile(
    r"\bassert\b.*\b(?:args|opts?|cfg|config|conf|hparams|hps|params|FLAGS)\b(?!.*\blen\()"
)
_NO_MODEL_NAMED = re.compile(r"\bis(?:dir|file)\(pretrained_model_name_or_path\)")
_NO_NAME = re.compile(r"\bname '|\bvariable\b")
_BUILT = re.compile(
    r"name '(?:_C|_?\w*(?:_cuda|_ext)|flash_attn\w*|xformers|apex|amp|bnb|bitsandbytes|deepspeed"
    r"|triton|mpi4py|tensorrt|mamba\w*|selective_scan\w*)'"
)
"""Extensions that a program imports where they were built, and packages that it can do without."""
_FIELD = re.compile(r"has no field named \"(?!https?\b|www\b)\w{3,}\"")
"""Less is a fragment: of a path with single backslashes, of a mark-up that was pasted in."""
_EGG = re.compile(r"[\\/][\w.]+-\d[\w.]*-py\d[\d.]*\.egg[\\/]")
_DAMAGED = re.compile(
    r"\b(?:SHA-?256|MD5|checksum|hash(?: value)?)\b.{0,40}\b(?:match|mismatch|invalid)"
    r"|\binvalid hash value\b|sentencepiece_processor\.cc",
    re.IGNORECASE,
)
_FETCHED = re.compile(
    r"\bdownload\w*\b.{1,300}\bfailed\b|\bfail\w* (?:to )?(?:download|fetch)\w*\b"
    r"|\bURL fetch failure on\b|\bMax retries exceeded\b"
    r"|\bfailure in name resolution\b|\burlopen error\b|\bFailed to retrieve file url\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://(\S{1,400})|host='([\w.-]{1,200})'|with url: (\S{1,400})")
_UNREACHED = re.compile(
    r"\[Errno (?:-[2-5]|101|104|110|111|113)\]"
    r"|(?:The (?:read|handshake|write) operation )?timed out$"
)
_CLIENTS = re.compile(
    r"/(?:urllib3?|requests|httpx|httpcore|aiohttp|huggingface_hub|http/client)\b"
)
"""What speaks HTTP."""
_SERVICES = re.compile(
    r"/(?:wandb|mlflow|comet_ml|clearml|neptune|swanlab|aim|ray|etcd3?|consul|kubernetes|tensorboard"
    r"|sagemaker|boto(?:3|core))\b"
)
"""Services beside the run: what they are asked for is no model and no data set."""
_TRACKERS = re.compile(r"/(?:wandb|mlflow|comet_ml|clearml|neptune|swanlab|aim)/")


def startup_class(exception: str, said: str, frames: Sequence[Frame] = ()) -> str:
    """data, config, env or asset, of an exception's type, its message and its frames."""
    near = nearest(frames)
    if exception.endswith("SyntaxError"):
        return "env" if _other_python(said, near) else DEFAULT
    came = not (_FETCHED.search(said) or _DAMAGED.search(said))
    if (on_import(frames) and came) or _of_a_copy(exception, said, frames):
        return "env"
    if exception.endswith("JSONDecodeError"):
        return _by_its_reader(near)
    if found := _by_type(exception, said):
        return found
    if exception.endswith(("NameError", "UnboundLocalError")) and _NO_NAME.search(said):
        return "env" if in_library(near) or _BUILT.search(said) else DEFAULT
    if _is_missing(exception, said):
        return _what_is_missing(said, near)
    if not came:
        of_data = kind_of_any(asked_for(frames)) == "data"
        return fetched(said) or ("data" if of_data else "asset")
    if _UNREACHED.match(said) and asks_the_network(frames):
        return "asset"
    if exception.endswith("KeyError") and not _SETTING.search(said):
        return _keyed(said, near)
    return _first(_BY_WORDS, said) or _by_what_was_done(exception, said, near)


def _by_type(exception: str, said: str) -> str | None:
    if _OF_ANYTHING.search(exception):
        return "env" if _LACKS.search(said) else DEFAULT
    return _first(_BY_TYPE, exception)


def _is_missing(exception: str, said: str) -> bool:
    """Whether a file is not there, in the words of Python or of a library."""
    return bool(
        _MISSING.search(exception)
        or _ERRNO.match(said)
        or _NOT_THERE.match(said)
        or _SOUGHT.search(said)
    )


def asks_the_network(frames: Sequence[Frame]) -> bool:
    """Whether something was being fetched, and not a service of the site spoken to."""
    files = [frame.file.replace("\\", "/") for frame in frames]
    return any(map(_CLIENTS.search, files)) and not any(map(_SERVICES.search, files))


def _by_what_was_done(exception: str, said: str, near: tuple[Frame, ...]) -> str:
    """Where the message says nothing: by the call, the attribute, the operation, the frames."""
    if of_a_tracker(near):
        return "env"
    if "not NoneType" in said and any(map(_NO_MODEL_NAMED.search, codes(near))):
        return DEFAULT
    of_data = "data" if kind_of_any(near) == "data" else DEFAULT
    code = next(iter(codes(near)), "")
    if found := by_object(exception, said, code):
        return found
    if exception.endswith("TypeError") and _CALL.search(said):
        return "env" if _of_a_library(said, near) else DEFAULT
    if exception.endswith("AttributeError"):
        return "env" if _changed(said, near) else of_data if _RECORDS.search(said) else DEFAULT
    if exception.endswith("NotImplementedError") and "download" not in said:
        return DEFAULT
    if exception.endswith("ZeroDivisionError"):
        return "data" if _COUNTED.search(code) and not _SHARES.search(code) else of_data
    return _by_the_line(code, said, near) or kind_of_any(near) or DEFAULT


def _changed(said: str, near: tuple[Frame, ...]) -> bool:
    """Whether an attribute is lacking that another version of Python or of a library has."""
    if _REMOVED.search(said) or ("type object '" in said and _LIBRARY_CALL.search(said)):
        return True
    if near and _MODULES_OWN.search(near[-1].file) and near[-1].function == "__getattr__":
        near = near[:-1]  # which raises for whoever asked
    of_object = _READ_ONLY.search(said) or _OBJECTS.search(said)
    return in_library(near) and bool(of_object) and not _SETTINGS.search(said)


def _by_the_line(code: str, said: str, near: tuple[Frame, ...]) -> str | None:
    """By what the line that raised was checking or taking apart."""
    if found := _ASSERTS_PATH.search(code):
        return _first(_PATH_NAMES, found[0]) or kind_of_any(near)
    if _ASSERTS_SETTING.search(code):
        return DEFAULT
    if "to unpack" in said and _OF_A_GYM.search(code):
        return "env"
    if "cannot reshape array" in said and _OF_DEVICES.search(code):
        return "env"
    if (_NONE_LEFT.search(said) and "zip(*" in code) or _COUNTS.search(code):
        return "data"
    return None


def _by_its_reader(near: tuple[Frame, ...]) -> str:
    """What a text in JSON was, by who read it."""
    if any(_READS_SETTINGS.search(code) for code in codes(near)):
        return "config"
    return "asset" if kind_of_any(near) == "asset" else "data"


def _other_python(said: str, near: tuple[Frame, ...]) -> bool:
    """Whether a source that Python refuses is good for another version of it."""
    texts = (said, *codes(near[-1:]))
    return bool(_VERSIONS.search(said)) or any(map(_NEW_SYNTAX.search, texts))


def _of_a_copy(exception: str, said: str, frames: Sequence[Frame]) -> bool:
    """Whether a configuration knows more than the copy of the program that was installed once
    (`setup.py install` makes an egg of it) and has not been since."""
    return (
        exception.endswith("text_format.ParseError")
        and _FIELD.search(said) is not None
        and any(_EGG.search(frame.file) for frame in frames)
    )


def of_a_tracker(frames: Sequence[Frame]) -> bool:
    """Whether the innermost frame speaks to a tracker of experiments."""
    return any(_TRACKERS.search(frame.file.replace("\\", "/")) for frame in frames[-1:])


def class_of_line(text: str, frames: Sequence[Frame] = ()) -> str | None:
    """The same, of an exception that is one line of a log; None where it names none."""
    named = _EXCEPTION.search(text)
    return startup_class(named[1], named[2], frames) if named else None


def _what_is_missing(said: str, near: tuple[Frame, ...]) -> str:
    """Of which kind a file is by its name; by who looked for it where the name does not say."""
    if any(map(_REMOVES.search, codes(near)[:1])) or any(map(_TO_WRITE.search, codes(near)[:1])):
        return DEFAULT
    if _MODELS_FILE.match(said) or any(reads_model(f) for f in near):
        return "asset"
    if re.match(
        r"(?:The )?[Dd]ata(?:set|[ _]?(?:root|dir|path|folder))\b"
        r"|.{0,400}\bimages not found,? missing path\b"
        r"|.{0,60}\b[Dd]ata file\b|Couldn't find (?:a dataset|any class)",
        said,
    ):
        return "data"
    if _AT_THE_ROOT.search(said):
        return DEFAULT
    for given in _GIVEN_PATH.finditer(said):
        path = (given[1] or given[2]).strip("<>;,:").replace("\\\\", "/").replace("\\", "/")
        if found := _first(_PATHS, path):
            return found
    return kind_of_any(near) or "asset"


def fetched(said: str) -> str | None:
    """Of which kind something is that did not come over the network, by its address; None where
    that does not say, or an address only tells where to read on."""
    if not _FETCHED.search(said):
        return None
    parts = [part for found in _ADDRESS.findall(said) for part in found if part]
    kinds = (_first(_PATHS, part.rstrip(" '\",.)")) for part in parts)
    # settings that are fetched are a model's
    return next(("asset" if kind == "config" else kind for kind in kinds if kind), None)


def _keyed(said: str, near: tuple[Frame, ...]) -> str:
    """By what was asked for the key: the environment, settings, or else a record of the data."""
    if said == "None":
        return DEFAULT
    if any(_KEYED_IN_ENV.search(code) for code in codes(near)):
        return "env"
    if given_weights(near) or by_object("KeyError", "", next(iter(codes(near)), "")):
        return "asset"
    for frame in reversed(near):
        if frame.code and _KEYED_IN_SETTINGS.search(frame.code):
            return "config"
        if found := kind_of(frame):
            return found
    return "asset" if _PARAMETER.match(said) else "data"


def _of_a_library(said: str, near: tuple[Frame, ...]) -> bool:
    code = next(iter(codes(near)), "")
    if _MODELS_OWN.search(f"{said} {code}"):
        return False
    called = in_library(near) and not from_settings(near)
    return called or bool(_LIBRARY_CALL.search(said) or _LIBRARY_CALL.search(code))


def _first(rules: Iterable[tuple[re.Pattern[str], str]], *texts: str) -> str | None:
    return next((kind for text in texts for rule, kind in rules if rule.search(text)), None)
