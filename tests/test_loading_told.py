"""What was being read when a file of weights was no good, and what was only printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from flatline.collect import Request, collect
from flatline.diagnose import diagnose
from flatline.model import Verdict

HEADER = "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge"
LIBRARY = (
    '  File "/venv/lib/python3.11/site-packages/transformers/modeling_utils.py", line 4400, in'
    ' load_state_dict\n    with safe_open(checkpoint_file, framework="pt") as f:\n'
)
REFUSED = (
    "[Warning] Ignoring Error(s) in loading state_dict for Det:\n"
    "\tsize mismatch for head.weight: copying a param with shape torch.Size([90, 8]) from"
    " checkpoint, the shape in current model is torch.Size([7, 8]).\n"
    "[Info] loaded weights: det.pth\n"
)


def verdict(folder: Path, text: str) -> Verdict:
    (folder / "train.log").write_text(text)
    return diagnose(collect(Request((str(folder),))))


def raised(said: str, *frames: str) -> str:
    return "Traceback (most recent call last):\n" + "".join(frames) + said + "\n"


def own(code: str, function: str = "main") -> str:
    return f'  File "/home/u/proj/train.py", line 40, in {function}\n    {code}\n'


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("model = AutoModelForCausalLM.from_pretrained(args.base_model)", ("A1", "asset")),
        ("model = AutoModel.from_pretrained(args.resume_checkpoint)", ("E2", "corrupt")),
        ("state = load_checkpoint(args.ckpt)", ("E2", "corrupt")),
    ],
)
def test_what_the_program_asked_for(tmp_path: Path, code: str, wanted: tuple[str, str]) -> None:
    """To the library any file of weights is a checkpoint."""
    found = verdict(tmp_path, raised(HEADER, own(code), LIBRARY))
    assert (found.code, found.fault_class) == wanted


@pytest.mark.parametrize(
    ("above", "wanted"),
    [
        ("", ("A1", "asset")),
        ("Resuming from /runs/a/step_400\n", ("E2", "corrupt")),
        ("".join(f"step {n}/900 loss {3 - n / 100:.3f}\n" for n in range(1, 40)),
         ("E2", "corrupt")),
    ],
    ids=["nothing", "a resume", "steps"],
)  # fmt: skip
def test_weights_of_which_no_frame_says_what_for(
    tmp_path: Path, above: str, wanted: tuple[str, str]
) -> None:
    """Of a format that weights are published in; it may be the run's own all the same."""
    found = verdict(tmp_path, above + HEADER + "\n")

    assert (found.code, found.fault_class) == wanted
    assert above or found.confidence < 0.8


def test_weights_in_a_format_of_data(tmp_path: Path) -> None:
    """HDF5 holds both."""
    said = "OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0)"
    layers = (
        '  File "/venv/lib/python3.7/site-packages/keras/engine/topology.py", line 2616, in {}\n'
        "    f = h5py.File(filepath, mode='r')\n"
    )
    for function, kind in (("load_weights", "asset"), ("read_rows", "data")):
        text = raised(said, own("begin()"), layers.format(function))
        assert verdict(tmp_path, text).fault_class == kind


def test_a_refusal_that_was_only_printed(tmp_path: Path) -> None:
    """The loader went on without; what ended the program stands further down."""
    end = raised("KeyError: 'iscrowd'", own("ann['iscrowd']", "__getitem__"))
    assert verdict(tmp_path, REFUSED + end).code == "A1"
    assert verdict(tmp_path, REFUSED).code != "A1"


@pytest.mark.parametrize(
    ("bar", "code"),
    [
        ("  0%|    | 0/30000 [00:00<?, ?it/s]", "A1"),
        ("  1%|    | 310/30000 [00:09<?, 33it/s]", "A3"),
    ],
)
def test_a_kernel_that_fails_in_the_first_step(tmp_path: Path, bar: str, code: str) -> None:
    """A bar that still stands at its beginning shows that none was made."""
    said = raised(
        "RuntimeError: CUDA error: an illegal memory access was encountered", own("f(x)")
    )
    assert verdict(tmp_path, f"Training progress: {bar}" + said).code == code


