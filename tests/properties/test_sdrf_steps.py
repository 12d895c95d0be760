"""SDRF against a version that knows nothing but the definition, step by step, with the same random numbers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_curvature as brute
from gumbel_mpnn.baselines.sdrf_steps import Flow
from gumbel_mpnn.graph import PairGraph
from helpers import edges

STEPS = 8


@st.composite
def graphs(draw):
    """The number of nodes and pairs: few, with self-loops and duplicates, or a share of all."""
    nodes = draw(st.integers(2, 13))
    node = st.integers(0, nodes - 1)
    if draw(st.booleans()):
        return nodes, draw(st.lists(st.tuples(node, node), max_size=3 * nodes))
    share, seed = draw(st.floats(0, 1)), draw(st.integers(0, 2**32))
    return nodes, brute.edges_of(np.random.default_rng(seed).random((nodes, nodes)) < share)


@given(
    graph=graphs(),
    tau=st.sampled_from([0.0, 1.0, 20.0, 1000.0]),
    bound=st.sampled_from([None, 0.5, 0.0, -1.0]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None)
def test_equal_to_the_definition_step_by_step(graph, tau, bound, seed):
    nodes, pairs = graph
    flow = Flow(PairGraph.build(edges(*pairs), nodes), STEPS, tau, bound, seed)
    a = brute.matrix(pairs, nodes)
    expected = brute.sdrf(a, flow.uniforms, tau, bound)
    for step, (added, removed) in enumerate(expected):
        flow.advance(1)
        assert flow.done == step + 1
        for changed, there in ((added, 1), (removed, 0)):
            a = a if changed is None else brute.with_edge(a, changed, there)
        assert [(int(i), int(j)) for i, j in flow.pairs.T] == brute.edges_of(a)
        curvature = [brute.curvature_of(a, *ends) for ends in brute.edges_of(a)]
        np.testing.assert_allclose(brute.curvature_kept(flow), curvature, atol=1e-12)
    flow.advance(STEPS)
    assert (flow.done, flow.finished) == (len(expected), True)


@given(nodes=st.integers(20, 40), density=st.floats(0.05, 0.6), seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_the_curvature_kept_is_that_of_the_graph_so_far(nodes, density, seed):
    a = np.triu(np.random.default_rng(seed).random((nodes, nodes)) < density, 1).astype(np.int64)
    flow = Flow(PairGraph.build(edges(*brute.edges_of(a)), nodes), 40, 5.0, 0.0, seed)
    flow.advance(40)
    so_far = Flow(PairGraph.build(edges(*flow.pairs.T.tolist()), nodes), 0, 1.0, None, 0)
    kept, counted = brute.edges_kept(flow), brute.edges_kept(so_far)
    assert (flow.state.curvature[kept] == so_far.state.curvature[counted]).all()
    for got, expected in zip(flow.state.terms, so_far.state.terms, strict=True):
        assert (got[kept] == expected[counted]).all()
