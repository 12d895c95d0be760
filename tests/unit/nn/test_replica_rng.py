import pytest
import torch

from gumbel_mpnn.nn import ReplicaRNG, derive_seed

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


@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (5, 1), (2, 3, 7)])
def test_keep_takes_every_shape(shape):
    mask, _ = ReplicaRNG(SEEDS, "train").bernoulli(shape, 0.5)
    assert mask.shape == (3, *shape)


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


def test_state_of_another_number_of_replicas_is_refused():
    with pytest.raises(ValueError, match="zip"):
        ReplicaRNG([0, 1], "train").set_state(ReplicaRNG([3], "train").get_state())


def test_derived_seeds_are_fixed_and_fit_a_generator():
    assert derive_seed(0, "init") == 6_696_366_509_346_122_710
    seeds = {derive_seed(seed, purpose) for seed in range(100) for purpose in ("init", "train")}
    assert len(seeds) == 200
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_calls_are_counted_and_taken_back():
    rng = ReplicaRNG(SEEDS, "train")
    first, state = rng.next_call(), rng.get_state()
    assert [first.item(), rng.next_call().item(), rng.next_call().item()] == [1, 2, 3]
    other = ReplicaRNG(SEEDS, "train")
    other.next_call()
    assert rng.get_state()["calls"] == 3
    assert torch.equal(other.get_state()["calls"], state["calls"])
    assert torch.equal(other.get_state()["generators"], state["generators"])


def test_len_is_the_number_of_replicas():
    assert len(ReplicaRNG(SEEDS, "train")) == 3
