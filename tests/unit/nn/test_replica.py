"""Random streams of replicas, and computations that threads share."""

import threading

import pytest
import torch

from gumbel_mpnn.nn import ReplicaRNG
from gumbel_mpnn.nn.replica import LITTLE, derive_seed, one_thread_each

SEEDS = [3, 5, 8]


def test_uniform_numbers_fill_their_range():
    numbers = ReplicaRNG(SEEDS, "init").uniform((500, 4), -2.0, 3.0)
    assert numbers.shape == (3, 500, 4)
    assert numbers.min() >= -2
    assert numbers.max() < 3
    assert numbers.mean(dim=(1, 2)).tolist() == pytest.approx([0.5] * 3, abs=0.15)


@pytest.mark.parametrize(
    "draw", [lambda s: s.uniform((7,), 0, 1), lambda s: s.bernoulli((7,), 0.5)[0]], ids=["uniform", "bernoulli"]
)
def test_a_replica_draws_the_same_alone_and_among_others(draw):
    together = ReplicaRNG(SEEDS, "train")
    alone = [ReplicaRNG([seed], "train") for seed in SEEDS]
    other = ReplicaRNG([99, 5], "train")
    for _ in range(3):
        drawn = draw(together)
        assert torch.equal(drawn, torch.cat([draw(stream) for stream in alone]))
        assert torch.equal(drawn[1], draw(other)[1])


def test_seeds_and_purposes_make_unrelated_streams():
    first = ReplicaRNG([0, 1], "train").uniform((20,), 0, 1)
    other = ReplicaRNG([0, 1], "init").uniform((20,), 0, 1)
    assert torch.cat([first, other]).unique(dim=0).shape == (4, 20)


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_keep_keeps_about_the_share_asked_for(probability):
    mask, exact = ReplicaRNG(SEEDS, "train").bernoulli((100, 201), probability)
    assert (mask.shape, mask.dtype) == ((3, 100, 201), torch.bool)
    assert exact == pytest.approx(probability, abs=2**-17)
    assert mask.double().mean(dim=(1, 2)).tolist() == pytest.approx([exact] * 3, abs=0.015)


@pytest.mark.parametrize(("probability", "answer"), [(0.0, False), (1.0, True), (1 - 1e-6, True)])
def test_keep_is_exact_at_the_ends(probability, answer):
    mask, exact = ReplicaRNG(SEEDS, "train").bernoulli((1000,), probability)
    assert exact == answer
    assert mask.unique().tolist() == [answer]


def test_entries_cut_from_one_draw_are_independent():
    mask, _ = ReplicaRNG([0], "train").bernoulli((4000, 4), 0.5)
    patterns = (mask[0].long() * torch.tensor([1, 2, 4, 8])).sum(-1)
    assert (patterns.bincount(minlength=16) / 4000).tolist() == pytest.approx([1 / 16] * 16, abs=0.02)


@pytest.mark.parametrize("seeds", [[3], SEEDS], ids=["one", "several"])
def test_state_takes_a_stream_back(seeds):
    rng = ReplicaRNG(seeds, "train")
    rng.bernoulli((5,), 0.5)
    state = rng.get_state()
    first = rng.uniform((5,), 0, 1)
    later = rng.uniform((5,), 0, 1)
    rng.set_state(state)
    assert torch.equal(rng.uniform((5,), 0, 1), first)
    assert not torch.equal(first, later)
    other = ReplicaRNG([0] * len(seeds), "init")
    other.set_state(state)
    assert torch.equal(other.uniform((5,), 0, 1), first)


def test_derived_seeds_are_fixed_and_fit_a_generator():
    assert derive_seed(0, "init") == 6_696_366_509_346_122_710
    seeds = {derive_seed(seed, purpose) for seed in range(100) for purpose in ("init", "train")}
    assert len(seeds) == 200
    assert all(0 <= seed < 2**63 for seed in seeds)


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
