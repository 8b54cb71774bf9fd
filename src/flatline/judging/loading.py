"""
What was being read when an exception was raised, by the frames it came out of.

A checkpoint that a run was to go on from is another matter (E2) than the weights that a model is
built from (A1, asset), though the same function of the same library reads both.
"""

from __future__ import annotations

import re

from flatline.facts import Facts
from flatline.judging.frames import kind_of_any, nearest
from flatline.model import Crash, LogCite

_LOADING = (
    r"(?:_?(?:load|resume|restore|resume_from|load_from|maybe_load|read)_"
    r"(?:last_|latest_|from_|prev(?:ious)?_|train(?:ing|er)?_)?"
    r"(?:checkpoint|ckpt|state_dict|parameter_state|optimizer_state)\w*"
    r"|restore_weights|_restore_modules_and_callbacks|restore_training_state|restore_optimizers_and_schedulers)"
)
_LOADS, _CALLED = re.compile(_LOADING), re.compile(rf"\b{_LOADING}\(")
"""Functions in which a checkpoint is read. A file that is not there is another matter (A1)."""
_BUILDS = re.compile(
    r"pre_?train|\bbackbone|(?:build|make|get|create)_(?:\w+_)?(?:model|encoder|backbone|network)\b"
)
_ASKED_WEIGHTS = re.compile(
    r"\bload\(\s*(?:args|opts?|cfg|config|FLAGS|hparams)\.(?:\w+_)?weights?(?:_?(?:path|file))?\b"
)
"""As programs call the option that names what to begin with, or to test."""
_RESUMES = re.compile(
    r"resum|restor|check_?point|ckpt|\blast\b|latest|load_state\b", re.IGNORECASE
)
_BORROWS = re.compile(
    r"pre_?trained|load_pretrain|load_model_ensemble|\b_?load_(?:\w+_)?weights\b"
    r"|\b_?load_(?:\w+_)?(?:target|base|teacher|foundation)_model\b"
    r"|(?:prefix|key|layer|param|module|head)\w*_to_(?:ignore|skip|exclude|drop)"
    r"|\b(?:ignore|skip|exclude)_(?:prefix|key|layer|param|head)\w*|\bstrict ?= ?False\b"
    r"|['\"][^'\"]{0,80}\bmodels?/"
)
"""Of a checkpoint of one's own every weight is taken, and more than the weights."""
_COMPONENT = re.compile(
    r"\b_?load_(?:\w+_)?(?:transformer|unet|vae|dit|backbone|(?:text_|image_)?encoders?)\b"
)
"""Functions that read a part of a model, which trainers are given; a run saves the whole."""
_LENT = re.compile(r"\bself\.load_network\([^\n]{0,200}\bstrict_load")
"""How BasicSR reads the weights that a network begins with, and a run's own, of which it then says
that it resumes."""
_KEPT = re.compile(
    r"(?i)optim|\bopt\b|sched|\bema\b|start_?(?:step|epoch)|(?:step|epoch|iter|ckpt)[-_]?\d|ckpt"
    r"|check_?point|\bruns?[/\\]|\bout(?:put)?s?[/\\]|exp_?dir|save_?dir|work_?dir"
)
"""What a run keeps of itself, and where."""
_OF_ITS_OWN = re.compile(r"resum|restor|\blast\b|latest", re.IGNORECASE)
_GOES_ON = re.compile(
    rf"{_OF_ITS_OWN.pattern}|\blast_|load_state\b|load_(?:from_)?(?:checkpoint|ckpt)\(",
    re.IGNORECASE,
)
"""Of a format that weights are published in, and checkpoints of a library's trainer kept in."""
_GIVEN = re.compile(r"^\s*[\w., ]{1,80}=(?!=)")
"""What is read into: any file of weights is a `checkpoint` there."""
_PRETRAINED = re.compile(r"pre_?train(?![\s(]|_(?:gpt|bert|t5|llama|mixtral|vlm|step)\b)")
_CALLED_SO = re.compile(
    r"(?i)pre[-_]?trained|(?<![\w-])pre[-_]?train(?:_model)?s?[/\\]"
    r"|(?<![\w-])released?[-_](?:model|weight|checkpoint|ckpt)s?[/\\]"
    r"|[-_]v\d{1,2}\.\d{1,2}\.\d{1,2}\.(?:pth?|ckpt|safetensors)\b"
)
_OWN_NAME = re.compile(
    r"(?i)resum|restor|\blast\b|latest|(?:checkpoint|iter|global_step|step|epoch|ckpt)[-_=]?\d"
)
"""As weights that are published are called, and a checkpoint of a run's."""
_BASE = re.compile(
    r"(?P<folder>(?:[\w.@-]*[/\\]){1,40})(?:(?:pytorch_)?model-\d{5}-of-\d{5}\.(?:safetensors|bin)"
    r"|consolidated\.\d{2}\.pth)\b"
)
_BASE_FOLDER = re.compile(
    r"(?i)(?:^|[/\\])(?:(?:base|hf|llm|foundation)?[-_]?models?|weights|hub|hugging_?face)[/\\]"
    r"|[-_]\d{1,3}(?:\.\d{1,2})?b(?:[-_][\w.-]{1,40})?[/\\]"
)
_TUNED = re.compile(r"(?i)tun(?:ed?|ing)\b|[-_/](?:sft|dpo|rl\w*|lora|ft|exp\w*|job\w*)[-_/\d]")
"""Shards of weights as they are published, the folders that people keep those in, and what a run
made of them."""
_NO_RESUME = re.compile(
    r"(?<![\w-])resume['\"]?\s{0,20}[=:]\s{0,4}(?:False|None|''|\"\")(?=[\s,})]|$)"
)
_READS = re.compile(
    r"(?i:\b(?:load|initiali[sz]|restor|fine-?tun)\w*\b.{0,60}?pre[-_]?trained)"
    r"|\bDownloading\b.{0,300}\.(?:pth?|ckpt|safetensors|bin)\b"
)
_READS_BASE = re.compile(
    r"(?i)\bload(?:ing|s|ed)?:? (?:the )?(?:base|foundation|teacher|stable ?diffusion|sdxl|sd3"
    r"|flux|diffusers|u-?net|vae|text encoder)\w{0,8} (?:model|checkpoint|ckpt|weights?)\b"
)
"""As trainers of adapters announce the model that they adapt, which they call a checkpoint."""
_EITHER = re.compile(r"\bresume_or_load\(")
"""detectron2's and fvcore's: the last checkpoint of the run where one is there and asked for, else
the weights to begin with; which, only the line that names the file tells."""
_FROM = re.compile(r"heckpointer\] Loading from (\S{1,400})")
_KEPT_AS = re.compile(r"\bmodel_(?:\d{7}|final|best)\w*\.pth")
_SAVED_AS = re.compile(
    r"(?i)\b(?:loading|reading|load|read) (?:from )?(?:\w+ )?(?:checkpoint|ckpt)"
    r"|(?:step|iter(?:ation)?|epoch|epo|global_step|checkpoint|ckpt)[-_=]?\d"
)
_SHARDED = "/torch/distributed/checkpoint/"
"""What every rank writes its part of: nobody publishes weights so."""
NAMED_ABOVE = 40
SETTINGS_ABOVE, READ_ABOVE = 2_000, 3
"""Lines: settings are printed at the start, the file just before it is read."""
_DATA_NAME = re.compile(
    r"(?:train|test|val(?:id)?|dev|data|sets?|features?|predictors?|targets?|labels?|samples?|images?"
    r"|x|y|anno\w*|records?|corpus|vocab\w*)(?:_|\b|$)",
    re.IGNORECASE,
)
_UNPICKLES = re.compile(
    r"^\s*([\w., ]{1,120}?)\s*=\s*(?:\w+\.)?(?:c?[Pp]ickle|pkl|joblib|torch|np|numpy|dill)\.load\("
)
_HUBS_WORD = re.compile(r"\b(?:model|pre_?trained)_(?:check_?point|ckpt)s?\b")
"""So the tutorials of transformers call the name of a model."""
_TAKES_UP = re.compile(
    r"(?<![.\w])(?:self\.)?(?!\w*(?:cfg|conf(?:ig)?|opts?|args?|policy|params|settings|hook"
    r"|callback)s?\[)\w*(?:check_?point|ckpt|resum\w+d)\w*(?:\[['\"]\w+['\"]\])?\[(['\"])"
    r"(?:(?:(?:start|global|cur(?:rent)?|last)_?)?(?:epoch|iter(?:ation)?|step)|best_\w+"
    r"|\w*optim\w*|(?:\w+_)?(?:scheduler|scaler)s?(?:_\w+)?|amp|(?:\w+_)?(?:rng|random)_states?)"
    r"\1\](?!\s*=[^=])"
    r"|\b\w*(?:optim|sched|scaler)\w*(?:\[\w+\])?\.load_state_dict\(\w+\[['\"]\w+['\"]\]"
)
"""What tells how far a run had come; weights that are published need not."""
_KEYS = re.compile(r"\[['\"](\w+)['\"]\]")
_NO_ITEMS = re.compile(r"(?<!'NoneType' )object is not subscriptable$|indices must be integers")
_HUB_CACHE = re.compile(r"[/\\]models--[^/\\]{1,200}[/\\](?:snapshots|blobs)[/\\]")
"""Where the Hub's library keeps what it fetched."""
_NO_CHECKPOINT = re.compile(r"invalid load key, '[<v]'")
"""A web page, or the pointer that git-lfs leaves: nothing a run wrote itself."""
_SIZES = re.compile(
    r"\b(?:size|shape)s? .{0,60}\bmust (?:match|be)|\bshape mismatch|\bnot match"
    r"|^[Ss]ize mismatch$"
)
_STATE = re.compile(
    r"\b(?:exp_avgs?|exp_avg_sqs?|momentum_buf\w*|square_avgs?|sum_of_squares)\b"
    r"|\bmulti_tensor_(?:adam|lamb|sgd)\b|\bbuf\.mul_\(momentum\)"
)
_INSISTS = re.compile(
    r"\bassert (?!(?:\w+\.)*(?:args|opts?|cfg|conf(?:ig)?|hparams|flags)\.)"
    r"(?:\w+\.)*(?:load|resume|ckpt|checkpoint|latest)_?"
    r"(?:path|dir|file|checkpoint|ckpt|step)? is not None"
)
"""What a setting should have named, nobody looked for."""
_HANDED = re.compile(r"/multiprocessing/(?!spawn\.py:_wrap$|process\.py:)")
_UNPACKS = re.compile(r"/(?:pickle|cloudpickle|dill)\b|/torch/distributed/|/mpi4py/")
_GATHERS = re.compile(r"^_?(?:all_gather|gather|broadcast|scatter|recv)_(?:object|list)")
_FETCHES = re.compile(r"load_state_dict_from_url$|_?load_from_(?:url|hub|http)\w*$|model_zoo")
_HUB = "from_pretrained"
_WEIGHTS = re.compile(r"_?load_(?:\w+_)?(?:weights|pretrained|model)\w*$")
_ITERATES = re.compile(
    r"(?:^|_)(?:iterator|dataloader|data_loader|dataset|indices)s?$|^__getitem__$"
)
"""Functions of the data that loaders of checkpoints set up as well (fairseq)."""


