"""Serves training records over TCP, one JSON line a request."""

import argparse
import json
import socket
import struct
import threading
from pathlib import Path


def serve(conn, lines):
    with conn, conn.makefile("rwb") as stream:
        for request in stream:
            first, count = json.loads(request)
            picked = [
                json.loads(lines[i % len(lines)])["text"] for i in range(first, first + count)
            ]
            stream.write(json.dumps(picked).encode() + b"\n")
            stream.flush()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data", default="data/train.jsonl")
    ap.add_argument("--port", type=int, default=7070)
    ap.add_argument("--refuse", type=int, default=2, help="connections to reset while warming up")
    args = ap.parse_args()
    lines = Path(args.data).read_text().splitlines()
    with socket.create_server(("127.0.0.1", args.port)) as server:
        for number in range(10_000):
            conn, _ = server.accept()
            if number < args.refuse:
                conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                conn.close()
                continue
            threading.Thread(target=serve, args=(conn, lines), daemon=True).start()


if __name__ == "__main__":
    main()
