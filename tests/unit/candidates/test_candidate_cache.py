"""Candidates on disk: found again by content, made again where anything differs or is damaged."""

import importlib
import linecache
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import gumbel_mpnn as gm
from gumbel_mpnn._util import content_cache
from gumbel_mpnn.candidates import Cached, CandidateStrategy, Global, Local, TwoHop, candidates
from helpers import changed, edges, fresh_processes, small_data

QUICK = {"model": {"hidden_channels": 8}, "train": {"epochs": 2}}


@pytest.fixture
def folder(user_cache):
    return user_cache / "candidates"


@pytest.fixture
def searches(monkeypatch):
    """One entry for each search that was really done."""
    done = []
    for name in candidates:
        strategy = candidates[name]

        def propose(self, data, graph, original=strategy.propose):
            done.append(str(self))
            return original(self, data, graph)

        monkeypatch.setattr(strategy, "propose", propose)
    return done


def graph():
    return Data(
        x=small_data().x, y=small_data().y, h=small_data(seed=5).x, edge_index=edges((0, 1), (1, 2), (2, 3), (5, 9))
    )


def files(folder):
    return sorted(folder.glob("*")) if folder.is_dir() else []


@pytest.mark.parametrize("strategy", [Local(2), Global(9), TwoHop(2)], ids=str)
def test_the_same_content_is_searched_once(folder, searches, strategy):
    first, second = Cached(strategy)(graph()), Cached(strategy)(graph())
    assert len(searches) == len(files(folder)) == 1
    assert torch.equal(first.candidate_index, second.candidate_index)
    assert torch.equal(first.candidate_index, strategy(graph()).candidate_index)
    assert second.candidate_index.dtype == torch.int64
    assert second.max_candidates_per_node == first.max_candidates_per_node