def of_a_model(crash: Crash) -> bool:
    """Whether what was read are the weights a model is built from, by the names on the way there:
    nothing is resumed.  Inside `from_pretrained` any file is a checkpoint to the library; what the
    program asked it for stands where it is called."""
    if _HUB_CACHE.search(crash.message) or _shard_of_a_base(crash):
        return True
    if _NO_CHECKPOINT.search(crash.message):
        code = " ".join(
            text if _OF_ITS_OWN.search(text := frame.code or "") else _GIVEN.sub("", text)
            for frame in crash.frames
        )
        return not _GOES_ON.search(_HUBS_WORD.sub("", code) if f"{_HUB}(" in code else code)
    for frame in crash.frames:
        code = frame.code or ""
        if f"{_HUB}(" in code:
            return not _RESUMES.search(_HUBS_WORD.sub("", code))
        if (called := _CALLED.search(code)) and _PRETRAINED.search(code, called.end()):
            return True
    if any(f.function == _HUB or _FETCHES.match(f.function) for f in crash.frames):
        return True
    way = " ".join(f"{frame.function} {frame.code or ''}" for frame in crash.frames)
    published = _CALLED_SO.search(crash.message) and not _OWN_NAME.search(crash.message)
    if published and not _OF_ITS_OWN.search(way):
        return True
    if (_BUILDS.search(way) or _ASKED_WEIGHTS.search(way)) and not _RESUMES.search(way):
        return True
    used = " ".join(f"{f.function} {_GIVEN.sub('', f.code or '')}" for f in crash.frames)
    if crash.exception.endswith("SafetensorError") and len(crash.frames) > 1:
        return _GOES_ON.search(used) is None
    return _BORROWS.search(way) is not None and not _OF_ITS_OWN.search(used)


