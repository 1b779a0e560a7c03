"""Measure a served model: latencies of 50 connections, batches beside the direct call, memory, and the end.

    python benchmarks/service.py
    python benchmarks/service.py --parts memory --requests 100000 --output mine.json

The model is fitted on the titles of gutenberg-lcsh, unless --model names a folder. Client and service are
processes of this machine, and speak HTTP/1.1 over the loopback interface. For batches, each has a core of its
own, and so has the direct call. Parts that are not measured stay in the file as they are.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from exmlds import ExMLDS, TextClassifier, load
from exmlds.data import read_texts
from exmlds.data.registry import find
from exmlds.errors import NoKnownWordWarning
from measure import destination, parser_of, several, write_results

PARTS = ("connections", "batches", "memory", "drain")
TEXTS = 4_000  # of the test titles
BATCH = 32
IN_FLIGHT = 4  # batches that the client has sent and not got answered
LIMIT = 10  # suggestions for a text


class Running:
    """A service in a process of its own, on some of the cores."""

    def __init__(self, model: Path, cores: set[int]) -> None:
        command = [
            sys.executable,
            "-m",
            "exmlds",
            "serve",
            str(model),
            "--port",
            "0",
            "--no-feedback",
            "--read-only",
        ]
        with on_cores(cores):
            self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
                self.port = int(found[1])
                return
        raise RuntimeError("the service has not started")

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return int(found[1]) * 1024 if found else 0

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


class Client:
    """A connection that stays open."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Client:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def suggest(self, texts: list[str]) -> bool:
        """Whether each text got its suggestions."""
        body = json.dumps({"texts": texts, "limit": LIMIT}).encode()
        head = "POST /v1/suggest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", answer)
        content = await self.reader.readexactly(int(length[1])) if length else b""
        return answer.startswith(b"HTTP/1.1 200 ") and content.count(b'"suggestions"') == len(texts)