def test_what_a_spawned_process_raised(tmp_path: Path) -> None:
    """Its parent's exception only carries it."""
    inner = raised(
        "KeyError: 'Non-existent config key: DATA.TRAIN_SETS'",
        '  File "/venv/lib/python3.8/site-packages/yacs/config.py", line 491, in _merge_a_into_b\n'
        "    raise KeyError(full_key)\n",
    )
    text = raised(
        "torch.multiprocessing.spawn.ProcessRaisedException: \n\n"
        "-- Process 1 terminated with the following error:\n" + inner,
        own("launch(main, args)"),
    )
    found = verdict(tmp_path, text)
    assert (found.code, found.fault_class) == ("A1", "config")
    assert "DATA.TRAIN_SETS" in found.headline


@pytest.mark.parametrize(
    ("said", "code", "wanted"),
    [
        ("invalid load key, '<'.", "net = pickle.load(f)", ("A1", "asset")),
        ("invalid load key, 'v'.", "checkpoint = torch.load(path)", ("A1", "asset")),
        (
            "invalid load key, 'v'.",
            "net = nets[kind](checkpoint=args.checkpoint)",
            ("A1", "asset"),
        ),
        ("invalid load key, 'v'.", "load_ckpt(args.ckpt)", ("E2", "corrupt")),
        ("invalid load key, 'v'.", "resumed = torch.load(path)", ("E2", "corrupt")),
        ("invalid load key, '<'.", "load_checkpoint(args.resume)", ("E2", "corrupt")),
        ("invalid load key, '\\x0a'.", "load_checkpoint(path)", ("E2", "corrupt")),
    ],
)
def test_a_web_page_for_a_pickle(
    tmp_path: Path, said: str, code: str, wanted: tuple[str, str]
) -> None:
    """No run wrote that itself."""
    found = verdict(tmp_path, raised(f"_pickle.UnpicklingError: {said}", own(code)))
    assert (found.code, found.fault_class) == wanted


@pytest.mark.parametrize(
    ("above", "code", "wanted"),
    [
        ("INFO  load StableDiffusion checkpoint: /m/mix-b.ckpt", "s = torch.load(ckpt)", "A1"),
        ("Loading base model: /m/mix-b", "state = load_checkpoint(ckpt_path)", "A1"),
        ("Loading base model: /m/mix-b", "load_checkpoint(args.resume)", "E2"),
        ("load StableDiffusion checkpoint: /m/out-step00004000.ckpt", "load_ckpt(path)", "E2"),
    ],
)
def test_the_model_that_is_adapted(tmp_path: Path, above: str, code: str, wanted: str) -> None:
    """A trainer calls it a checkpoint as well."""
    text = raised("_pickle.UnpicklingError: invalid load key, '<'.", own(code, "load_checkpoint"))
    assert verdict(tmp_path, f"{above}\n{text}").code == wanted


def test_a_checkpoint_of_somebody_elses(tmp_path: Path) -> None:
    """The weights a model begins with are read by the same function as those of this run."""
    said = "mxnet.base.MXNetError: [11:20:11] ndarray.cc:1851: Invalid NDArray file format"
    for code, wanted in (
        ("a, b = load_checkpoint(args.pretrained, 0)", "A1"),
        ("a, b = load_checkpoint(args.prefix, 12)", "E2"),
    ):
        assert verdict(tmp_path, raised(said, own(code))).code == wanted


def test_a_state_that_does_not_fit_what_it_is_copied_into(tmp_path: Path) -> None:
    """Where a checkpoint is read it is the checkpoint's; elsewhere the program's."""
    said = (
        "RuntimeError: The size of tensor a (298698304) must match the size of tensor b (10201344)"
        " at non-singleton dimension 0"
    )
    for code, wanted in (
        ("self.deepspeed.load_checkpoint(path, load_optimizer_states=True)", "E2"),
        ("loss = logits - labels", "A1"),
    ):
        assert verdict(tmp_path, raised(said, own(code))).code == wanted


def test_lines_that_pdsh_labels_with_addresses(tmp_path: Path) -> None:
    """A hostfile may hold addresses; DeepSpeed's launcher then prints them before every line."""
    inner = raised("RuntimeError: boom", own("main()")).splitlines()
    lines = [f"10.0.0.{n % 2 + 1}: loading part {n} of the model" for n in range(12)]
    lines += [f"10.0.0.2: [rank9]: {line}" for line in inner]
    found = verdict(tmp_path, "\n".join(lines) + "\n")
    assert found.code == "A1"
    assert "Rank 9 on 10.0.0.2 raised RuntimeError: boom" in found.headline


