"""Mixtures on disk: found again for the same rows, searched for again where anything differs or is damaged."""

import numpy as np
import pytest
import torch

from gumbel_mpnn.measures import decompose, mixtures
from gumbel_mpnn.measures.mixture_search import SearchOptions, best_mixture
from gumbel_mpnn.measures.mixtures import cached_mixture
from gumbel_mpnn.util import content_cache
from helpers import small_data

OPTIONS = SearchOptions(max_components=4)


@pytest.fixture
def folder(user_cache):
    return user_cache / "mixtures"


@pytest.fixture
def searches(monkeypatch):
    """One entry for each search that was really done."""
    done = []

    def search(rows, seed, options):
        done.append(seed)
        return best_mixture(rows, seed, options)

    monkeypatch.setattr(mixtures, "best_mixture", search)
    return done


def two_clouds(count=40):
    noise = np.random.default_rng(0).normal(scale=0.1, size=(count, 3))
    return noise + (np.arange(count) % 2)[:, None]


def same(one, other):
    for name in ("weights", "means", "covariances", "component"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    return (one.bic, one.bic_by_components) == (other.bic, other.bic_by_components)


def test_the_same_rows_are_searched_once(folder, searches):
    first, second = (cached_mixture(two_clouds(), 0, OPTIONS) for _ in range(2))
    assert (searches, len(list(folder.iterdir()))) == ([0], 1)
    assert same(first, second)
    assert same(first, best_mixture(two_clouds(), 0, OPTIONS))
    assert len(first.weights) == 2


def test_other_rows_seeds_and_options_are_others(folder, searches):
    cached_mixture(two_clouds(), 0, OPTIONS)
    cached_mixture(two_clouds() + 1, 0, OPTIONS)
    cached_mixture(two_clouds(), 1, OPTIONS)
    cached_mixture(two_clouds(), 0, SearchOptions(max_components=5))
    assert len(searches) == 4


@pytest.mark.parametrize("content", [b"", b"no npz", None], ids=["empty", "text", "other arrays"])
def test_a_damaged_file_is_made_again(folder, searches, content):
    right = cached_mixture(two_clouds(), 0, OPTIONS)
    (file,) = folder.iterdir()
    if content is None:
        np.savez(file, weights=np.ones(2))
    else:
        file.write_bytes(content)
    assert same(cached_mixture(two_clouds(), 0, OPTIONS), right)
    assert same(cached_mixture(two_clouds(), 0, OPTIONS), right)
    assert len(searches) == 2


def test_only_who_asks_for_it_keeps_anything(folder, searches):
    data = small_data(nodes=60)
    plain = decompose(data, seeds=1)
    assert not folder.exists()
    searches.clear()
    first, second = (decompose(data, seeds=1, cache=True) for _ in range(2))
    assert len(searches) == len(list(folder.iterdir())) == int(data.y.max()) + 1
    for found in (first, second):
        assert torch.equal(found.pseudo_labels, plain.pseudo_labels)
        assert (found.bic, found.spread) == (plain.bic, plain.spread)


def test_it_can_be_switched_off(folder, searches, monkeypatch):
    monkeypatch.setenv(content_cache.SWITCH, "off")
    for _ in range(2):
        cached_mixture(two_clouds(), 0, OPTIONS)
    assert len(searches) == 2
    assert not folder.exists()
