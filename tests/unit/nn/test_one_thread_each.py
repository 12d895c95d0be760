"""Computations that threads share, each on one thread."""

import threading

import pytest
import torch

from gumbel_mpnn.nn.each_replica import LITTLE, one_thread_each


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_every_job_is_done_once_and_on_one_thread(threads):
    out, inside = torch.zeros(50), []

    def compute(into, value):
        inside.append((torch.get_num_threads(), torch.is_grad_enabled()))
        into += value

    one_thread_each(compute, [(out[k], k) for k in range(50)], 2 * LITTLE)
    assert out.tolist() == list(range(50))
    assert set(inside) == {(1, False)}
    assert torch.get_num_threads() == threads


def test_threads_work_at_the_same_time(threads):
    together = threading.Barrier(threads)  # passes only if that many jobs run at once
    one_thread_each(lambda: together.wait(timeout=60), [()] * threads, 2 * LITTLE)


def test_little_work_is_not_shared(threads):
    names = []
    one_thread_each(lambda: names.append(threading.current_thread().name), [()] * 20, LITTLE)
    assert set(names) == {threading.current_thread().name}


def test_an_error_arrives_and_the_number_of_threads_is_restored(threads):
    def compute(k):
        if k == 7:
            raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        one_thread_each(compute, [(k,) for k in range(20)], 2 * LITTLE)
    assert torch.get_num_threads() == threads


def test_results_in_inference_mode_can_be_written(threads):
    with torch.inference_mode():
        out = torch.zeros(4, 3)
        one_thread_each(lambda into: into.add_(1), [(row,) for row in out], 2 * LITTLE)
    assert out.tolist() == [[1.0] * 3] * 4