BROKEN = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central"


@pytest.mark.parametrize(
    ("printed", "code", "wanted"),
    [
        ("Namespace(lr=0.1, resume=False)", "ckpt = torch.load(weights)", ("A1", "asset")),
        ("Loading from ./pretrained_models/x.pth ...", "load(path)", ("A1", "asset")),
        ("", "extract_state_dict(ckpt_path, prefixes_to_ignore)", ("A1", "asset")),
        ("", "graphs = torch.load(pre_processed)", ("E2", "corrupt")),
        ("", "train_labels = torch.load(pre_processed)", ("A1", "data")),
        ("", "data = torch.load(checkpoint_path)", ("E2", "corrupt")),
        ("Namespace(resume='out/last.pth')", "ckpt = torch.load(path)", ("E2", "corrupt")),
        ("Loading from /runs/llama_pretrain/step_500.pt", "torch.load(path)", ("E2", "corrupt")),
        ("resume_from_checkpoint=None,", "train(resume_from_checkpoint=last)", ("E2", "corrupt")),
    ],
)
def test_what_a_damaged_file_was(
    tmp_path: Path, printed: str, code: str, wanted: tuple[str, str]
) -> None:
    found = verdict(tmp_path, f"{printed}\n" + raised(f"{BROKEN} directory", own(code)))
    assert (found.code, found.fault_class) == wanted


@pytest.mark.parametrize(
    ("frames", "wanted"),
    [
        (
            ("sd = util.load_target_model(args)", "sd = load_models_from_ckpt(ckpt_path)"),
            ("A1", "asset"),
        ),
        (("model = build(args)", "sd = load_file(path)"), ("A1", "asset")),
        (
            ("trainer.train(resume_from_checkpoint=args.resume)", "sd = load_file(path)"),
            ("E2", "corrupt"),
        ),
    ],
)
def test_a_format_that_weights_are_published_in(
    tmp_path: Path, frames: tuple[str, ...], wanted: tuple[str, str]
) -> None:
    """It is a checkpoint of the run's where the way there says that it goes on."""
    found = verdict(tmp_path, raised(HEADER, *map(own, frames)))
    assert (found.code, found.fault_class) == wanted


SIZES = (
    "RuntimeError: The size of tensor a (482) must match the size of tensor b (120) at"
    " non-singleton dimension 0"
)
ADAM = (
    '  File "/venv/lib/python3.10/site-packages/torch/optim/adamw.py", line 338, in'
    " _single_tensor_adamw\n    {}\n"
)


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)", ("E2", "size-mismatch")),
        ("param.add_(other, alpha=lr)", ("A1", "config")),
    ],
)
def test_state_that_an_optimizer_did_not_make(
    tmp_path: Path, code: str, wanted: tuple[str, str]
) -> None:
    found = verdict(tmp_path, raised(SIZES, own("trainer.fit(model)"), ADAM.format(code)))
    assert (found.code, found.fault_class) == wanted


def test_what_another_rank_sent_is_no_checkpoint(tmp_path: Path) -> None:
    gather = (
        '  File "/home/u/fairseq/distributed_utils.py", line 177, in all_gather_list\n'
        "    result.append(pickle.loads(bytes(buffer[begin:end])))\n"
    )
    text = raised("_pickle.UnpicklingError: invalid load key, '\\x9c'.", own("train()"), gather)

    assert verdict(tmp_path, text).code == "A1"


@pytest.mark.parametrize(
    ("code", "wanted"),
    [("assert load_path is not None", ("E2", "empty")),
     ("assert args.data_path is not None", ("A1", "config"))],
)  # fmt: skip
def test_a_checkpoint_that_a_program_insists_on(
    tmp_path: Path, code: str, wanted: tuple[str, str]
) -> None:
    found = verdict(tmp_path, raised("AssertionError", own(code)))
    assert (found.code, found.fault_class) == wanted


