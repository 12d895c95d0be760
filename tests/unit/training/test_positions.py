"""Positions among communities as features, and beside them: what `prepare` gives to a model."""

import pytest
import torch

from gumbel_mpnn.config import Settings
from gumbel_mpnn.measures.communities import community_positions
from gumbel_mpnn.runs import RunSpec
from gumbel_mpnn.training import prepare
from gumbel_mpnn.training.build import PER_CLASS, SHARE
from helpers import changed, small_data


def settings(model: str = "gcn", *overrides: str) -> Settings:
    given = ("data.features=with-structure", *overrides)
    return RunSpec.of(small_data(), model, preset=None, overrides=given).settings


def test_are_further_columns_of_a_quarter_of_the_squared_length():
    data = small_data(nodes=60)
    x = prepare(data, settings()).x
    given = data.num_features
    assert torch.equal(x[:, :given], data.x)
    positions = community_positions(data, PER_CLASS * 3)
    assert x.shape[1] == given + PER_CLASS * 3
    scale = x[:, given:].norm() / positions.norm()
    assert torch.allclose(x[:, given:], scale * positions, atol=1e-5)
    assert x[:, given:].square().sum() == pytest.approx(SHARE * float(data.x.square().sum()), rel=1e-4)


def test_follow_the_scale_of_the_features():
    data = small_data()
    once, tenfold = (prepare(changed(data, x=factor * data.x), settings()).x for factor in (1, 10))
    assert torch.allclose(tenfold, 10 * once, rtol=1e-4)


def test_sparse_features_stay_sparse():
    data = small_data()
    dense, sparse = (prepare(changed(data, x=x), settings()).x for x in (data.x, data.x.to_sparse()))
    assert sparse.layout is torch.sparse_coo
    assert torch.allclose(sparse.to_dense(), dense, atol=1e-6)


def test_candidates_are_neighbors_by_features_alone():
    data = small_data(nodes=60)
    options = ("rewiring.candidates=local", "rewiring.per_node=3")
    found = prepare(data, settings("gumbel-mpnn", *options))
    plain = RunSpec.of(data, "gumbel-mpnn", preset=None, overrides=options).settings
    assert torch.equal(found.candidate_index, prepare(data, plain).candidate_index)


def test_are_those_of_the_given_edges_for_a_model_that_removes_some():
    data = small_data(nodes=60)
    kept = prepare(data, settings("jaccard", "model.threshold=0.5"))
    assert kept.edge_index.shape[1] < data.edge_index.shape[1]
    assert torch.equal(kept.x, prepare(data, settings()).x)


def test_features_that_are_all_0_and_no_edges():
    data = small_data()
    x = prepare(changed(data, x=torch.zeros_like(data.x)), settings()).x
    assert x[:, data.num_features :].abs().sum() > 0
    alone = prepare(changed(data, edge_index=data.edge_index[:, :0]), settings()).x
    assert alone.isfinite().all()
