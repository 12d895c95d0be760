"""The index of runs: what the folders say, however it came to be there, and whatever became of the index."""

import math
import os
import shutil
import sqlite3

import pytest
import torch

from gumbel_mpnn.runs.query import index as module
from gumbel_mpnn.runs.query.filters import Filter
from gumbel_mpnn.runs.query.index import FILE, RunIndex
from gumbel_mpnn.runs.record import find_records, read_record
from gumbel_mpnn.util.errors import UnknownNameError, UserError
from quick_fit import edit, quick


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A store of three settings, seven runs, long settled."""
    root = tmp_path_factory.mktemp("trained")
    quick(runs=root)
    quick(runs=root, seeds=2, overrides=["train.lr=0.02"])
    quick(runs=root, model="mlp", splits=[1], experiment="other")
    settle(root)
    return root


@pytest.fixture
def store(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "runs")


def settle(root):
    """As if nothing had been changed for a day."""
    for path in [*root.rglob("*"), root]:
        os.utime(path, (1_700_000_000, 1_700_000_000))


def counts(root):
    index = RunIndex(root)
    try:
        return {(row.experiment, row.model, row.n) for row in index.settings()}
    finally:
        index.close()


ALL = {("train", "gcn", 2), ("train", "gcn", 4), ("other", "mlp", 1)}


def damage_all_records(root):
    """Whoever reads a record from now on cannot; the folders look as if nothing had changed."""
    for path in root.rglob("record.json"):
        path.write_text("not a record")


class TestContents:
    def test_the_rows_are_those_of_the_records(self, store):
        index = RunIndex(store)
        rows = index.settings()
        assert [row.path for row in rows] == sorted({path.parent.parent for path in store.glob("**/record.json")})
        for row in rows:
            records = list(find_records(row.path))
            tests = torch.tensor([record.test for record in records], dtype=torch.float64)
            assert row.test == pytest.approx(float(tests.mean()))
            assert row.std == pytest.approx(float(tests.std()) if len(records) > 1 else 0.0)
            assert row.seconds == pytest.approx(sum(record.seconds for record in records))
            assert (row.n, row.fingerprint, row.dataset) == (len(records), records[0].fingerprint, "own")

    def test_every_run_with_its_settings(self, store):
        index = RunIndex(store)
        runs = {(run["folder"], run["split"], run["seed"]): run for run in index.runs(index.settings())}
        assert len(runs) == 7
        for path in store.glob("**/record.json"):
            record = read_record(path)
            run = runs[str(path.parent.parent), record.split, record.seed]
            for name in ("val", "test", "best_epoch", "epochs", "seconds", "metric", "fingerprint"):
                assert run[name] == getattr(record, name)
            assert run["train.lr"] == record.settings["train"]["lr"]
            assert run["model.hidden_channels"] == 8
            assert run["device"] == record.machine["device"]

    def test_no_folder_no_runs_and_no_index(self, tmp_path):
        assert RunIndex(tmp_path / "nothing").settings() == []
        (tmp_path / "empty").mkdir()
        assert RunIndex(tmp_path / "empty").settings() == []
        assert not (tmp_path / "nothing").exists()
        assert list((tmp_path / "empty").iterdir()) == []

    def test_a_part_of_a_store(self, store):
        assert counts(store / "train") == {("train", "gcn", 2), ("train", "gcn", 4)}
        (setting,) = (store / "other/own/mlp").iterdir()
        assert counts(setting) == {("other", "mlp", 1)}

    def test_a_setting_under_way_is_there_with_what_is_finished(self, store):
        (setting,) = (store / "other/own/mlp").iterdir()
        (setting / "split0-seed0").mkdir()
        (setting / "split0-seed0/history.jsonl").touch()
        assert counts(store) == ALL
        shutil.copy(setting / "split1-seed0/record.json", setting / "split0-seed0/record.json")
        edit(setting / "split0-seed0/record.json", split=0)
        os.utime(setting, (1_700_000_000, 1_700_000_000))
        assert ("other", "mlp", 2) in counts(store)


class TestChanges:
    def test_nothing_is_read_twice(self, store):
        assert counts(store) == ALL
        damage_all_records(store)
        assert counts(store) == ALL

    def test_what_changed_just_now_is_looked_at_again(self, store, monkeypatch):
        """A change within the same tick of the clock would leave no trace."""
        counts(store)
        (setting,) = (store / "other/own/mlp").iterdir()
        os.utime(setting)
        now = setting.stat().st_mtime_ns
        counts(store)
        shutil.copytree(setting / "split1-seed0", setting / "split1-seed9")
        record = setting / "split1-seed9/record.json"
        edit(record, seed=9)
        os.utime(setting, ns=(now, now))
        assert ("other", "mlp", 2) in counts(store)

    def test_runs_that_were_trained_since(self, store):
        counts(store)
        quick(runs=store, overrides=["train.lr=0.03"], splits=[0])
        assert counts(store) == {*ALL, ("train", "gcn", 1)}

    def test_replicas_that_were_trained_since(self, store):
        counts(store)
        quick(runs=store, seeds=3)
        assert counts(store) == {*ALL, ("train", "gcn", 6)} - {("train", "gcn", 2)}

    def test_runs_that_were_carried_in_with_their_times(self, store, trained):
        shutil.rmtree(store / "other")
        counts(store)
        shutil.copytree(trained / "other", store / "other")
        assert counts(store) == ALL

    def test_runs_that_were_deleted(self, store):
        counts(store)
        (setting,) = (store / "other/own/mlp").iterdir()
        shutil.rmtree(setting / "split1-seed0")
        assert counts(store) == ALL - {("other", "mlp", 1)}

    def test_settings_that_were_deleted(self, store):
        counts(store)
        shutil.rmtree(store / "other")
        assert counts(store) == ALL - {("other", "mlp", 1)}

    def test_a_record_changed_by_hand_needs_a_rebuild(self, store):
        counts(store)
        path = next((store / "other").rglob("record.json"))
        edit(path, test=0.125)
        index = RunIndex(store)
        index.rebuild()
        assert [row.test for row in index.settings(Filter.named("experiment", "other"))] == [0.125]


class TestDamage:
    @pytest.mark.parametrize("content", [b"", b"no database at all" * 100, b"SQLite format 3\0" + bytes(5000)])
    def test_a_damaged_index_is_made_again(self, store, content):
        counts(store)
        (store / FILE).write_bytes(content)
        assert counts(store) == ALL
        damage_all_records(store)
        assert counts(store) == ALL

    def test_an_index_cut_off(self, store):
        counts(store)
        content = (store / FILE).read_bytes()
        (store / FILE).write_bytes(content[: len(content) // 2])
        assert counts(store) == ALL

    @pytest.mark.parametrize("version", [0, 99])
    def test_an_index_of_another_version(self, store, version):
        with sqlite3.connect(store / FILE) as database:
            database.execute("CREATE TABLE settings (something TEXT)")
            database.execute(f"PRAGMA user_version = {version}")
        database.close()
        assert counts(store) == ALL

    def test_where_none_can_be_written(self, store):
        (store / FILE).mkdir()
        assert counts(store) == ALL
        assert list((store / FILE).iterdir()) == []

    def test_one_that_may_only_be_read_is_used(self, store, monkeypatch):
        counts(store)
        damage_all_records(store)
        connect = sqlite3.connect

        def read_only(path, **options):
            return connect(path if path == ":memory:" else f"file:{path}?mode=ro", uri=path != ":memory:", **options)

        monkeypatch.setattr(module.sqlite3, "connect", read_only)
        quick(runs=store, overrides=["train.lr=0.03"], splits=[0])
        before = (store / FILE).read_bytes()
        assert counts(store) == {*ALL, ("train", "gcn", 1)}
        assert (store / FILE).read_bytes() == before

    def test_another_process_that_writes_for_long(self, store, monkeypatch):
        monkeypatch.setattr(module, "LOCK_SECONDS", 0)
        counts(store)
        other = sqlite3.connect(store / FILE)
        other.execute("BEGIN EXCLUSIVE")
        assert counts(store) == ALL
        other.close()

    def test_a_truncated_record_hides_no_other(self, store):
        record = next((store / "train").rglob("split1-seed1/record.json"))
        record.write_bytes(record.read_bytes()[:-20])
        for _ in range(2):
            index = RunIndex(store)
            assert sum(row.n for row in index.settings()) == 6
            (sentence,) = index.damaged
            assert sentence.startswith(f"cannot read the run record {record}: ")
            index.close()

    def test_a_figure_that_is_no_number_hides_no_other(self, store):
        """As the ROC AUC of test nodes of one class; the fault: `gumbel-mpnn runs` ended in a TypeError."""
        index = RunIndex(store)
        others = [row for row in index.settings() if row.model == "gcn"]
        record = next((store / "other").rglob("record.json"))
        edit(record, test=float("nan"))
        index.rebuild()
        (damaged,) = (row for row in index.settings() if row.model == "mlp")
        assert math.isnan(damaged.test)
        assert damaged.n == 1
        assert [row for row in index.settings() if row.model == "gcn"] == others
        assert len(others) == 2
        index.close()


class TestFilters:
    @pytest.mark.parametrize(
        ("filters", "models"),
        [
            ([*Filter.named("model", "mlp")], ["mlp"]),
            ([*Filter.named("model", "mlp, gcn")], ["mlp", "gcn", "gcn"]),
            ([*Filter.named("experiment", "train"), *Filter.named("dataset", "own")], ["gcn", "gcn"]),
            ([Filter.parse("n>=4")], ["gcn"]),
            ([Filter.parse("n<4"), Filter.parse("n != 2")], ["mlp"]),
            ([Filter.parse("train.lr = 0.02")], ["gcn"]),
            ([Filter.parse("train.lr<=0.01")], ["mlp", "gcn"]),
            ([Filter.parse("model.name=mlp")], ["mlp"]),
            ([Filter.parse("data.undirected=true")], ["mlp", "gcn", "gcn"]),
            ([Filter.parse("data.undirected=false")], []),
            ([Filter.parse("test>100")], []),
            ([Filter.parse("test<=100")], ["mlp", "gcn", "gcn"]),
        ],
    )
    def test_what_passes(self, store, filters, models):
        assert sorted(row.model for row in RunIndex(store).settings(filters)) == sorted(models)

    def test_figures_are_in_per_cent(self, store):
        for share, record in enumerate(sorted(store.rglob("split1-seed0/record.json"))):
            edit(record, val=0.0, test=0.2 * share)
            shutil.rmtree(record.parents[1] / "split0-seed0", ignore_errors=True)
        index = RunIndex(store)
        index.rebuild()
        tests = sorted(row.test for row in index.settings())
        assert len(set(tests)) == 3
        for k, test in enumerate(tests):
            above = index.settings([Filter.parse(f"test>{100 * test + 1e-6}")])
            assert sorted(row.test for row in above) == tests[k + 1 :]
            assert len(index.settings([Filter.parse(f"test>={100 * test - 1e-6}")])) == 3 - k

    @pytest.mark.parametrize(
        ("filters", "message"),
        [
            (
                lambda: Filter.named("model", "gnc"),
                "there is no model among the runs called 'gnc': did you mean 'gcn'?",
            ),
            (lambda: [Filter.parse("train.lrr=1")], "there is no setting among the runs called 'train.lrr'"),
            (lambda: [Filter.parse("tets>1")], "there is no figure or setting called 'tets': did you mean 'test'?"),
            (lambda: [Filter.parse("test")], "cannot read the condition 'test'"),
            (lambda: [Filter.parse("test>good")], "the condition 'test>good' needs a number"),
        ],
    )
    def test_mistakes(self, store, filters, message):
        with pytest.raises(UserError) as caught:
            RunIndex(store).settings(filters())
        assert message in str(caught.value)


class TestFind:
    def test_by_folder_and_by_fingerprint(self, store, monkeypatch):
        index = RunIndex(store)
        for row in index.settings():
            assert index.find(str(row.path)) == index.find(row.fingerprint[:10]) == row
            assert index.find(str(next(row.path.iterdir()))) == row
        monkeypatch.chdir(store)
        assert index.find(str(row.path.relative_to(store))) == row

    def test_nothing(self, store):
        with pytest.raises(UserError, match="there is no finished run 'zzz' in"):
            RunIndex(store).find("zzz")

    def test_several(self, store):
        shutil.copytree(store / "other", store / "again")
        index = RunIndex(store)
        (row, _) = index.settings(Filter.named("model", "mlp"))
        with pytest.raises(UserError, match=r"may be .*again.* or .*other.*: give a folder"):
            index.find(row.fingerprint)


def test_an_unknown_name_is_its_own_kind_of_error(store):
    with pytest.raises(UnknownNameError):
        RunIndex(store).settings(Filter.named("experiment", "trian"))