def test_what_a_process_that_begins_is_sent_is_no_checkpoint(tmp_path: Path) -> None:
    spawn = (
        '  File "C:\\Users\\u\\miniconda3\\Lib\\multiprocessing\\spawn.py", line 132, in _main\n'
        "    self = reduction.pickle.load(from_parent)\n"
    )

    assert verdict(tmp_path, raised("_pickle.UnpicklingError: pickle data was truncated", spawn)
                   ).code == "A1"  # fmt: skip


SPAWNED = (
    '  File "/usr/lib/python3.10/multiprocessing/process.py", line 314, in _bootstrap\n'
    "    self.run()\n"
    '  File "/venv/lib/python3.10/site-packages/torch/multiprocessing/spawn.py", line 90, in'
    " _wrap\n    fn(i, *args)\n"
)
TORCH = (
    '  File "/venv/lib/python3.10/site-packages/torch/serialization.py", line 1040, in load\n'
    "    return _legacy_load(opened_file, map_location)\n"
)
HANDED = (
    '  File "/usr/lib/python3.10/multiprocessing/spawn.py", line 126, in _main\n'
    "    self = reduction.pickle.load(from_parent)\n"
)
CUT = "_pickle.UnpicklingError: pickle data was truncated"
STEPS = "".join(f"step {n}/1000 loss {2.5 - n / 100:.4f}\n" for n in range(1, 60))


@pytest.mark.parametrize(
    ("way", "code"), [((own("ckpt = torch.load(args.resume)"), TORCH), "E2"), ((HANDED,), "A1")]
)
def test_a_spawned_worker_reads_a_checkpoint_or_what_it_was_handed(
    tmp_path: Path, way: tuple[str, ...], code: str
) -> None:
    assert verdict(tmp_path, raised(CUT, SPAWNED, *way)).code == code


def test_weights_that_are_read_once_it_trained_did_not_keep_it_from_starting(
    tmp_path: Path,
) -> None:
    text = STEPS + raised(HEADER, own("best = load_file(best_path)"), LIBRARY)
    assert verdict(tmp_path, text).code == "E2"


@pytest.mark.parametrize(("named", "code"), [("args.load_path", "A1"), ("load_path", "E2")])
def test_a_checkpoint_that_is_insisted_on(tmp_path: Path, named: str, code: str) -> None:
    """What a setting should name, nobody looked for."""
    text = raised("AssertionError", own(f"assert {named} is not None"))
    assert verdict(tmp_path, text).code == code


@pytest.mark.parametrize(
    ("said", "code", "wanted"),
    [
        ("KeyError: 'iteration'", "start = ckpt['iteration'] + 1", ("E2", "missing-keys")),
        ("KeyError: 'meta'", "self.n = checkpoint['meta']['iter']", ("E2", "missing-keys")),
        ("KeyError: 'opt_g'", "self.optim_g.load_state_dict(saved['opt_g'])",
         ("E2", "missing-keys")),
        ("TypeError: 'Net' object is not subscriptable", "n = checkpoint['epoch']", ("E2", None)),
        ("TypeError: 'Net' object is not callable", "n = f(checkpoint['epoch'])",
         ("A1", "config")),
        ("TypeError: 'Net' object is not subscriptable", "checkpoint['epoch'] = n",
         ("A1", "config")),
        ("KeyError: 'epoch'", "path = cfg.checkpoint['epoch']", ("A1", "config")),
        ("KeyError: 'epoch'", "name = '{epoch}.pt'.format(**row)", ("A1", "data")),
        ("KeyError: 'step'", "n = pretrained_ckpt['step']", ("A1", "asset")),
    ],
)  # fmt: skip
def test_how_far_a_run_had_come(
    tmp_path: Path, said: str, code: str, wanted: tuple[str, str | None]
) -> None:
    """Weights that are published need not say it: who asks goes on from a run's own."""
    found = verdict(tmp_path, raised(said, own(code)))
    assert (found.code, found.fault_class) == wanted
    assert found.confidence < 0.8


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [("args.model_checkpoint", ("A1", "asset")), ("last_checkpoint", ("E2", "corrupt"))],
)
def test_a_pointer_in_the_place_of_weights(
    tmp_path: Path, asked: str, wanted: tuple[str, str]
) -> None:
    """What the Hub's tutorials call a checkpoint is the name of a model."""
    found = verdict(
        tmp_path,
        raised("_pickle.UnpicklingError: invalid load key, 'v'.",
               own(f"net = Net.from_pretrained({asked})")),
    )  # fmt: skip
    assert (found.code, found.fault_class) == wanted


