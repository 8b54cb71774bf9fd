"""Find the largest batch that fits, then train; full-precision model, mixed-precision loop."""

import argparse
import time

import torch
from torch import nn

CARD_BYTES = 79.15 * 2**30
SAMPLE_BYTES = 0.31 * 2**30


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x):
        return self.body(x)


def reserve(batch):
    """Stands in for the device's allocator."""
    asked = batch * SAMPLE_BYTES
    if asked > CARD_BYTES:
        raise torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {asked / 2**30:.2f} GiB. GPU 0 has a total capacity "
            f"of 79.15 GiB of which 78.41 GiB is free. Including non-PyTorch memory, this process has "
            "752.00 MiB memory in use. Of the allocated memory 201.45 MiB is allocated by PyTorch, and "
            "50.55 MiB is reserved by PyTorch but unallocated."
        )


def data(batch, seed):
    x = torch.randn(min(batch, 256), 32, generator=torch.Generator().manual_seed(seed))
    return x, torch.tanh(x[:, :4].sum(1, keepdim=True))


def largest_batch(batch):
    while True:
        try:
            reserve(batch)
        except torch.OutOfMemoryError as error:
            print(f"[batch-finder] batch size {batch} failed: {error}", flush=True)
            batch //= 2
            print(f"[batch-finder] retrying with batch size {batch}", flush=True)
            continue
        print(f"[batch-finder] using batch size {batch}", flush=True)
        return batch


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=1024)
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--init-scale", type=float, default=65536.0)
    ap.add_argument("--find", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    batch = largest_batch(args.batch_size) if args.find else args.batch_size
    model = Net()
    opt = torch.optim.Adam(model.parameters(), 2e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=args.init_scale)
    began = time.time()
    for step in range(1, args.steps + 1):
        x, y = data(batch, step)
        loss = nn.functional.mse_loss(model(x), y, reduction="sum")
        opt.zero_grad()
        scaler.scale(loss).backward()
        before = scaler.get_scale()
        scaler.step(opt)
        scaler.update()
        if scaler.get_scale() < before:
            print(f"step {step}: OVERFLOW! gradients are inf, skipping step, loss scale {before:g} -> "
                  f"{scaler.get_scale():g}", flush=True)  # fmt: skip
        elif step % 10 == 0:
            rate = step * batch / (time.time() - began)
            print(
                f"step {step}/{args.steps} | loss {loss.item() / len(x):.5f} | {rate:.0f} samples/s",
                flush=True,
            )
    print(f"training done: {args.steps} steps in {time.time() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
