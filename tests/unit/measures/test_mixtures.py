"""Classes split into the components of their neighborhoods, on graphs whose components are known."""

import pytest
import torch
from torch_geometric.data import Data

from gumbel_mpnn.measures import decompose, edge_homophily, label_by_components, label_informativeness
from gumbel_mpnn.util.errors import DataError, UserError
from helpers import both_ways, changed, edges, small_data

TWO_KINDS = 12  # pairs of each kind


@pytest.fixture
def pairs():
    """Class 0 is half in pairs of its own (nodes 0 to 23), half tied to class 1 (24 to 35 and 36 to 47)."""
    own = [(2 * k, 2 * k + 1) for k in range(TWO_KINDS)]
    across = [(24 + k, 36 + k) for k in range(TWO_KINDS)]
    y = torch.tensor([0] * 36 + [1] * 12)
    return Data(edge_index=both_ways(edges(*own, *across)), y=y, num_nodes=48)


class TestDecompose:
    def test_two_kinds_of_neighborhoods_are_two_components(self, pairs):
        found = decompose(pairs)
        assert found.num_components == [2, 1]
        assert found.total == 3
        assert found.class_of.tolist() == [0, 0, 1]
        assert found.pseudo_labels.tolist() == [0] * 24 + [1] * 12 + [2] * 12

    def test_means_are_the_distributions(self, pairs):
        found = decompose(pairs)
        torch.testing.assert_close(
            torch.from_numpy(found.mixtures[0].means), torch.tensor([[1, 0], [0.5, 0.5]], dtype=torch.float64)
        )

    def test_without_the_own_label(self, pairs):
        found = decompose(pairs, own_label=False)
        torch.testing.assert_close(
            torch.from_numpy(found.mixtures[0].means), torch.tensor([[1, 0], [0, 1]], dtype=torch.float64)
        )

    def test_a_node_with_nothing_around_it_is_a_point_like_any_other(self, pairs):
        alone = changed(pairs, y=torch.cat([pairs.y, torch.zeros(9, dtype=torch.int64)]), num_nodes=57)
        found = decompose(alone, own_label=False)
        assert found.num_components == [3, 1]
        assert len(set(found.pseudo_labels[48:].tolist())) == 1

    def test_the_map_back_gives_the_classes(self, pairs):
        found = decompose(pairs)
        assert torch.equal(found.class_of[found.pseudo_labels], pairs.y)

    def test_spread_over_seeds(self, pairs):
        found = decompose(pairs, seeds=[4, 7])
        assert found.seeds == (4, 7)
        assert found.components_by_seed.tolist() == [[2, 1], [2, 1]]
        assert found.spread == (3, 3)
        assert found.bic_by_seed.min(0).values.tolist() == found.bic

    def test_each_class_keeps_its_best_seed(self):
        data = small_data(nodes=150, classes=3)
        found = decompose(data, seeds=4, max_components=6, starts=1)
        best = found.bic_by_seed.argmin(0)
        chosen = [int(found.components_by_seed[best[c], c]) for c in range(3)]
        assert found.num_components == chosen

    def test_the_same_seeds_give_the_same_labels(self):
        data = small_data(nodes=90)
        one, other = (decompose(data, seeds=1, max_components=5) for _ in range(2))
        assert torch.equal(one.pseudo_labels, other.pseudo_labels)

    def test_nodes_without_a_label_get_none_and_are_not_counted(self, pairs):
        known = pairs.y.clone()
        known[36:] = -1
        found = decompose(changed(pairs, y=known))
        assert found.num_components == [1]
        assert found.pseudo_labels.tolist() == [0] * 36 + [-1] * 12

    def test_a_class_without_nodes_has_no_component(self, pairs):
        found = decompose(changed(pairs, y=2 * pairs.y))
        assert found.num_components == [2, 0, 1]
        assert found.mixtures[1] is None
        assert found.class_of.tolist() == [0, 0, 2]
        assert found.bic[1] == 0

    def test_relabelled_data_are_measured(self, pairs):
        found = decompose(pairs)
        relabelled = found.relabel(pairs)
        assert torch.equal(relabelled.y, found.pseudo_labels)
        assert edge_homophily(relabelled) == 0.5
        # The 12 pairs within component 0 and 12 between 1 and 2: the label of one end tells that of the other.
        assert label_informativeness(relabelled) == pytest.approx(1)
        assert label_informativeness(pairs) < 0.5
        assert not torch.equal(pairs.y, relabelled.y)

    def test_another_graph_cannot_be_relabelled(self, pairs):
        with pytest.raises(DataError, match="24 nodes"):
            decompose(pairs).relabel(small_data())

    @pytest.mark.parametrize("seeds", [0, [], [-1], 2.0, [1.5], "12"])
    def test_seeds_are_needed(self, pairs, seeds):
        with pytest.raises(UserError, match="seed"):
            decompose(pairs, seeds=seeds)

    def test_labels_are_needed(self, pairs):
        with pytest.raises(DataError, match="no labelled nodes"):
            decompose(changed(pairs, y=torch.full((48,), -1)))
        with pytest.raises(DataError, match="no labels"):
            decompose(changed(pairs, y=None))


