"""Train a small network and print on every rank what each part of a step took."""

import argparse
import logging
import time

import torch
import torch.distributed as dist
from torch import nn


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--steps", type=int, default=600)
    args.add_argument("--every", type=int, default=10)
    args.add_argument("--more", type=int, default=-1, help="a rank whose device is slower")
    args.add_argument("--device", type=float, default=0.1, help="seconds a device would take")
    args = args.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    logging.basicConfig(format=f"%(asctime)s INFO rank={rank} %(message)s", level=logging.INFO)
    logging.info("world_size=%d backend=gloo, %d steps planned", dist.get_world_size(), args.steps)
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    noise = torch.Generator().manual_seed(rank)
    target = torch.randn(256, 256, generator=torch.Generator().manual_seed(7))
    device_s = args.device * (1.5 if rank == args.more else 1.0)
    for step in range(1, args.steps + 1):
        began = time.perf_counter()
        batch = torch.randn(64, 256, generator=noise)
        fetched = time.perf_counter()
        loss = nn.functional.mse_loss(model(batch), batch @ target / 16)
        optimizer.zero_grad()
        loss.backward()
        time.sleep(device_s)
        computed = time.perf_counter()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        synced = time.perf_counter()
        optimizer.step()
        ended = time.perf_counter()
        if step % args.every == 0:
            logging.info(
                "step %d/%d loss %.4f step_time %.4f data %.4f fwd_bwd %.4f grad_sync %.4f optim %.4f",
                step, args.steps, loss.item(), ended - began, fetched - began, computed - fetched,
                synced - computed, ended - synced,
            )  # fmt: skip
    if rank == 0:
        logging.info("training finished: %d steps", args.steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
