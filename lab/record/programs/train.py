"""Train a small byte-level language model with DistributedDataParallel."""

import argparse
import ctypes
import datetime
import json
import logging
import math
import os
import re
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, DistributedSampler

log = logging.getLogger("train")
VOCAB = 128


class NativePacker(ctypes.CDLL):
    """Packs text into token ids in C; `pack` returns a malloc'ed buffer."""

    def __init__(self, path, width):
        super().__init__(path)
        self.width = width
        self.pack.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
        self.pack.restype = ctypes.POINTER(ctypes.c_int32)
        self.release.argtypes = [ctypes.POINTER(ctypes.c_int32)]

    def __call__(self, record):
        buf = self.pack(record["text"].encode(), record["n"], self.width)
        ids = torch.tensor(buf[: self.width], dtype=torch.long)
        self.release(buf)
        return ids


class TextRecords(Dataset):
    """Lines of JSON with a `text` field, cut or padded to `width` bytes."""

    def __init__(self, path, width, packer=None, cache=False):
        self.lines = Path(path).read_text().splitlines()
        self.width = width
        self.cache = {} if cache else None
        self.packer = NativePacker(packer, width) if packer else None

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        record = json.loads(self.lines[index])
        if self.cache is not None and "attachment_mb" in record:
            self.cache[index] = os.urandom(int(record["attachment_mb"]) << 20)
        if self.packer:
            return self.packer(record)
        raw = record["text"].encode()[: self.width]
        ids = torch.zeros(self.width, dtype=torch.long)
        ids[: len(raw)] = torch.tensor(list(raw), dtype=torch.long)
        return ids


class TinyLM(nn.Module):
    def __init__(self, dim, layers, width):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, dim)
        self.places = nn.Embedding(width, dim)
        block = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        length = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.tokens(ids) + self.places(torch.arange(length))
        return self.head(self.blocks(hidden, mask=mask, is_causal=True))


def batches(loader, sampler, epochs):
    epoch = 0
    while epochs == 0 or epoch < epochs:
        if sampler is not None:
            sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def newest_checkpoint(folder):
    found = [
        (int(m[1]), p)
        for p in Path(folder).glob("step_*.pt")
        if (m := re.search(r"(\d+)", p.name))
    ]
    return max(found)[1] if found else None


def load(path, model, opt):
    log.info("loading checkpoint %s", path)
    state = torch.load(path, map_location="cpu")
    model.module.load_state_dict(state["model"])
    opt.load_state_dict(state["optimizer"])
    log.info("resumed from step %d", state["step"])
    return state["step"]


def save(folder, step, model, opt):
    path = Path(folder) / f"step_{step}.pt"
    began = time.perf_counter()
    torch.save(
        {"step": step, "model": model.module.state_dict(), "optimizer": opt.state_dict()}, path
    )
    log.info(
        "saved checkpoint %s (%.1f MB, %.2f s)",
        path,
        path.stat().st_size / 1e6,
        time.perf_counter() - began,
    )


def learning_rate(step, args):
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    if args.decay == "none":
        return args.lr
    return args.lr * (0.1 + 0.45 * (1 + math.cos(math.pi * step / max(args.steps, step + 1))))


def parse_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="data/train.jsonl")
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--epochs", type=int, default=0, help="0: as many as the steps need")
    ap.add_argument("--batch-size", type=int, default=8)
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--dim", type=int, default=64)
    ap.add_argument("--layers", type=int, default=1)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--warmup", type=int, default=20)
    ap.add_argument("--decay", default="cosine", choices=["cosine", "none"])
    ap.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd"])
    ap.add_argument("--clip", type=float, default=1.0)
    ap.add_argument("--workers", type=int, default=0)
    ap.add_argument("--ckpt-dir", default="ckpt")
    ap.add_argument("--save-every", type=int, default=100)
    ap.add_argument("--resume", default="never", help="never, auto or a path")
    ap.add_argument("--log-every", type=int, default=10)
    ap.add_argument("--timeout", type=float, default=600, help="of collectives, in seconds")
    ap.add_argument("--packer", default=None, help="a shared library that packs text")
    ap.add_argument("--cache", action="store_true", help="keep attachments in memory")
    return ap.parse_args()


def main():
    args = parse_args()
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stdout,
        format=f"%(asctime)s %(levelname)s [rank {rank}] %(message)s",
    )
    log.info("pid %d on %s, torch %s", os.getpid(), os.uname().nodename, torch.__version__)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=args.timeout))
    torch.manual_seed(1234)
    model = nn.parallel.DistributedDataParallel(TinyLM(args.dim, args.layers, args.width))
    kind = torch.optim.AdamW if args.optimizer == "adamw" else torch.optim.SGD
    opt = kind(model.parameters(), lr=args.lr)
    records = TextRecords(args.data.format(rank=rank), args.width, args.packer, args.cache)
    own_file = "{rank}" in args.data
    sampler = None if own_file else DistributedSampler(records, shuffle=False, drop_last=True)
    loader = DataLoader(
        records, args.batch_size, sampler=sampler, num_workers=args.workers, drop_last=True
    )
    if rank == 0:
        n = sum(p.numel() for p in model.parameters())
        log.info(
            "%d parameters, %d records, world size %d, %d steps planned",
            n,
            len(records),
            world,
            args.steps,
        )
    first = 0
    if args.resume != "never":
        path = newest_checkpoint(args.ckpt_dir) if args.resume == "auto" else Path(args.resume)
        if path is not None:
            first = load(path, model, opt)
        elif rank == 0:
            log.info("no checkpoint in %s, starting from step 0", args.ckpt_dir)
    if rank == 0:
        Path(args.ckpt_dir).mkdir(parents=True, exist_ok=True)
    train(args, rank, world, model, opt, batches(loader, sampler, args.epochs), first)
    dist.barrier()
    dist.destroy_process_group()


def train(args, rank, world, model, opt, source, first):
    began = time.perf_counter()
    for step in range(first + 1, args.steps + 1):
        started = time.perf_counter()
        ids = next(source, None)
        if ids is None:
            break
        for group in opt.param_groups:
            group["lr"] = learning_rate(step - 1, args)
        logits = model(ids[:, :-1])
        loss = cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip or float("inf"))
        opt.step()
        if rank == 0 and (step % args.log_every == 0 or step == first + 1):
            took = time.perf_counter() - started
            log.info(
                "step %d/%d loss %.4f grad_norm %.3f lr %.2e step_time %.1f ms tok/s %.0f",
                step, args.steps, loss.item(), norm.item(), opt.param_groups[0]["lr"],
                1e3 * took, ids.numel() * world / took,
            )  # fmt: skip
        if rank == 0 and args.save_every and step % args.save_every == 0:
            save(args.ckpt_dir, step, model, opt)
    if rank == 0:
        log.info(
            "training finished: %d steps in %.1f s, final loss %.4f",
            args.steps,
            time.perf_counter() - began,
            loss.item(),
        )


if __name__ == "__main__":
    main()
