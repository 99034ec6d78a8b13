"""DBOS: workflows of steps that do nothing, each step's result recorded in Postgres before the next begins.

`threads` and `queue` are its documented ways to run many workflows in a process; `async` its coroutines.
"""

import argparse
import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
from dbos import DBOS, DBOSConfig

from shared import PATIENCE_S, answer, begin, libpq, together

QUEUE = "bench"


@DBOS.step()
def step(no: int) -> str:
    return "pass"


@DBOS.workflow()
def run(steps: int) -> int:
    passed = 0
    for no in range(steps):
        passed += step(no) == "pass"
    return passed


@DBOS.step()
async def astep(no: int) -> str:
    return "pass"


@DBOS.workflow()
async def arun(steps: int) -> int:
    passed = 0
    for no in range(steps):
        passed += await astep(no) == "pass"
    return passed


def launch(url, index, parallel):
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": libpq(url),
        "application_version": "1",
        "executor_id": f"bench-{index}",
        "sys_db_pool_size": max(20, parallel),
        "max_executor_threads": max(64, 2 * parallel),
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()


def work(ready, finished, index, url, mode, runs, of, steps, parallel):
    launch(url, index, parallel)
    {"threads": threads, "queue": queue, "async": coroutines}[mode](ready, url, runs, of, steps, parallel)
    finished()
    DBOS.destroy()


def threads(ready, url, runs, of, steps, parallel):
    """Workflows called by the threads of a pool."""
    with ThreadPoolExecutor(parallel) as executor:
        ready()
        list(executor.map(lambda _: run(steps), range(runs)))


def queue(ready, url, runs, of, steps, parallel):
    """Workflows enqueued on a queue that works meanwhile: enqueueing is part of the time."""
    bench = DBOS.register_queue(QUEUE, worker_concurrency=parallel, polling_interval_sec=0.05)
    ready()
    for _ in range(runs):
        bench.enqueue(run, steps)
    wait_for(url, of)


def coroutines(ready, url, runs, of, steps, parallel):
    async def one(free):
        async with free:
            await arun(steps)

    async def all_of_them():
        free = asyncio.Semaphore(parallel)
        await asyncio.gather(*(one(free) for _ in range(runs)))

    ready()
    asyncio.run(all_of_them())


def succeeded(connection):
    query = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'"
    return connection.execute(query).fetchone()[0]


def wait_for(url, count):
    """Until so many workflows have succeeded. Its handles would ask the database one by one."""
    end = time.perf_counter() + PATIENCE_S
    with psycopg.connect(libpq(url), autocommit=True) as connection:
        while succeeded(connection) < count:
            if time.perf_counter() > end:
                raise RuntimeError(f"only {succeeded(connection)} of {count} workflows succeeded")
            time.sleep(0.01)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--mode", choices=["threads", "queue", "async"], default="threads")
    arguments.add_argument("--runs", type=int, required=True)
    arguments.add_argument("--steps", type=int, required=True)
    arguments.add_argument("--parallel", type=int, default=8, help="workflows at a time, in each process")
    arguments.add_argument("--processes", type=int, default=1)
    given = arguments.parse_args()
    # Its migrations are not part of the measurement.
    launch(given.url, "migrate", 1)
    DBOS.destroy()
    begin()
    each = given.runs // given.processes
    of = each * given.processes
    what = (given.url, given.mode, each, of, given.steps, given.parallel)
    seconds = together(given.processes, work, what)
    with psycopg.connect(libpq(given.url)) as connection:
        recorded = connection.execute("SELECT count(*) FROM dbos.operation_outputs").fetchone()[0]
        if succeeded(connection) != of or recorded != of * given.steps:
            raise RuntimeError(f"{succeeded(connection)} workflows and {recorded} steps are recorded")
    answer(seconds=seconds, done=of * given.steps)


if __name__ == "__main__":
    main()