def _shard_of_a_base(crash: Crash) -> bool:
    """Whether the file that is named is a shard of weights in a folder of published ones, and
    nothing on the way says that a run went on from it."""
    named = _BASE.search(crash.message)
    if named is None or not _BASE_FOLDER.search(named["folder"]):
        return False
    if any(rule.search(named["folder"]) for rule in (_KEPT, _TUNED, _OWN_NAME)):
        return False
    return not any(_OF_ITS_OWN.search(f"{f.function} {f.code or ''}") for f in crash.frames)


def said_pretrained(crash: Crash) -> bool:
    """Whether the names on the way say that the weights were pretrained ones, and none that a run
    went on from them."""
    way = " ".join(f"{frame.function} {frame.code or ''}" for frame in crash.frames)
    part = None if _KEPT.search(f"{way} {crash.message}") else _COMPONENT.search(way)
    given = _PRETRAINED.search(way.lower()) or part
    return given is not None and not _OF_ITS_OWN.search(way)


def published(crash: Crash) -> bool:
    """Whether all that shows is a file of the format that weights are published in."""
    return not crash.frames and crash.exception.endswith("SafetensorError")


def begins_anew(facts: Facts, crash: Crash) -> bool:
    """Whether the program printed that it resumes nothing, or that it reads pretrained weights; of
    the format these are published in, with no word of another use above, they mostly are."""
    head = crash.head
    first = max(1, head.line - READ_ABOVE)
    above = facts.lines(head.source, first, head.line - first)
    if any(_READS.search(text) for text in above):
        return True
    if any(_READS_BASE.search(text) and not _OWN_NAME.search(text) for text in above):
        return not any(_OF_ITS_OWN.search(frame.code or "") for frame in crash.frames)
    if any(_EITHER.search(frame.code or "") for frame in crash.frames):
        named = [found[1] for text in above if (found := _FROM.search(text))]
        return bool(named) and not (_KEPT_AS.search(named[-1]) or _OWN_NAME.search(named[-1]))
    if (known := published(crash)) or any(
        _LENT.search(frame.code or "") for frame in crash.frames
    ):
        above = facts.lines(head.source, 1, head.line - 1)
        own = _RESUMES if known else _OF_ITS_OWN
        return not any(own.search(text) for text in above)
    return facts.memo(
        f"resumes nothing {head.source} {crash.attempt}", lambda facts: _no_resume(facts, head)
    )