def test_what_a_strategy_reads_is_told_from_what_it_does_not(folder, searches):
    data, one_feature = graph(), graph().x.clone()
    one_feature[3, 1] += 0.5
    Cached(Local(2))(data)
    for other in (
        changed(data, y=data.y.flip(0)),
        changed(data, train_mask=data.y == 0),
        changed(data, h=data.h + 1),
        changed(data, x=data.x.T.contiguous().T),
        changed(data, edge_index=torch.cat([data.edge_index, data.edge_index.flip(0)], 1)),
    ):
        Cached(Local(2))(other)
    assert len(searches) == 1
    for other in (
        changed(data, x=one_feature),
        changed(data, x=data.x.double()),
        changed(data, edge_index=data.edge_index[:, 1:]),
        changed(data, batch=torch.arange(24) // 12),
    ):
        Cached(Local(2))(other)
    for strategy in (Local(3), Local(2, "dot"), Local(2, on="h"), Global(2)):
        Cached(strategy)(data)
    assert len(searches) == len(files(folder)) == 9


def test_two_hop_candidates_depend_on_their_seed_and_not_on_labels(folder, searches):
    Cached(TwoHop())(graph())
    Cached(TwoHop())(changed(graph(), y=torch.arange(24)))
    assert len(searches) == 1
    Cached(TwoHop(seed=1))(graph())
    assert len(searches) == 2


def test_a_graph_of_more_nodes_is_another_graph(folder, searches):
    for nodes in (4, 5):
        Cached(TwoHop())(Data(edge_index=edges((0, 1), (1, 2)), num_nodes=nodes))
    assert len(searches) == 2


DAMAGES = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[: len(content) // 2],
    "a flipped bit": lambda content: content[:150] + bytes([content[150] ^ 1]) + content[151:],
    "no archive": lambda content: b"not an archive",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_made_again_without_a_word(folder, searches, damage, capfd):
    right = Cached(Local(2))(graph()).candidate_index
    (file,) = files(folder)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert torch.equal(Cached(Local(2))(graph()).candidate_index, right)
    assert len(searches) == 2
    assert file.read_bytes() == whole
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("pairs", [[[0], [99]], [[-1], [3]], [[3], [3]], [0, 1], [[0, 1]]], ids=str)
def test_a_file_with_impossible_pairs_is_made_again(folder, searches, pairs):
    right = Cached(Local(2))(graph()).candidate_index
    np.savez(files(folder)[0], pairs=np.array(pairs, dtype=np.int32))
    assert torch.equal(Cached(Local(2))(graph()).candidate_index, right)


def test_a_cache_that_cannot_be_written_to_is_no_error(folder, searches):
    folder.parent.mkdir()
    folder.write_text("a file where the folder should be")
    for _ in range(2):
        assert torch.equal(Cached(Local(2))(graph()).candidate_index, Local(2)(graph()).candidate_index)
    assert len(searches) == 4


def test_no_home_is_no_error(folder, monkeypatch):
    def nobody(cls):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", classmethod(nobody))
    assert torch.equal(Cached(Local(2))(graph()).candidate_index, Local(2)(graph()).candidate_index)


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", "false"])
def test_it_can_be_switched_off(folder, searches, monkeypatch, word):
    monkeypatch.setenv(content_cache.SWITCH, word)
    Cached(Local(2))(graph())
    Cached(Local(2))(graph())
    assert len(searches) == 2
    assert files(folder) == []


def test_a_strategy_called_alone_keeps_nothing(folder):
    Local(2)(graph())
    assert files(folder) == []


def test_a_strategy_that_does_not_say_what_it_reads_is_asked_each_time(folder):
    class Chain(CandidateStrategy):
        def propose(self, data, graph):
            return torch.stack([torch.arange(23), torch.arange(1, 24)])

    once, again = (Cached(Chain())(graph()).candidate_index for _ in range(2))
    assert torch.equal(once, again)
    assert once.numel()
    assert files(folder) == []
    assert str(Cached(Local(2))) == f"Cached(strategy={Local(2)})"


def test_mistakes_are_answered_as_without_a_cache(folder):
    for data in (changed(graph(), x=None, num_nodes=24), changed(graph(), x=graph().x * torch.nan)):
        with pytest.raises(gm.UserError) as without:
            Local(2)(data)
        with pytest.raises(gm.UserError) as cached:
            Cached(Local(2))(data)
        assert str(cached.value) == str(without.value)
    assert files(folder) == []


def test_what_was_not_used_for_longest_goes_first(folder, monkeypatch):
    strategies, ages = [TwoHop(seed=seed) for seed in range(4)], []
    for age, strategy in enumerate(strategies[:3]):
        Cached(strategy)(graph())
        newest = max(files(folder), key=lambda file: file.stat().st_mtime)
        os.utime(newest, (1e9 + age, 1e9 + age))
        ages.append(newest)
    oldest_but_one = ages[1]
    size = newest.stat().st_size
    monkeypatch.setattr(content_cache, "MOST_BYTES", 3 * size)
    Cached(strategies[0])(graph())  # the oldest is used again
    Cached(strategies[3])(graph())
    assert len(files(folder)) == 3
    assert oldest_but_one not in files(folder)
    assert set(ages) - {oldest_but_one} < set(files(folder))


def _use_and_delete(environment, folder, rounds, wanted, wrong):
    os.environ.update(environment)
    for _ in range(rounds):
        found = Cached(Local(2))(graph()).candidate_index
        if not torch.equal(found, wanted):
            wrong.value += 1
        for file in folder.glob("*.npz"):
            file.unlink(missing_ok=True)


def test_several_processes_share_the_folder(folder):
    context = fresh_processes()
    wrong, wanted = context.Value("i", 0), Local(2)(graph()).candidate_index
    arguments = (dict(os.environ), folder, 20, wanted, wrong)
    workers = [context.Process(target=_use_and_delete, args=arguments, daemon=True) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert wrong.value == 0
    assert [file for file in files(folder) if file.suffix != ".npz"] == []


def test_batches_are_told_apart_by_where_their_graphs_begin(folder, searches):
    one = Data(x=torch.arange(8.0).view(4, 2), edge_index=edges())
    for sizes in ((4, 4), (4, 2, 2)):
        batch = Batch.from_data_list([Data(x=one.x[:size], edge_index=edges()) for size in sizes])
        Cached(Local(1))(batch)
    assert len(searches) == 2


def test_fit_uses_it_and_a_changed_feature_misses(folder, searches):
    data = small_data()
    for _ in range(2):
        run = gm.fit(data, "gumbel-mpnn", splits=[0], settings=QUICK, device="cpu")
        run.rewire()
    assert len(searches) == 1
    other = data.clone()
    other.y[data.val_mask[:, 0]] = (other.y[data.val_mask[:, 0]] + 1) % 3
    gm.fit(other, "gumbel-mpnn", splits=[0], settings=QUICK, device="cpu")
    assert len(searches) == 1
    other.x[0, 0] += 1
    gm.fit(other, "gumbel-mpnn", splits=[0], settings=QUICK, device="cpu")
    assert len(searches) == 2


STRATEGY = """
import torch
from gumbel_mpnn.candidates import CandidateStrategy

class Mine(CandidateStrategy):
    @property
    def reads(self):
        return ()

    def propose(self, data, graph):
        return torch.stack([torch.arange(20), torch.arange(20) + STEP])
"""


def test_a_strategy_of_the_users_is_searched_again_when_its_code_changes(folder, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for step in (2, 3, 2):
        (tmp_path / "my_strategy.py").write_text(STRATEGY.replace("STEP", str(step)), encoding="utf-8")
        sys.modules.pop("my_strategy", None)
        linecache.clearcache()
        importlib.invalidate_caches()
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        found.append(Cached(importlib.import_module("my_strategy").Mine())(graph()).candidate_index)
        sys.dont_write_bytecode = before
    assert not torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert len(files(folder)) == 2
