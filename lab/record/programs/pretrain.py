"""Pretrain a character model in one process: `iter N: loss ...`, an evaluation every so often."""

import argparse
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy

BLOCK, BATCH, DIM = 48, 16, 64


class Block(nn.Module):
    """Predicts the next character from the last eight."""

    def __init__(self, vocab):
        super().__init__()
        self.table = nn.Embedding(vocab, 16)
        self.mix = nn.Conv1d(16, DIM, 8)
        self.up = nn.Linear(DIM, 2 * DIM)
        self.out = nn.Linear(2 * DIM, vocab)

    def forward(self, ids):
        hidden = self.mix(nn.functional.pad(self.table(ids).transpose(1, 2), (7, 0)))
        return self.out(torch.relu(self.up(torch.relu(hidden.transpose(1, 2)))))


def draw(data, generator):
    at = torch.randint(len(data) - BLOCK - 1, (BATCH,), generator=generator)
    x = torch.stack([data[i : i + BLOCK] for i in at])
    y = torch.stack([data[i + 1 : i + 1 + BLOCK] for i in at])
    return x, y


@torch.no_grad()
def evaluate(model, data, generator):
    model.eval()
    total = 0.0
    for _ in range(10):
        x, y = draw(data, generator)
        total += cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
    model.train()
    return total / 10


def restore(folder, model, opt):
    newest = Path(folder) / "ckpt.pt"
    if not newest.exists():
        return 0
    state = torch.load(newest)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["optimizer"])
    return state["iter"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="data/corpus.txt")
    ap.add_argument("--out-dir", default="out")
    ap.add_argument("--init-from", default="scratch", choices=["scratch", "resume"])
    ap.add_argument("--max-iters", type=int, default=400)
    ap.add_argument("--eval-interval", type=int, default=100)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd"])
    args = ap.parse_args()
    torch.manual_seed(1337)
    torch.set_num_threads(1)
    text = Path(args.data).read_text()
    chars = sorted(set(text))
    data = torch.tensor([chars.index(c) for c in text])
    cut = int(0.9 * len(data))
    model = Block(len(chars))
    kind = torch.optim.AdamW if args.optimizer == "adamw" else torch.optim.SGD
    opt = kind(model.parameters(), lr=args.lr)
    print(f"tokens per iteration will be: {BATCH * BLOCK:,}")
    print(f"data has {len(data):,} characters, {len(chars)} unique")
    print(f"number of parameters: {sum(p.numel() for p in model.parameters()) / 1e6:.2f}M")
    start = restore(args.out_dir, model, opt) if args.init_from == "resume" else 0
    Path(args.out_dir).mkdir(exist_ok=True)
    generator = torch.Generator().manual_seed(start)
    for it in range(start, args.max_iters + 1):
        if it % args.eval_interval == 0:
            train_loss, val_loss = (
                evaluate(model, data[:cut], generator),
                evaluate(model, data[cut:], generator),
            )
            print(f"step {it}: train loss {train_loss:.4f}, val loss {val_loss:.4f}", flush=True)
            if it > start:
                print(f"saving checkpoint to {args.out_dir}", flush=True)
                state = {"model": model.state_dict(), "optimizer": opt.state_dict(), "iter": it}
                torch.save(state, Path(args.out_dir) / "ckpt.pt")
        began = time.time()
        x, y = draw(data[:cut], generator)
        loss = cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 10 == 0:
            print(
                f"iter {it}: loss {loss.item():.4f}, time {(time.time() - began) * 1e3:.2f}ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