def of_its_own(facts: Facts, crash: Crash) -> bool:
    """Whether anything says that the file was one of the run's own saves: the names on the way,
    the lines above, a number of a step in its name."""
    if any(_SHARDED in f.file.replace("\\", "/") for f in crash.frames):
        return True
    way = " ".join(f"{f.function} {f.code or ''}" for f in crash.frames)
    head = crash.head
    first = max(1, head.line - NAMED_ABOVE)
    lines = facts.lines(head.source, first, head.line - first)
    said = (way, crash.message, *lines)
    return any(_GOES_ON.search(text) or _SAVED_AS.search(text) for text in said)


def _no_resume(facts: Facts, head: LogCite) -> bool:
    first = max(1, head.line - SETTINGS_ABOVE)
    lines = facts.lines(head.source, first, head.line - first)
    return any(_NO_RESUME.search(text) for text in lines)


def of_data(crash: Crash) -> bool:
    """Whether what was unpickled was a data set, by the names on the way there."""
    near = tuple(f for f in nearest(crash.frames) if "/torch/serialization.py" not in f.file)
    if _RESUMES.search(" ".join(f"{frame.function} {frame.code or ''}" for frame in near)):
        return False
    if kind_of_any(near) == "data":
        return True
    read = (_UNPICKLES.match(frame.code or "") for frame in near)
    return any(found is not None and _DATA_NAME.search(found[1]) for found in read)


