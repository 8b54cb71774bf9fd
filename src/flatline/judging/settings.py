"""
What a run's own log says it was set to: batch size, sequence length, model, versions and more.

Read from what is printed before the first step: assignments (`name=1`, `name: 1`, `"name": 1`,
Megatron's `name ..... 1`), options of a command line, and sentences frameworks print.  A setting
printed with two values by one run is not told apart and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flatline.facts import LOG, Facts
from flatline.model import LogCite, Setting, Weight

LINES, LINE_CHARS, FILES = 3_000, 16_384, 4
"""What is read: a configuration stands before the first step, and one of Megatron-LM takes some
600 lines; a printed Namespace is one line."""
CHARS, CHUNK = 1 << 20, 64
"""Of all heads together, read so many lines at a time: masking takes a second for two million."""
KEPT = 4_000
ENVIRONMENT, NOT_SET = 3, "not set"
"""Variables that two logs print alike before they count as whole environments."""
VALUE_CHARS = 80

_WORK = {
    "world size": "world_size num_processes nproc total_devices num_devices",
    "global batch size": "global_batch_size train_batch_size total_batch_size batch_size_total"
    " total_train_batch_size global_train_batch_size global_batch_size_to_train_on"
    " tokens_per_batch",
    "batch size": "batch_size per_device_train_batch_size per_device_batch_size micro_batch_size"
    " train_micro_batch_size_per_gpu local_batch_size micro_batch_size_to_train_on bs mbs",
    "gradient accumulation": "gradient_accumulation_steps accumulate_grad_batches grad_accum"
    " accum_steps accumulation_steps gradient_accumulation",
    "sequence length": "seq_length seq_len max_seq_len max_seq_length sequence_length block_size"
    " max_target_length context_length model_max_length cutoff_len encoder_seq_length n_ctx",
    "model": "model model_name model_name_or_path model_type arch architecture model_size flavor",
    "layers": "num_layers num_hidden_layers n_layer n_layers base_num_decoder_layers",
    "hidden size": "hidden_size hidden_dim n_embd d_model emb_dim dim base_emb_dim",
    "experts": "num_experts num_local_experts n_experts moe_num_experts",
    "data": "dataset dataset_name data_path train_file dataset_path train_data data_prefix",
}
_SPEED = {
    "precision": "precision dtype torch_dtype mixed_precision bf16 fp16 fp8 quantization"
    " weight_dtype",
    "tensor parallelism": "tensor_model_parallel_size tensor_parallel_size tp tp_size"
    " ici_tensor_parallelism tensor_parallel_degree",
    "pipeline parallelism": "pipeline_model_parallel_size pipeline_parallel_size pp pp_size"
    " pipeline_parallel_degree",
    "data parallelism": "data_parallel_size dp dp_size ici_fsdp_parallelism dcn_data_parallelism"
    " data_parallel_shard_degree",
    "recomputation": "remat_policy recompute_granularity gradient_checkpointing"
    " activation_checkpointing activation_checkpoint",
    "ZeRO stage": "zero_stage stage",
    "attention": "attn_implementation attention use_flash_attn flash_attention",
    "compilation": "compile torch_compile jit enable_compile",
    "loader workers": "num_workers dataloader_num_workers workers grain_worker_count",
    "torch": "torch torch_version pytorch pytorch_version",
    "CUDA": "cuda cuda_version",
    "ROCm": "rocm rocm_version hip_version",
    "NCCL": "nccl nccl_version",
    "RCCL": "rccl rccl_version",
    "jax": "jax jax_version jaxlib_version",
    "transformers": "transformers transformers_version",
    "driver": "driver driver_version",
}
_OVER = {"network": "nccl_network"}
"""What a library chose by itself: a difference of it is no setting, and may be the fault."""
_LEARNING = {
    "learning rate": "lr learning_rate max_lr peak_lr base_lr",
    "warm-up": "warmup warmup_steps warmup_ratio warmup_steps_fraction lr_warmup_iters",
    "schedule": "lr_scheduler_type lr_decay_style scheduler lr_scheduler",
    "optimiser": "optimizer optim opt_type",
    "weight decay": "weight_decay",
    "gradient clipping": "clip_grad max_grad_norm gradient_clip_val gradient_clipping_threshold",
    "seed": "seed data_seed init_weights_seed data_shuffle_seed",
}
WORK = frozenset(_WORK) - {"world size"}
"""Settings one of which must agree before two runs count as set alike."""
_WEIGHTS: tuple[tuple[Weight, Mapping[str, str]], ...] = (
    ("work", _WORK),
    ("speed", _SPEED),
    ("learning", _LEARNING),
    ("place", _OVER),
)
_KNOWN: Mapping[str, tuple[str, Weight]] = {
    key: (name, weight)
    for weight, table in _WEIGHTS
    for name, keys in table.items()
    for key in keys.split()
}
_LIBRARY = re.compile(
    r"(?:nccl|rccl|ucx|xla|torch|pytorch|cuda|hs[a]|hip|nvte|omp|tf|fi|mkl|libtpu)_"
    r"(?!.*(?:debug|log|visible|_id$|addr|port$|dir|path|file))"
)
"""Variables by which libraries are set: their difference may be one of speed."""
_START = re.compile(r"restor|resum|load_|_load$|^load$|init_from|ckpt|checkpoint|pretrained")
_OWN = re.compile(
    r"(?:^|_)(?:dir|path|file|name|id|uuid|time|date|port|addr|address|host|hostname|pid|rank|node"
    r"|nodes|log|logs|logger|run|tag|title|output|outputs|save|version|url|project|user|wandb"
    r"|tensorboard|step|loss|eta|elapsed|memory|mem|epoch|iteration|steps|iters|rdzv|master|gpu"
    r"|device|local|worker)(?:_|$)"
)
"""Keys every run sets for itself, or that count: their difference says nothing."""

_LABEL = re.compile(
    r"^(?:\[[^\]]{1,40}\]:?\s*|\d{1,5}: ?|[\d/-]{8,10}[ T][\d:.,]{8,15}Z?\s*|-\s|\|\s"
    r"|(?:INFO|WARNING|DEBUG)\b:?\s*|__main__\s*)+"
)
_DOTTED = re.compile(r"^\s*([A-Za-z_][\w-]{1,60}) \.{3,} (\S.{0,200}?)\s*$")
_PARAM = re.compile(r"\bConfig param ([A-Za-z_]\w{0,60}): (\S.{0,200}?)\s*$")
_WHOLE = re.compile(
    r"^\s*[\"']?([A-Za-z_][\w./-]{0,60})[\"']?\s?[:=]\s?(\"[^\"]{0,200}\"|'[^']{0,200}'|[^\s,{\[(]\S*?)"
    r",?\s*$"
)
_PAIR = re.compile(
    r"(?<![\w.\-/\"'])[\"']?([A-Za-z_][\w.-]{0,60})[\"']?(?:=|: )(\"[^\"]{0,200}\"|'[^']{0,200}'"
    r"|[^\s,;{}\[\]()=]{1,120})(?=[\s,;})\]]|$)"
)
_OPTION = re.compile(r"(?<!\S)--([a-z][\w.-]{1,60})(?:[= ]((?!--)[^\s\"']{1,120}))?(?=\s|$)")
_ENVIRONMENT = re.compile(
    r"^\s*(?:\+ )?(?:export |declare -x )?([A-Z][A-Z0-9_]{2,60})="
    r"(\"[^\"]{0,200}\"|'[^']{0,200}'|\S{1,200})\s*$"
)
_SET_BY = re.compile(r"NCCL INFO (NCCL_\w{1,60}) set by environment to (\S{1,120}?)\.?\s*$")
_COMMAND = re.compile(r"\b(?:python3?|torchrun|accelerate launch|deepspeed|srun|mpirun)\b.* --\w")
_SENTENCES = tuple(
    (key, re.compile(pattern, re.IGNORECASE))
    for key, pattern in (
        ("world_size", r"\bworld[ _]size[ :=]{1,3}(\d{1,6})\b"),
        (
            "global_batch_size",
            r"\b(?:global|total)(?: train)? batch size(?: \([^)]*\))?[ :=]{1,4}(\d+)",
        ),
        ("batch_size", r"(?<!global )(?<!total )(?<!train )\bbatch size[ :=]{1,3}(\d+)"),
        ("seq_length", r"\bseq(?:uence)?[ _]len(?:gth)?[ :=]{1,3}(\d+)\b"),
        ("torch", r"\b(?:py)?torch(?: version)?[ :=]{1,3}v?(\d+\.\d[\w.+]*)"),
        ("cuda", r"\bcuda(?: version)?[ :=]{1,3}v?(\d+\.\d[\w.]*)"),
        ("nccl", r"\bNCCL version[ :=]{1,3}(\d+\.\d[\w.+]*)"),
        ("rccl", r"\bRCCL version[ :=]{1,3}(\d+\.\d[\w.+:-]*)"),
        ("jax", r"\bjax(?: version)?[ :=]{1,3}v?(\d+\.\d[\w.]*)"),
        ("nccl_network", r"\bNCCL INFO Using network (\w+)"),
    )
)


@dataclass(frozen=True, slots=True)
class Stated:
    """A setting as one run prints it; `value` is None where it prints several."""

    value: str | None
    cite: LogCite


def stated(facts: Facts) -> Mapping[str, Stated]:
    """Every setting a run's logs print before its first step, by key."""
    return facts.memo("settings.stated", _stated)


