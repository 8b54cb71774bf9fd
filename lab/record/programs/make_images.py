"""Write a small image data set: textures whose direction and pitch tell the class."""

import sys
from pathlib import Path

import numpy as np

COUNT, PER_SHARD, SIDE = 640, 160, 32

out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(0)
labels = rng.integers(0, 10, COUNT)
y, x = np.mgrid[0:SIDE, 0:SIDE]


def texture(label):
    wave = (x * np.cos(label) + y * np.sin(label)) * (0.3 + 0.1 * label)
    return np.sin(wave) + 0.3 * rng.normal(size=(SIDE, SIDE))


for shard in range(COUNT // PER_SHARD):
    part = labels[shard * PER_SHARD : (shard + 1) * PER_SHARD]
    np.save(out / f"shard_{shard}.npy", np.stack([texture(k) for k in part]).astype("f4"))
np.savez(out / "labels.npz", labels=labels)