@contextmanager
def on_cores(cores: set[int]) -> Iterator[None]:
    """Run on these cores; processes that are started meanwhile stay there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def percentiles(seconds: list[float]) -> dict[str, float]:
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    return {"p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2)}


async def requests(
    port: int, texts: list[str], n_texts: int, n_connections: int, seconds: float, most: int = 10**9
) -> tuple[list[float], int]:
    """The seconds of each request, and how many failed, until the time is over or there are so many."""
    own, taken, failed = cycle(texts), list[float](), 0
    end = time.monotonic() + seconds

    async def ask() -> None:
        nonlocal failed
        async with Client(port) as client:
            while time.monotonic() < end and len(taken) + failed < most:
                started = time.perf_counter()
                try:
                    is_right = await client.suggest(list(islice(own, n_texts)))
                except (OSError, asyncio.IncompleteReadError):
                    failed += 1
                    return
                taken.append(time.perf_counter() - started)
                failed += not is_right

    await asyncio.gather(*(ask() for _ in range(n_connections)))
    return taken, failed


def direct(model: TextClassifier, texts: list[str], n_texts: int, seconds: float) -> list[float]:
    """The seconds of each direct call with so many texts."""
    own, taken, end = cycle(texts), list[float](), time.monotonic() + seconds
    model.predict_topk(texts[:n_texts], LIMIT)
    while time.monotonic() < end:
        batch = list(islice(own, n_texts))
        started = time.perf_counter()
        model.predict_topk(batch, LIMIT)
        taken.append(time.perf_counter() - started)
    return taken


def connections(folder: Path, texts: list[str], seconds: float) -> dict[str, Any]:
    model: Any = load(folder)
    alone = direct(model, texts, 1, min(seconds, 5))
    with Running(folder, os.sched_getaffinity(0)) as service:
        asyncio.run(requests(service.port, texts, 1, 50, 1))
        taken, failed = asyncio.run(requests(service.port, texts, 1, 50, seconds))
    return {
        "connections": 50,
        "seconds": seconds,
        "requests": len(taken),
        "errors": failed,
        "per_second": round(len(taken) / seconds, 1),
        **percentiles(taken),
        "direct_call": percentiles(alone),
    }


def batches(folder: Path, texts: list[str], seconds: float) -> dict[str, Any]:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    model: Any = load(folder)
    with on_cores({first}):
        alone = direct(model, texts, BATCH, seconds / 2)
    served: dict[str, Any] = {}
    with Running(folder, {first}) as service, on_cores({second}):
        asyncio.run(requests(service.port, texts, BATCH, IN_FLIGHT, 1))
        for n in (1, IN_FLIGHT):
            started = time.monotonic()
            taken, failed = asyncio.run(requests(service.port, texts, BATCH, n, seconds))
            rate = BATCH * len(taken) / (time.monotonic() - started)
            served[f"{n} in flight"] = {"errors": failed, "texts_per_second": round(rate, 1)}
    with on_cores({first}):
        alone += direct(model, texts, BATCH, seconds / 2)
    direct_rate = BATCH * len(alone) / sum(alone)
    for figures in served.values():
        figures["share"] = round(figures["texts_per_second"] / direct_rate, 3)
    return {"texts": BATCH, "direct_texts_per_second": round(direct_rate, 1), **served}


def memory(folder: Path, texts: list[str], n: int) -> dict[str, Any]:
    """Resident memory after each tenth of the requests."""
    found, failed = [], 0
    with Running(folder, os.sched_getaffinity(0)) as service:
        for _ in range(10):
            failed += asyncio.run(requests(service.port, texts, 1, 50, 3600, n // 10))[1]
            found.append(round(service.resident_bytes() / 1e6, 1))
    return {"requests": n, "errors": failed, "resident_mb_after_each_tenth": found}


def drain(folder: Path, texts: list[str]) -> dict[str, Any]:
    """What becomes of requests that were sent before SIGTERM."""
    with Running(folder, os.sched_getaffinity(0)) as service:

        async def main() -> list[bool]:
            clients = [await Client(service.port).__aenter__() for _ in range(8)]
            await clients[0].suggest(texts[:1])
            asked = [asyncio.create_task(client.suggest(texts[:500])) for client in clients]
            await asyncio.sleep(0.2)  # they are sent, and the first texts are being predicted
            service.process.send_signal(signal.SIGTERM)
            return await asyncio.gather(*asked)

        started = time.monotonic()
        answered = asyncio.run(main())
        code = service.process.wait(60)
    return {
        "sent": len(answered),
        "answered": sum(answered),
        "exit_code": code,
        "seconds": round(time.monotonic() - started, 2),
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--parts", type=several(PARTS), default=list(PARTS), help="default: all")
    parser.add_argument("--model", type=Path, help="a model folder of texts; default: one is fitted")
    parser.add_argument("--seconds", type=float, default=30, help="of connections; default: 30")
    parser.add_argument(
        "--requests", type=int, default=10_000, help="of the measure of memory; default: 10,000"
    )
    options = parser.parse_args()
    path = destination(parser, options, "service")
    warnings.simplefilter("ignore", NoKnownWordWarning)  # of titles such as "1984"
    data = find("gutenberg-lcsh", "test").parent
    texts = read_texts(data / "test.jsonl.gz")[0][:TEXTS]
    results: dict[str, Any] = {}
    if path is not None and path.is_file():
        results = json.loads(path.read_text(encoding="utf-8"))
        del results["machine"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model or Path(temporary) / "model"
        if options.model is None:
            train = read_texts(data / "train.jsonl.gz")
            TextClassifier(ExMLDS(effort="fast", random_state=0)).fit(*train).save(folder)
        fitted: Any = load(folder)
        sizes = {"texts": fitted.n_samples_fit_, "terms": fitted.n_features_in_, "labels": fitted.n_labels_}
        results["model"] = sizes
        works = {
            "connections": lambda: connections(folder, texts, options.seconds),
            "batches": lambda: batches(folder, texts, options.seconds / 3),
            "memory": lambda: memory(folder, texts, options.requests),
            "drain": lambda: drain(folder, texts),
        }
        for part in options.parts:
            results[part] = works[part]()
            print(f"{part}: {json.dumps(results[part])}", flush=True)
    write_results(path, results)


if __name__ == "__main__":
    main()
