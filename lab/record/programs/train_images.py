"""Train a small convolutional network on image shards, one process, with DataLoader workers."""

import argparse
import time
from multiprocessing import shared_memory
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Meter:
    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.val = self.sum = self.count = 0

    def update(self, val):
        self.val = val
        self.sum += val
        self.count += 1

    def __str__(self):
        text = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
        return text.format(name=self.name, val=self.val, avg=self.sum / max(self.count, 1))


class DecodedCache:
    """Decoded images shared between the workers, `side` pixels wide."""

    def __init__(self, count, side):
        self.block = shared_memory.SharedMemory(create=True, size=count * side * side * 4)
        self.pixels = np.ndarray((count, side, side), dtype=np.float32, buffer=self.block.buf)
        self.side = side

    def through(self, index, image):
        decoded = nn.functional.interpolate(image[None, None], size=(self.side, self.side))[0, 0]
        self.pixels[index] = decoded.numpy()
        return decoded


class Shards(Dataset):
    """Images of class-dependent texture, read from .npy shards and resized to `size`."""

    def __init__(self, folder, size, augment, decoded=0):
        self.files = sorted(Path(folder).glob("*.npy"))
        self.labels = np.load(Path(folder) / "labels.npz")["labels"]
        self.arrays = [np.load(f, mmap_mode="r") for f in self.files]
        self.size, self.augment = size, augment
        self.decoded = DecodedCache(len(self), decoded) if decoded else None

    def __len__(self):
        return sum(len(a) for a in self.arrays)

    def __getitem__(self, index):
        per = len(self.arrays[0])
        image = torch.from_numpy(np.array(self.arrays[index // per][index % per])).float()
        if self.decoded:
            image = self.decoded.through(index, image)
        image = nn.functional.interpolate(image[None, None], size=(self.size, self.size))[0]
        for _ in range(self.augment):
            image = nn.functional.avg_pool2d(image[None], 3, 1, 1)[0] + 0.01 * torch.randn(1)
        return image.expand(3, -1, -1).contiguous(), int(self.labels[index])


def build():
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, 4), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


def run_epoch(epoch, loader, model, opt, freq):
    batch_time, data_time = Meter("Time", ":6.3f"), Meter("Data", ":6.3f")
    losses, top1 = Meter("Loss", ":.4e"), Meter("Acc@1", ":6.2f")
    end = time.time()
    for i, (images, target) in enumerate(loader, 1):
        data_time.update(time.time() - end)
        output = model(images)
        loss = nn.functional.cross_entropy(output, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.update(loss.item())
        top1.update(100.0 * (output.argmax(1) == target).float().mean().item())
        batch_time.update(time.time() - end)
        end = time.time()
        if i % freq == 0 or i == len(loader):
            meters = "\t".join(map(str, (batch_time, data_time, losses, top1)))
            print(f"Epoch: [{epoch}][{i:3d}/{len(loader)}]\t{meters}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="data/images")
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--size", type=int, default=64)
    ap.add_argument("--lr", type=float, default=0.02)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--augment", type=int, default=0)
    ap.add_argument("--decoded-cache", type=int, default=0, help="pixels a side")
    ap.add_argument("--print-freq", type=int, default=10)
    args = ap.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = Shards(args.data, args.size, args.augment, args.decoded_cache)
    loader = DataLoader(
        data, args.batch_size, shuffle=True, num_workers=args.workers, drop_last=True
    )
    model = build()
    opt = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    print(
        f"=> {len(data)} images, {len(loader)} batches an epoch, {args.epochs} epochs", flush=True
    )
    for epoch in range(args.epochs):
        run_epoch(epoch, loader, model, opt, args.print_freq)
        torch.save(model.state_dict(), "checkpoint.pth.tar")
        print(f"=> epoch {epoch} done, saved checkpoint.pth.tar", flush=True)
    print("=> training complete", flush=True)


if __name__ == "__main__":
    main()