def reads_weights(crash: Crash) -> bool:
    """Whether a file that is no good was one of weights."""
    return any(
        _WEIGHTS.match(frame.function) or f"{_HUB}(" in (frame.code or "")
        for frame in crash.frames
    )


def found_none(crash: Crash) -> bool:
    """Whether the program insisted on a checkpoint to go on from, and none was found."""
    if crash.message.startswith("Can't load save_path when it is None"):  # TensorFlow 1's Saver
        return True
    return any(_INSISTS.search(frame.code or "") for frame in crash.frames[-1:])


def takes_up(crash: Crash) -> bool:
    """Whether a checkpoint was asked how far the run had come, and held no such thing: another
    program's, or a whole model that was pickled."""
    asked = _TAKES_UP.search(crash.frames[-1].code or "") if crash.frames else None
    if asked is None:
        return False
    if crash.exception.endswith("KeyError"):
        return crash.message.strip("'\"") in _KEYS.findall(asked[0])
    return crash.exception.endswith("TypeError") and bool(_NO_ITEMS.search(crash.message))


def between_ranks(crash: Crash) -> bool:
    """Whether what could not be unpickled came from another rank, or the process that began it."""
    for frame in reversed(crash.frames):
        where = f"{frame.file}:{frame.function}".replace("\\", "/")
        if _GATHERS.search(frame.function) or _HANDED.search(where):
            return True
        if not _UNPACKS.search(where):
            return False
    return False


def state_does_not_fit(crash: Crash) -> bool:
    """Whether an optimizer met state of another size than its parameters: it makes its own in
    theirs, so that was loaded."""
    if not _SIZES.search(crash.message):
        return False
    return any(_STATE.search(frame.code or "") for frame in crash.frames[-3:])


def resumes(crash: Crash) -> bool:
    """Whether the names on the way say that a run was to go on."""
    return any(_RESUMES.search(frame.code or "") for frame in crash.frames)


def reads_a_checkpoint(crash: Crash) -> bool:
    """Whether a checkpoint was read: weights that a library fetches by name are none."""
    if any(frame.function == _HUB for frame in crash.frames):
        return False
    called = [
        at
        for at, frame in enumerate(crash.frames)
        if _LOADS.fullmatch(frame.function) or _CALLED.search(frame.code or "")
    ]
    return bool(called) and not any(
        _ITERATES.search(frame.function) for frame in crash.frames[called[-1] :]
    )