UNEXPECTED = "KeyError: 'unexpected key \"encoder.conv4.weight\" in state_dict'"
TORCH = (
    '  File "/venv/lib/python3.6/site-packages/torch/nn/modules/module.py", line 490, in'
    " load_state_dict\n    .format(name))\n"
)


@pytest.mark.parametrize(
    ("code", "wanted", "sure"),
    [
        ("net.load_state_dict(torch.load(config.pretrain_modelpath))", ("A1", "asset"), False),
        ("net.load_state_dict(torch.load(args.resume_pretrained))", ("E2", "missing-keys"), True),
        ("net.load_state_dict(torch.load(args.resume))", ("E2", "missing-keys"), True),
        ("net.load_state_dict(checkpoint['net'])", ("E2", "missing-keys"), False),
        ("net = load_transformer(args.dit, attn_mode)", ("A1", "asset"), False),
        ("net = load_transformer(args.resume)", ("E2", "missing-keys"), True),
    ],
)
def test_keys_that_do_not_fit(
    tmp_path: Path, code: str, wanted: tuple[str, str], sure: bool
) -> None:
    """Of pretrained weights they are no checkpoint's; where nothing says whose, it is not sure."""
    found = verdict(tmp_path, raised(UNEXPECTED, own(code), TORCH))
    assert (found.code, found.fault_class) == wanted
    assert (found.confidence >= 0.8) is sure


@pytest.mark.parametrize(
    ("target", "wanted"),
    [("pytorch_lightning.trainer.trainer.Trainer", "env"), ("src.models.Net", "config")],
)
def test_what_hydra_was_to_build(tmp_path: Path, target: str, wanted: str) -> None:
    """A library's class takes other arguments in another version, one's own does not."""
    text = (
        "Error executing job with overrides: ['+configs=commonvoice']\n"
        f"Error in call to target '{target}':\n"
        "TypeError(\"__init__() got an unexpected keyword argument 'num_processes'\")\n"
        "full_key: trainer\n"
    )
    found = verdict(tmp_path, text)
    assert (found.code, found.fault_class) == ("A1", wanted)


ZERO = (
    "deepspeed.runtime.zero.utils.ZeRORuntimeException: The checkpoint being loaded used a DP"
    " world size of 8 but the current world size is 16. Automatic adjustment of ZeRO's optimizer"
    " state partitioning with a new world size is not currently supported."
)
MISFIT = (
    "RuntimeError: Error(s) in loading state_dict for GPT:\n\tsize mismatch for head.weight:"
    " copying a param with shape torch.Size([90, 8]) from checkpoint, the shape in current model"
    " is torch.Size([7, 8])."
)
TAKEN = own("loaded_dir, state = model[0].load_checkpoint(load_dir)", "load_checkpoint")
DEEPSPEED = (
    '  File "/venv/lib/python3.8/site-packages/deepspeed/runtime/engine.py", line 1402, in'
    " _load_zero_checkpoint\n    zero_sd_list = self._get_all_zero_checkpoints(load_dir, tag)\n"
)


@pytest.mark.parametrize(
    "code",
    ["pretrain(datasets, model_provider, forward_step)", "pretrain_gpt.main()", "pretrain_step(x)",
     "run_pretrain_llama(args)"],
)  # fmt: skip
def test_what_trains_a_model_from_its_beginning_loads_no_pretrained_one(
    tmp_path: Path, code: str
) -> None:
    """Megatron's programs are called so."""
    zero = verdict(tmp_path, raised(ZERO, own(code, "<module>"), TAKEN, DEEPSPEED))
    misfit = verdict(tmp_path, raised(MISFIT, own(code, "<module>"), TAKEN))

    assert (zero.code, zero.fault_class) == ("E2", "size-mismatch")
    assert (misfit.code, misfit.fault_class) == ("E2", "size-mismatch")
    assert min(zero.confidence, misfit.confidence) >= 0.8


@pytest.mark.parametrize(
    "code", ["build(args.pretrained_model)", "init(pretrain=args.weights)", "load_pretrain_gpt2()"]
)
def test_weights_that_are_called_pretrained(tmp_path: Path, code: str) -> None:
    """Whatever loads them."""
    misfit = verdict(tmp_path, raised(MISFIT, own(code, "<module>"), TAKEN))

    assert (misfit.code, misfit.fault_class) == ("A1", "asset")


