"""Train a small network with JAX on several processes, the batch sharded over all of them."""

import argparse
import logging
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
log = logging.getLogger("train")


def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=False)
    return [(jax.random.normal(k, (m, n)) / np.sqrt(m), jnp.zeros(n)) for k, m, n in pairs]


def loss_fn(params, x, y):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return jnp.mean((x @ w + b - y) ** 2)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--coordinator", default="127.0.0.1:1234")
    ap.add_argument("--processes", type=int, default=3)
    ap.add_argument("--process", type=int, required=True)
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--heartbeat", type=int, default=10)
    ap.add_argument("--init-timeout", type=int, default=60)
    args = ap.parse_args()
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        args.coordinator, args.processes, args.process,
        heartbeat_timeout_seconds=args.heartbeat, initialization_timeout=args.init_timeout,
    )  # fmt: skip
    log.info(
        "process %d of %d, %d devices",
        jax.process_index(),
        jax.process_count(),
        jax.device_count(),
    )
    mesh = Mesh(np.array(jax.devices()), ("data",))
    shared, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    params = jax.device_put(init(jax.random.key(0), (16, 64, 64, 1)), shared)
    opt = optax.adam(args.lr)
    state = jax.device_put(opt.init(params), shared)

    @jax.jit
    def update(params, state, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        updates, state = opt.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    rng = np.random.default_rng(args.process)
    began = time.time()
    for step in range(1, args.steps + 1):
        x = rng.normal(size=(32, 16)).astype("f4")
        y = np.sin(x[:, :1]) + x[:, 1:2] * x[:, 2:3]
        batch = [jax.make_array_from_process_local_data(split, a) for a in (x, y)]
        params, state, loss = update(params, state, *batch)
        if step % 10 == 0 or step == 1:
            rate = step / (time.time() - began)
            log.info("step %d/%d loss=%.5f steps/s=%.1f", step, args.steps, float(loss), rate)
    log.info("finished %d steps", args.steps)


if __name__ == "__main__":
    main()
