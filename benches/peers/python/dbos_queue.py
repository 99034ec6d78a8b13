"""DBOS's queue: workflows that do nothing, drained; and from the due time of an enqueue to the first line."""

import argparse
import threading
import time

from dbos import DBOS, DBOSClient

from dbos_steps import QUEUE, launch, wait_for
from shared import PATIENCE_S, answer, begin, libpq, poisson, rank

STARTED = {}
RATE = 50.0


@DBOS.workflow()
def nothing(n: int) -> None:
    STARTED[n] = time.perf_counter()


def drain(client, url, count, slots, polling):
    """Enqueued from outside while no worker listens, then worked off."""
    enqueue = {"workflow_name": "nothing", "queue_name": QUEUE}
    for n in range(count):
        client.enqueue(enqueue, n)
    started = time.perf_counter()
    DBOS.register_queue(QUEUE, worker_concurrency=slots, polling_interval_sec=polling)
    wait_for(url, count)
    seconds = time.perf_counter() - started
    if len(STARTED) != count:
        raise RuntimeError(f"{len(STARTED)} of {count} workflows ran")
    answer(seconds=seconds)


def start(client, url, count, slots, polling):
    DBOS.register_queue(QUEUE, worker_concurrency=slots, polling_interval_sec=polling)
    arrivals = poisson(RATE, count)
    due = {}
    first = time.perf_counter() + 0.1
    senders = []
    for n, at in enumerate(arrivals):
        due[n] = first + at
        time.sleep(max(0.0, due[n] - time.perf_counter()))
        enqueue = {"workflow_name": "nothing", "queue_name": QUEUE}
        sender = threading.Thread(target=client.enqueue, args=(enqueue, n))
        sender.start()
        senders.append(sender)
    for sender in senders:
        sender.join()
    end = time.perf_counter() + PATIENCE_S
    while len(STARTED) < count and time.perf_counter() < end:
        time.sleep(0.01)
    if len(STARTED) != count:
        raise RuntimeError(f"{len(STARTED)} of {count} workflows ran")
    times = [STARTED[n] - due[n] for n in range(count)]
    answer(p50=rank(times, 50), p95=rank(times, 95), p99=rank(times, 99), max=rank(times, 100))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("measure", choices=["drain", "start"])
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--jobs", type=int, required=True)
    arguments.add_argument("--slots", type=int, default=8)
    arguments.add_argument("--polling", type=float, default=1.0, help="its default is one second")
    given = arguments.parse_args()
    launch(given.url, 0, given.slots)
    client = DBOSClient(system_database_url=libpq(given.url))
    begin()
    {"drain": drain, "start": start}[given.measure](client, given.url, given.jobs, given.slots, given.polling)
    client.destroy()
    DBOS.destroy()


if __name__ == "__main__":
    main()