@pytest.mark.parametrize(
    ("size", "classes"),
    [(0, ("data", "data")), (3000, ("config", "code")), (10, ("config", "code"))],
)
def test_a_row_of_a_data_set_that_holds_none(
    tmp_path: Path, size: int, classes: tuple[str, str]
) -> None:
    """Before the first step or later; of one that holds some the program asked too far."""
    text = raised(
        f"IndexError: Invalid key: 3051 is out of bounds for size {size}", own("rows[i]")
    )
    steps = "".join(f"step {n}/500 loss {4 / n:.4f}\n" for n in range(1, 60))
    first, later = verdict(tmp_path, f"loading\n{text}"), verdict(tmp_path, steps + text)

    assert (first.code, later.code) == ("A1", "A3")
    assert (first.fault_class, later.fault_class) == classes
    matched = {m.signature.id for m in collect(Request((str(tmp_path),))).matches}
    assert ("dataloader-dataset-empty" in matched) is (size == 0)


CUT = "RuntimeError: PytorchStreamReader failed reading zip archive: not a ZIP archive"
NETWORK = (
    "self.load_network(self.net_d, load_path, self.opt['path'].get('strict_load_d', True), key)"
)


@pytest.mark.parametrize(
    ("above", "code", "wanted"),
    [
        ("Network [UNet] is created.\n", NETWORK, "A1"),
        ("Resuming training from epoch: 3, iter: 4000.\n", NETWORK, "E2"),
        ("", "self.load_network(self.net_d, load_path)", "E2"),
    ],
    ids=["nothing is resumed", "a run's own", "it may be either"],
)
def test_weights_that_a_network_begins_with(
    tmp_path: Path, above: str, code: str, wanted: str
) -> None:
    assert verdict(tmp_path, above + raised(CUT, own(code, "__init__"))).code == wanted


@pytest.mark.parametrize(
    ("path", "wanted"),
    [("/out/ckpt/900/items/params.head.bias/.zarray", "E2"), ("/era/t850/.zarray", "A1")],
)
def test_an_array_that_a_checkpoint_lacks(tmp_path: Path, path: str, wanted: str) -> None:
    """Data sets are kept so as well."""
    said = f'ValueError: Error opening "zarr" driver: Metadata at "{path}" does not exist'
    assert verdict(tmp_path, raised(said, own("x = ts.open(spec).result()"))).code == wanted


POINTER = "_pickle.UnpicklingError: invalid load key, 'v'."
EITHER = (
    own("trainer.resume_or_load(resume=args.resume)"),
    '  File "/venv/lib/python3.9/site-packages/detectron2/engine/defaults.py", line 411, in'
    " resume_or_load\n    self.checkpointer.resume_or_load(cfg.MODEL.WEIGHTS, resume=resume)\n",
    '  File "/venv/lib/python3.9/site-packages/fvcore/common/checkpoint.py", line 154, in load\n'
    "    checkpoint = self._load_file(path)\n",
)


@pytest.mark.parametrize(
    ("said", "end", "wanted"),
    [
        ("Loading from zoo/R_50_in1k.pkl ...", POINTER, ("A1", "asset")),
        ("Loading from zoo/convnext_in22k.pth ...", f"{BROKEN} directory", ("A1", "asset")),
        ("Loading from out/det/model_0024999.pth ...", f"{BROKEN} directory", ("E2", "corrupt")),
        ("Loading from out/a/model_final.pth ...", POINTER, ("E2", "corrupt")),
        ("Starting", f"{BROKEN} directory", ("E2", "corrupt")),
    ],
    ids=["a pointer", "damaged weights", "the run's own", "of some run", "of no name"],
)
def test_what_goes_on_or_begins(
    tmp_path: Path, said: str, end: str, wanted: tuple[str, str]
) -> None:
    """One function of detectron2's loads either; the line above names the file."""
    above = f"[03/04 08:00:01 d2.checkpoint.c2]: [DetectionCheckpointer] {said}\n"
    found = verdict(tmp_path, above + raised(end, *EITHER))

    assert (found.code, found.fault_class) == wanted