class TestLabelByComponents:
    @pytest.fixture
    def split_pairs(self, pairs):
        """Two splits: in the first, class 1 has no training node; in the second everybody trains."""
        mask = torch.ones(48, 2, dtype=torch.bool)
        mask[36:, 0] = False
        return changed(pairs, train_mask=mask)

    def test_every_split_sees_its_training_labels_alone(self, split_pairs):
        labelled = label_by_components(split_pairs)
        assert labelled.class_of.tolist() == [0, 0, 1]
        assert labelled.train_y[:, 0].tolist() == [0] * 36 + [-1] * 12
        assert labelled.train_y[:, 1].tolist() == [0] * 24 + [1] * 12 + [2] * 12
        assert torch.equal(labelled.y, split_pairs.y)

    def test_an_oracle_sees_all(self, split_pairs):
        labelled = label_by_components(split_pairs, "all")
        components = [0] * 24 + [1] * 12
        assert labelled.train_y.T.tolist() == [components + [-1] * 12, components + [2] * 12]

    def test_labels_outside_the_training_nodes_change_nothing(self):
        data = small_data(nodes=120)
        others = torch.where(data.train_mask[:, 0], data.y, (data.y + 1) % 3)
        one = changed(data, train_mask=data.train_mask[:, 0])
        labelled, shuffled = (label_by_components(d, seeds=1, max_components=4) for d in (one, changed(one, y=others)))
        assert torch.equal(labelled.train_y, shuffled.train_y)
        assert not torch.equal(
            *(label_by_components(d, "all", seeds=1, max_components=4).train_y for d in (one, changed(one, y=others)))
        )

    def test_components_are_of_the_nodes_class(self):
        data = small_data(nodes=120, splits=3)
        labelled = label_by_components(data, seeds=1, max_components=4)
        for split in range(3):
            mask = data.train_mask[:, split]
            assert torch.equal(labelled.class_of[labelled.train_y[mask, split]], data.y[mask])
            assert (labelled.train_y[~mask, split] == -1).all()

    def test_mistakes(self, pairs, split_pairs):
        with pytest.raises(DataError, match="train_mask"):
            label_by_components(pairs)
        with pytest.raises(UserError, match="'training'"):
            label_by_components(split_pairs, "train")

    @pytest.mark.parametrize("mask", [torch.arange(10), torch.ones(48).long(), torch.ones(40).bool()])
    def test_a_mask_is_true_or_false_for_each_node(self, pairs, mask):
        with pytest.raises(DataError, match=r"train_mask must be bool of shape \[48\] or \[48, S\]"):
            label_by_components(changed(pairs, train_mask=mask))

    def test_a_split_without_labels_is_named(self, split_pairs):
        split_pairs.train_mask[:, 1] = False
        with pytest.raises(DataError, match="split 1 of 2, counted from 0, has no labelled training nodes"):
            label_by_components(split_pairs)
