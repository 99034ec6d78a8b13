"""What the measurements share: the database's address, processes that begin together, the answer."""

import json
import multiprocessing
import random
import sys
import time
from urllib.parse import unquote, urlsplit

PATIENCE_S = 120


def libpq(url):
    """The address in the form that every driver here reads: the socket's folder as a parameter."""
    parts = urlsplit(url)
    place, _, port = parts.netloc.rpartition("@")[2].rpartition(":")
    user = parts.netloc.rpartition("@")[0]
    return f"postgresql://{user}@{parts.path}?host={unquote(place)}&port={port}&sslmode=disable"


def begin():
    """Says that the tables stand, and waits for the word to begin: until then the benchmark reads counters."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if sys.stdin.readline().strip() != "go":
        raise RuntimeError("the benchmark went away")


def answer(**what):
    """The result, as one line of JSON."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def together(processes, target, args):
    """Runs `target(ready, finished, index, *args)` in so many processes. Each calls `ready()` when it is set up and
    goes on when all are, and `finished()` after its work; the seconds between are returned."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes + 1)
    done = context.Queue()
    workers = [
        context.Process(target=_one, args=(barrier, done, target, index, args)) for index in range(processes)
    ]
    for worker in workers:
        worker.start()
    barrier.wait(PATIENCE_S)
    started = time.perf_counter()
    for _ in workers:
        failure = done.get(timeout=PATIENCE_S)
        if failure is not None:
            raise RuntimeError(failure)
    seconds = time.perf_counter() - started
    for worker in workers:
        worker.join(PATIENCE_S)
    return seconds


def _one(barrier, done, target, index, args):
    try:
        target(lambda: barrier.wait(PATIENCE_S), lambda: done.put(None), index, *args)
    except BaseException as error:
        barrier.abort()
        done.put(f"process {index}: {error!r}")
        raise


def poisson(rate, count):
    """Arrival times in seconds: exponential gaps, the same at every run."""
    dice = random.Random(300)
    at, times = 0.0, []
    for _ in range(count):
        at += dice.expovariate(rate)
        times.append(at)
    return times


def rank(times, percent):
    """The smallest time that `percent` of all are not above (nearest rank), in milliseconds."""
    ordered = sorted(times)
    return ordered[max(1, -(-len(ordered) * percent // 100)) - 1] * 1e3