def settings(ours: Facts, theirs: Facts) -> tuple[list[Setting], list[str]]:
    """What the two logs set differently, the weightiest first, and what they set alike."""
    mine, other = stated(ours), stated(theirs)
    differ: dict[str, Setting] = {}
    agreed: dict[str, None] = {}
    for key in (key for key in mine if key in other):
        a, b = mine[key], other[key]
        name, weight = _named(key)
        if a.value is None or b.value is None or name is None:
            continue
        if _same(a.value, b.value):
            if weight in ("work", "speed"):
                agreed.setdefault(name)
        else:
            differ.setdefault(
                name, Setting(name, weight, _short(a.value), _short(b.value), (a.cite, b.cite))
            )
    for found in _of_one(mine, other):
        differ.setdefault(found.name, found)
    order = ("work", "speed", "learning", "start", "place", "other")
    ranked = sorted(differ.values(), key=lambda found: order.index(found.weight))
    return ranked, [name for name in agreed if name not in differ]


def _of_one(mine: Mapping[str, Stated], other: Mapping[str, Stated]) -> Iterator[Setting]:
    """Variables of libraries that one of two printed environments holds alone."""
    ours, theirs = ({key: said for key, said in run.items() if said.value is not None
                     and _ENVIRONMENT.match(said.cite.text)} for run in (mine, other))  # fmt: skip
    if len(ours.keys() & theirs.keys()) < ENVIRONMENT:
        return
    for key, said in ours.items():
        if key not in other and _LIBRARY.match(key) and not _as_if_unset(key, said):
            yield Setting(key.upper(), "speed", _short(said.value or ""), NOT_SET, (said.cite,))
    for key, said in theirs.items():
        if key not in mine and _LIBRARY.match(key) and not _as_if_unset(key, said):
            yield Setting(key.upper(), "speed", NOT_SET, _short(said.value or ""), (said.cite,))


