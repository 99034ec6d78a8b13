"""LangGraph with its Postgres checkpointer: graphs of nodes in a row that do nothing, `durability="sync"`, so that a
step's checkpoint is written before the next begins. It has no queue: who runs the graphs is the caller's affair.
"""

import argparse
import asyncio
import operator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, TypedDict
from uuid import uuid4

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from shared import answer, begin, libpq, together

# As its documentation asks of connections that are made by hand.
CONNECTION = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}


class State(TypedDict):
    passed: Annotated[int, operator.add]


def chain(steps, saver):
    graph = StateGraph(State)
    for no in range(steps):
        graph.add_node(f"n{no}", lambda state: {"passed": 1})
        graph.add_edge(START if no == 0 else f"n{no - 1}", f"n{no}")
    graph.add_edge(f"n{steps - 1}", END)
    return graph.compile(checkpointer=saver)


def thread():
    return {"configurable": {"thread_id": str(uuid4())}}


def with_threads(ready, url, runs, steps, parallel):
    with ConnectionPool(libpq(url), min_size=parallel, max_size=parallel, kwargs=CONNECTION) as pool:
        pool.wait()
        graph = chain(steps, PostgresSaver(pool))

        def one(_):
            return graph.invoke({"passed": 0}, thread(), durability="sync")["passed"]

        with ThreadPoolExecutor(parallel) as executor:
            ready()
            return sum(executor.map(one, range(runs)))


async def with_coroutines(ready, url, runs, steps, parallel):
    pool = AsyncConnectionPool(libpq(url), min_size=parallel, max_size=parallel, kwargs=CONNECTION, open=False)
    async with pool:
        await pool.wait()
        graph = chain(steps, AsyncPostgresSaver(pool))
        free = asyncio.Semaphore(parallel)

        async def one():
            async with free:
                return (await graph.ainvoke({"passed": 0}, thread(), durability="sync"))["passed"]

        ready()
        return sum(await asyncio.gather(*(one() for _ in range(runs))))


def work(ready, finished, index, url, mode, runs, steps, parallel):
    if mode == "threads":
        passed = with_threads(ready, url, runs, steps, parallel)
    else:
        passed = asyncio.run(with_coroutines(ready, url, runs, steps, parallel))
    finished()
    if passed != runs * steps:
        raise RuntimeError(f"{passed} steps of {runs * steps} passed")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--mode", choices=["threads", "async"], default="threads")
    arguments.add_argument("--runs", type=int, required=True)
    arguments.add_argument("--steps", type=int, required=True)
    arguments.add_argument("--parallel", type=int, default=8, help="graphs at a time, in each process")
    arguments.add_argument("--processes", type=int, default=1)
    given = arguments.parse_args()
    with PostgresSaver.from_conn_string(libpq(given.url)) as saver:
        saver.setup()
    begin()
    each = given.runs // given.processes
    what = (given.url, given.mode, each, given.steps, given.parallel)
    seconds = together(given.processes, work, what)
    answer(seconds=seconds, done=each * given.processes * given.steps)


if __name__ == "__main__":
    main()
