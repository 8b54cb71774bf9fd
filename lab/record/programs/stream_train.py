"""Train from a shard server, with a prefetch worker that is restarted when it dies."""

import argparse
import json
import logging
import multiprocessing as mp
import os
import queue
import socket
import time
import urllib.request

import numpy as np
import torch
from torch import nn

logging.basicConfig(
    level=logging.INFO, format="%(asctime)s %(levelname)-7s %(name)s - %(message)s"
)
log = logging.getLogger("stream_train")


def connect(port, attempts=8):
    for attempt in range(1, attempts + 1):
        try:
            conn = socket.create_connection(("127.0.0.1", port), timeout=5)
            stream = conn.makefile("rwb")
            stream.write(b"[0, 1]\n")
            stream.flush()
            if not stream.readline():
                raise ConnectionResetError(104, "Connection reset by peer")
            return stream  # noqa: TRY300
        except OSError as error:
            log.warning("shard server not ready (%s), retry %d/%d", error, attempt, attempts)
            time.sleep(1)
    raise TimeoutError("the shard server never answered")


def prefetch(port, first, batch, out):
    logging.getLogger().setLevel(logging.ERROR)
    stream = connect(port)
    while True:
        stream.write(json.dumps([first, batch]).encode() + b"\n")
        stream.flush()
        out.put((first, json.loads(stream.readline())))
        first += batch


class Prefetcher:
    def __init__(self, port, batch):
        self.port, self.batch, self.next, self.restarts = port, batch, 0, 0
        self.begin()

    def begin(self):
        self.queue = mp.Queue(maxsize=4)
        args = (self.port, self.next, self.batch, self.queue)
        self.process = mp.Process(target=prefetch, args=args, daemon=True)
        self.process.start()
        log.info("prefetch worker started (pid %d)", self.process.pid)

    def get(self):
        while True:
            try:
                first, texts = self.queue.get(timeout=1)
            except queue.Empty:
                if not self.process.is_alive():
                    self.restarts += 1
                    code = self.process.exitcode
                    log.error(  # noqa: TRY400 - no exception is being handled
                        "prefetch worker died (exit code %s), restart %d/3", code, self.restarts
                    )
                    self.begin()
                continue
            self.next = first + self.batch
            return texts


class MetricsClient:
    def __init__(self, url):
        self.url = url
        self.failed = False

    def push(self, **values):
        try:
            urllib.request.urlopen(self.url, json.dumps(values).encode(), timeout=2).close()
        except OSError:
            if not self.failed:
                log.warning("metrics push failed, training goes on without it", exc_info=True)
            self.failed = True

    def __del__(self):
        self.session.close()


class Model(nn.Module):
    """Predicts the next byte from the last eight."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(128, 32)
        self.mix = nn.Conv1d(32, 96, 8)
        self.out = nn.Linear(96, 128)

    def forward(self, ids):
        hidden = self.mix(nn.functional.pad(self.table(ids).transpose(1, 2), (7, 0)))
        return self.out(torch.relu(hidden.transpose(1, 2)))


def encode(texts, width=64):
    out = torch.zeros(len(texts), width, dtype=torch.long)
    for row, text in zip(out, texts, strict=True):
        raw = list(text.encode()[:width])
        row[: len(raw)] = torch.tensor(raw)
    return out


def evaluate(model, texts):
    with torch.no_grad():
        ids = encode(texts)
        wrong = (model(ids[:, :-1]).argmax(-1) != ids[:, 1:]).float().mean(1).numpy()
    groups = {"baker": [], "miller": [], "sailor": [], "astronaut": []}
    for text, rate in zip(texts, wrong, strict=True):
        for name, rates in groups.items():
            if name in text:
                rates.append(rate)
    return {f"err_rate/{name}": float(np.mean(rates)) for name, rates in groups.items()}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--port", type=int, default=7070)
    args = ap.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    log.info("pid %d, %d steps planned", os.getpid(), args.steps)
    held_out = json.loads(ask_once(args.port, 3000, 64))
    source = Prefetcher(args.port, 16)
    metrics = MetricsClient("http://127.0.0.1:9091/metrics/job/stream_train")
    model = Model()
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(1, args.steps + 1):
        ids = encode(source.get())
        loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 10 == 0:
            log.info(
                "step %d/%d train_loss=%.4f errors=0 dropped=0", step, args.steps, loss.item()
            )
        if step % 100 == 0:
            found = evaluate(model, held_out)
            metrics.push(step=step, loss=loss.item())
            log.info(
                "eval at step %d: %s", step, " ".join(f"{k}={v:.4f}" for k, v in found.items())
            )
    log.info("finished after %d steps, failures=0", args.steps)


def ask_once(port, first, count):
    stream = connect(port)
    stream.write(json.dumps([first, count]).encode() + b"\n")
    stream.flush()
    return stream.readline()


if __name__ == "__main__":
    main()