def _as_if_unset(key: str, said: Stated) -> bool:
    """Whether a variable says what holds without it."""
    return (said.value or "").lower() in ("0", "false", "off", "") or "error_handling" in key


def _named(key: str) -> tuple[str | None, Weight]:
    """What a key is called and weighs; None where its difference says nothing."""
    if key in _KNOWN:
        return _KNOWN[key]
    if _LIBRARY.match(key):
        return key.upper(), "speed"
    if _START.search(key):
        return key, "start"
    return (None, "other") if _OWN.search(key) else (key, "other")


def _same(one: str, other: str) -> bool:
    if one.lower() == other.lower():
        return True
    try:
        return float(one.replace(",", "")) == float(other.replace(",", ""))
    except ValueError:
        return False


def _short(value: str) -> str:
    return value if len(value) <= VALUE_CHARS else value[: VALUE_CHARS - 1] + "…"


# --- reading ------------------------------------------------------------------------------------


def _stated(facts: Facts) -> Mapping[str, Stated]:
    found: dict[str, Stated] = {}
    for source, at, line in _lines(facts):
        for key, value, text in _assigned(line):
            known = found.get(key)
            if known is None:
                if len(found) < KEPT:
                    found[key] = Stated(value, LogCite(source, at, text))
            elif known.value is not None and not _same(known.value, value):
                found[key] = Stated(None, known.cite)
    return found


def _lines(facts: Facts) -> Iterator[tuple[str, int, str]]:
    """(source, line, text) of the heads of the logs, until CHARS of them were read."""
    left = CHARS
    for source, count in _heads(facts):
        for first in range(1, count + 1, CHUNK):
            some = facts.lines(source, first, min(CHUNK, count + 1 - first), LINE_CHARS)
            yield from ((source, first + n, line) for n, line in enumerate(some))
            left -= sum(map(len, some))
            if left <= 0:
                return


def _heads(facts: Facts) -> Iterator[tuple[str, int]]:
    """The logs that may hold the configuration, and how many lines of each are read."""
    track = facts.main_track(facts.last.n)
    first: dict[str, int] = {}
    for one in facts.tracks:
        if len(one):
            first[one.source] = min(first.get(one.source, LINES), one.lines[0] - 1)
    names = [track.source] if track is not None else []
    names += [read.source for read in facts.log_files(LOG)
              if read.source not in first and read.lines < LINES]  # fmt: skip
    for name in list(dict.fromkeys(names))[:FILES]:
        yield name, min(first.get(name, LINES), LINES)


def _assigned(line: str) -> Iterator[tuple[str, str, str]]:
    """(key, value, the words that say so) of a line; the words stand in it as they are."""
    text = line[len(found[0]) :] if (found := _LABEL.match(line)) else line
    param = (
        _PARAM.search(text)
        or _DOTTED.match(text)
        or _ENVIRONMENT.match(text)
        or _SET_BY.search(text)
    )
    if param is not None:
        yield _key(param[1]), _value(param[2]), param[0].strip()
        return
    for key, pattern in _SENTENCES:
        said = pattern.search(text)
        if said is not None:
            yield key, _value(said[1]), said[0].strip()
    if _COMMAND.search(text):
        for option in _OPTION.finditer(text):
            yield _key(option[1]), _value(option[2] or "True"), option[0].strip()
        return
    whole = _WHOLE.match(text)
    if whole is not None:
        yield _key(whole[1]), _value(whole[2]), whole[0].strip()
        return
    pairs = list(_PAIR.finditer(text))
    if len(pairs) > 2 or "(" in text or "{" in text:
        for pair in pairs:
            yield _key(pair[1]), _value(pair[2]), pair[0].strip()


def _key(text: str) -> str:
    return re.split(r"[./]", text.lower().replace("-", "_").strip("_"))[-1]


def _value(text: str) -> str:
    return text.strip().strip("\"'").rstrip(",;")
