"""One BLAS thread from any thread, and processes that fork while another thread predicts."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError, Event, current_thread

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from exmlds.runtime import parallel
from exmlds.runtime.parallel import blocks, bounded_blocks, map_blocks, one_blas_thread


def test_bounded_blocks():
    assert bounded_blocks([], 4) == []
    assert bounded_blocks([2, 2, 9, 9, 1], 4) == [slice(0, 2), slice(2, 3), slice(3, 4), slice(4, 5)]
    assert bounded_blocks([0, 0, 0], 1) == [slice(0, 3)]


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("BLAS has one thread here")
        yield


@pytest.mark.usefixtures("two_blas_threads")
def test_a_thread_that_does_not_control_blas_limits_it_too():
    def inside() -> set[int]:
        with one_blas_thread():
            return blas_threads()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(inside).result() == {1}
        assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_the_limit_is_lifted_by_the_last_thread_whichever_set_it():
    entered, leave = Event(), Event()

    def first() -> None:
        with one_blas_thread():
            entered.set()
            leave.wait()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(first)
        entered.wait()
        with one_blas_thread():
            leave.set()
            future.result()
            assert blas_threads() == {1}
        assert blas_threads() == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.slow
def test_a_child_that_is_forked_while_another_thread_predicts_can_predict():
    program = """
        import os, signal, threading, time, warnings
        import numpy as np
        from threadpoolctl import threadpool_info
        from exmlds import ExMLDS1

        warnings.simplefilter("ignore")  # Python 3.12 warns of a fork beside threads
        rng = np.random.default_rng(0)
        X, Y = rng.random((300, 20)), rng.random((300, 12)) < 0.2
        model = ExMLDS1(threshold=0.5).fit(X, Y)
        expected = model.predict_topk(X)
        threads_before = [pool["num_threads"] for pool in threadpool_info()]
        done = threading.Event()

        def predict():
            while not done.is_set():
                model.predict_topk(X)

        threads = [threading.Thread(target=predict) for _ in range(2)]
        for thread in threads:
            thread.start()
        failed = 0
        for _ in range(20):
            time.sleep(0.005)
            child = os.fork()
            if not child:
                signal.alarm(20)  # ends a child that hangs
                same = all(map(np.array_equal, model.predict_topk(X), expected))
                lifted = [pool["num_threads"] for pool in threadpool_info()] == threads_before
                os._exit(0 if same and lifted else 1)
            failed += os.waitpid(child, 0)[1] != 0
        done.set()
        for thread in threads:
            thread.join()
        print(failed)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300
    )
    assert (run.stdout, run.stderr) == ("0\n", "")


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_blocks_come_in_order(n_jobs):
    rows = blocks(10, 3)
    assert list(map_blocks(lambda block: block, rows, n_jobs=n_jobs, stage="test", total=10)) == rows


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_workers_give_the_results_in_order(n_jobs: int) -> None:
    with parallel.Workers(n_jobs) as workers:
        for n in (0, 1, 2, 7, 30):
            todo = parallel.blocks(n, 3)
            assert workers.map(lambda block: block.start, todo) == [block.start for block in todo]


def test_an_error_of_a_worker_reaches_the_caller() -> None:
    def fail(block: slice) -> None:
        if block.start:
            raise ValueError("too bad")

    with parallel.Workers(2) as workers, pytest.raises(ValueError, match="too bad"):
        workers.map(fail, parallel.blocks(4, 1))


def test_blas_of_scipy_that_is_used_later_is_limited_too():
    """numba takes the products of its kernels from SciPy, which it imports with the first of them."""
    code = """
        from exmlds.runtime.parallel import one_blas_thread
        with one_blas_thread():
            import scipy.linalg
            from threadpoolctl import threadpool_info
            pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        assert pools and set(pools) == {1}, pools
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment, check=True)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_workers_that_wait_for_each_other_run_at_the_same_time(n_jobs: int) -> None:
    with parallel.Workers(n_jobs) as workers:
        barrier, met = Barrier(workers.threads), []

        def meet(thread: int) -> None:
            barrier.wait(timeout=60)
            met.append(thread)

        workers.together(meet, barrier.abort)
        assert sorted(met) == [*range(n_jobs)]


@pytest.mark.parametrize("failing", [0, 2])
def test_an_error_ends_workers_that_wait_for_each_other(failing: int) -> None:
    with parallel.Workers(3) as workers:
        barrier = Barrier(3)

        def meet(thread: int) -> None:
            if thread == failing:
                raise ValueError("too bad")
            with pytest.raises(BrokenBarrierError):
                barrier.wait(timeout=60)

        with pytest.raises(ValueError, match="too bad"):
            workers.together(meet, barrier.abort)


def test_threads_are_used_again() -> None:
    def names(_: slice) -> str:
        return current_thread().name

    def threads_of_a_map() -> set[str]:
        return set(map_blocks(names, blocks(40, 1), n_jobs=3, stage="test", total=40))

    assert len({name for _ in range(5) for name in threads_of_a_map()}) <= 3


def test_workers_inside_a_map_share_the_cores() -> None:
    def inside(_: slice) -> int:
        with parallel.Workers(6) as workers:
            return workers.threads

    assert list(map_blocks(inside, blocks(3, 1), n_jobs=3, stage="test", total=3)) == [2, 2, 2]
    with parallel.Workers(6) as workers:
        assert workers.threads == 6


@pytest.mark.parametrize("n_jobs", [1, 8])
def test_two_calls_share_the_cores_where_there_are_many(n_jobs: int) -> None:
    is_parallel, meeting = n_jobs >= parallel.MANY_THREADS, Barrier(2, timeout=10)

    def threads() -> int:
        if is_parallel:
            meeting.wait()  # both are running
        with parallel.Workers(n_jobs, most=99) as workers:
            return workers.threads

    found = parallel.beside(threads, threads, n_jobs=n_jobs, shares=(4, 1))
    assert found == ((2, 8) if is_parallel else (1, 1))
    with parallel.Workers(n_jobs, most=99) as workers:
        assert workers.threads == n_jobs


@pytest.mark.parametrize("n_jobs", [1, 8])
@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_one_of_two_calls_reaches_the_caller(n_jobs: int, failing: int) -> None:
    def fail() -> None:
        raise ArithmeticError("in one of two")

    calls = [lambda: None, lambda: None]
    calls[failing] = fail
    with pytest.raises(ArithmeticError, match="in one of two"):
        parallel.beside(*calls, n_jobs=n_jobs, shares=(2, 2))


def test_few_rows_are_cut_into_finer_blocks() -> None:
    assert [len(parallel.fine_blocks(n, 256)) for n in (0, 96, 1_536, 4_096, 256_000)] == [0, 1, 16, 32, 1000]
    assert parallel.fine_blocks(200, 256) == blocks(200, 96)
