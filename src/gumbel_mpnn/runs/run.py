"""Finished runs of one setting: metrics, predictions and the learned graph; as trained, or loaded from their folder."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn.data import missing_files, specs
from gumbel_mpnn.data.columns import FeatureColumn
from gumbel_mpnn.data.networks import from_graphml
from gumbel_mpnn.data.npz import from_npz
from gumbel_mpnn.data.tables import from_csv
from gumbel_mpnn.graph import without_candidates
from gumbel_mpnn.nn import TrainableModel, models
from gumbel_mpnn.rewiring.learned_graph import Changes
from gumbel_mpnn.runs import predict
from gumbel_mpnn.runs.audit import Audit, PairMeasures, audit, measure_pairs
from gumbel_mpnn.runs.choice import Choice, read_choices
from gumbel_mpnn.runs.predict import DataFacts, TrainingData
from gumbel_mpnn.runs.spec import read_data
from gumbel_mpnn.runs.store import RECORD, Record, SettingFolder, Summary, find_records, find_setting
from gumbel_mpnn.settings import Settings
from gumbel_mpnn.settings.registry import load_plugins
from gumbel_mpnn.training import data_hash
from gumbel_mpnn.util.errors import DataError, UserError, counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


@dataclass(frozen=True)
class Run:
    """Finished runs of one setting: metrics, records and models.

    Methods that take a graph add the candidates of the settings to it, as in training; if `rewiring.candidates` is
    `data`, they use its own.
    """

    settings: Settings
    metric: str
    records: tuple[Record, ...]
    trained_on: TrainingData = field(repr=False)
    folder: SettingFolder = field(repr=False)
    choice: Choice | None = None
    """What `auto` tried and chose, if it made these runs."""
    rungs: Mapping[str, Run] = field(default_factory=dict, repr=False, compare=False)
    """Runs of every rung that `auto` tried, by name; rungs that were stopped early have fewer runs. Empty for a loaded
    run."""
    _temporary: object = field(default=None, repr=False, compare=False)

    @property
    def data(self) -> Data:
        """The graph that the runs were trained on."""
        return self.trained_on.data

    @property
    def feature_columns(self) -> list[FeatureColumn] | None:
        """Columns of the training data that became features, to read other files alike; None if they are not known."""
        columns = self.trained_on.facts.feature_columns
        return None if columns is None else list(columns)

    @property
    def test(self) -> Summary:
        """Test metric, at the epochs chosen on validation; of no values (n is 0) without test nodes."""
        return Summary.of(record.test for record in self.records)

    @property
    def val(self) -> Summary:
        """Validation metric of the epoch that was kept; of no values (n is 0) without validation nodes."""
        return Summary.of(record.val for record in self.records)

    @property
    def n(self) -> int:
        """Number of runs."""
        return len(self.records)

    @property
    def seconds(self) -> float:
        """Total time of all runs."""
        return sum(record.seconds for record in self.records)

    @property
    def folders(self) -> list[str]:
        """Folders of the runs."""
        return [str(self.folder.folder(record.replica)) for record in self.records]

    @property
    def history(self) -> DataFrame:
        """Training curves of all runs: columns split, seed, epoch, train_loss, val and val_loss.

        Runs whose file is missing are left out with a `DataWarning`.
        """
        return self.folder.history(self.records)

    @property
    def rewires(self) -> bool:
        """Whether the model changes the graph; if not, `rewire` has nothing to tell."""
        own: Any = models[self.settings.model].prepare
        usual: Any = TrainableModel.prepare
        return self.settings.rewiring is not None or own.__func__ is not usual.__func__

    def plot(self, what: str | None = None, ax: Axes | None = None) -> Any:
        """Draw the runs with Matplotlib; returns the axes of one plot, or an array of the axes of all.

        Args:
            what: `curves` (validation and losses, with the chosen epochs), `confusion` (test nodes, each run on its
                own), `probabilities` (of given edges and candidates) or `degrees` (before and after); None for all.
                Models that do not rewire have only the first two.
            ax: Axes to draw a single plot on; a new figure by default.
        """
        from gumbel_mpnn.report.plots import plot_run

        return plot_run(self, what, ax)

    def page(self, path: str | Path) -> None:
        """Write an HTML page that opens offline: how good the runs are, what they changed, and the graph to explore.

        The backbone, the best plain model and the control are shown beside the runs if they are in the same folder of
        runs. For several settings side by side, use `gumbel_mpnn.report.page.write_page`.

        Args:
            path: File to write, which ends in .html.
        """
        from gumbel_mpnn.report.page import write_page

        write_page([self], path)

    def __repr__(self) -> str:
        """Three lines: what was trained, how good it is, and what to do next or what `auto` chose."""
        model, last = self.settings.model, f"next: run.predict(), {'run.rewire(), ' * self.rewires}run.page('run.html')"
        if self.choice is not None:
            model = f"{self.choice.title}: {self.choice.chosen}"
            last = f"{self.choice.title}: {self.choice.sentence()}"
        title = f"{model} on {self.settings.dataset}: {counted(self.n, 'run')}, metric {self.metric}"
        return f"{title}\ntest {self.test}, validation {self.val}\n{last}"

    def predict_proba(self, data: Data | None = None, *, out_of_fold: bool = False) -> Tensor:
        """Class probabilities averaged over all runs, [N, C], on the training graph by default.

        Args:
            data: Any graph with the same features.
            out_of_fold: Average only over the runs that neither trained nor validated on the node; NaN for nodes that
                every run used. This needs the training graph.
        """
        if not out_of_fold:
            return predict.mean_probability(self, data)
        if data is not None:
            raise UserError("out_of_fold needs the splits of the training graph: leave out the graph")
        return predict.probabilities(self)[1]

    def predict(self, data: Data | None = None) -> list[Any]:
        """Predicted class of every node, as a name if the data has class names."""
        return self.named(self.predict_proba(data).argmax(-1))

    def named(self, classes: Tensor) -> list[Any]:
        """The names of classes, given by their numbers; the numbers if the data has no class names."""
        names, numbers = self.trained_on.facts.class_names, classes.tolist()
        return [names[number] for number in numbers] if names else numbers

    def predictions(self) -> DataFrame:
        """Table of the nodes of the training graph: how they were used, and what is predicted for them.

        Columns:

        - `node`: id or number of the node;
        - `label`: its class, empty if unknown;
        - `trained`, `validated`, `tested`: the splits in which it was a training, validation or test node;
        - `out_of_fold`, `out_of_fold_probability`: class predicted by the runs that neither trained nor validated on
          the node, and its probability; empty if every run used the node. Trust these for nodes with a label;
        - `average`, `average_probability`: class predicted by all runs, including those that trained on the node;
        - `out_of_fold[CLASS]`, `average[CLASS]`: probability of every class.
        """
        return predict.prediction_table(self)

    def rewire(self, data: Data | None = None, threshold: float = 0.5) -> Data:
        """Learned graph, averaged over all runs.

        It has the attributes `edge_index`, `edge_probability`, `edge_weight` (the probability times the weight in the
        given graph, 1 for new edges and unweighted graphs) and `edge_origin` (true for given edges).

        If `auto` chose a plain model, it is the given graph, with probability 1.

        For the model `sdrf`, it is the graph that all runs were trained on. It has no probabilities, `threshold` has no
        effect, and it has weights only if the given graph has them.

        Args:
            data: Any graph with the same features; the training graph by default.
            threshold: Pairs with a smaller probability are left out; with 0 there are all pairs.
        """
        return predict.mean_graph(self, data, threshold)

    def graphs(self, threshold: float = 0.5, records: Iterable[Record] | None = None) -> Iterator[Data]:
        """Learned graph of each run, one at a time, with the attributes that `rewire` describes.

        An edge that half of the runs are sure of is in half of these graphs, while `rewire` averages first. All runs of
        the model `sdrf` have the same graph.

        Args:
            threshold: Pairs with a smaller probability in this run are left out; with 0 there are all pairs.
            records: Runs whose graphs are returned; all by default.
        """
        return predict.graph_of_each(self, self.records if records is None else tuple(records), threshold)

    def changes(self, threshold: float = 0.5) -> Changes:
        """What the learned graph, averaged over all runs, changed: edges kept, dropped and added.

        If `auto` chose a plain model, nothing is changed.

        Args:
            threshold: Pairs with this probability or more are edges.
        """
        return predict.changes_of(self, threshold)

    def audit(self) -> Audit:
        """Suspicious edges and missing ones of the training graph, ranked, with the facts that speak for and against.

        Every model will do; those that rewire add their learned probabilities. Labels of nodes that no run has trained
        on are not used.
        """
        return audit(self)

    def measure_pairs(self, threshold: float = 0.5) -> PairMeasures:
        """Homophily of the given and the learned graphs, separately for pairs of training nodes and of others.

        Every run is measured on its own graph and with its own split, then the values are averaged. An improvement
        among training nodes alone is overfitting: see `PairMeasures.overfits`.

        Args:
            threshold: Pairs with a smaller probability in a run are left out.
        """
        if self.settings.rewiring is None:
            raise UserError(f"model {self.settings.model!r} learns no graph, so there is nothing to compare")
        splits, data = [record.split for record in self.records], copy.copy(self.data).cpu()
        return measure_pairs(predict.learned_by(self, self.records), data, splits, threshold)

    def scores(self, data: Data, records: Iterable[Record] | None = None, device: str = "auto") -> list[float]:
        """Test metric of every run on another graph with the same nodes, for example with added noise.

        Args:
            data: Graph with the labels and masks of the training graph.
            records: Runs to evaluate; all by default.
            device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
        """
        return predict.scores_on(self, data, self.records if records is None else tuple(records), device)

    def confusion_matrix(self) -> Tensor:
        """How often a test node of each class (row) was predicted as each class (column), int64 [C, C].

        Each run counts on its own test nodes, which its model has not seen; the counts of all runs are added.
        """
        return predict.confusion_matrix(self)

    def to_dict(self) -> dict[str, Any]:
        """Convert the metrics to plain JSON values; they are shares between 0 and 1."""
        return {
            "dataset": self.settings.dataset,
            "model": self.settings.model,
            "metric": self.metric,
            "unit": "share",
            "n": self.n,
            "test": self.test.to_dict(),
            "val": self.val.to_dict(),
            "seconds": self.seconds,
            "runs": self.folders,
            **({} if self.choice is None else {"choice": self.choice.to_dict()}),
        }


def load_run(
    run: str | Path, *, data: Data | None = None, runs: str | Path = "runs", root: str | Path | None = None
) -> Run:
    """Load finished runs, which then predict and rewire as after `fit`.

    The data that the runs were trained on are read when they are first needed: by name for a data set, from the files
    of the user if these are still there, or from `data`. Other graphs can be predicted and rewired without them.

    Args:
        run: Folder of a setting, folder of one run, or the beginning of a fingerprint, as `gumbel-mpnn runs` lists.
        data: The graph that the runs were trained on.
        runs: Folder of the runs, in which fingerprints are looked up.
        root: Folder with the files of the data sets.
    """
    load_plugins()
    folder = find_setting(run, runs)
    records = tuple(find_records(folder))
    if not records:
        raise UserError(f"there is no finished run in {folder}: give the folder of a setting, with its runs")
    first = records[0]
    if any(record.fingerprint != first.fingerprint for record in records):
        raise UserError(f"the runs in {folder} have different settings: give the folder of one setting")
    path = folder.parent if (folder / RECORD).exists() else folder
    chosen = {str(record.replica) for record in records}
    choice = next((choice for choice in read_choices(path) if chosen <= set(choice.runs)), None)
    settings, facts = Settings.from_dict(first.settings), DataFacts.read(path)
    files = None if facts is None else facts.source_files
    read = partial(_training_data, path, first, settings, data, files, root)  # unlike a closure, it can be pickled
    return Run(settings, first.metric, records, TrainingData(read, facts), SettingFolder(path), choice)


def _training_data(
    path: Path,
    record: Record,
    settings: Settings,
    given: Data | None,
    files: Mapping[str, Any] | None,
    root: str | Path | None,
) -> Data:
    """Read the data that the runs were trained on, and compare their hash with that of the record."""
    if given is not None:
        found = read_data(given, settings.data, root)
        for each in (found, without_candidates(found)):  # settings can ask for other candidates than those of the data
            if data_hash(each) == record.data_hash:
                return each
        raise DataError(f"the runs in {path} were trained on other data than those given")
    # The sizes of a generated task share the name that runs record.
    names = [key for key, spec in specs.items() if spec.name == settings.dataset and not missing_files(spec, root)]
    for name in names:
        found = read_data(name, settings.data, root)
        if data_hash(found) == record.data_hash:
            return found
    if files is None:
        raise DataError(
            f"the data that the runs in {path} were trained on are not known: give them as load_run(..., data=...), or"
            " give a graph to predict"
        )
    try:
        found = read_data(read_again(files), settings.data, root)
    except DataError as error:
        raise DataError(f"the data that the runs in {path} were trained on cannot be read again: {error}") from None
    if data_hash(found) != record.data_hash:
        raise DataError(
            f"the files that the runs in {path} were trained on have changed: give the training data as"
            " load_run(..., data=...), or a graph to predict"
        )
    return found


def read_again(source: Mapping[str, Any]) -> Data:
    """Read a graph by its `data.source_files`, which `from_csv`, `from_npz` and `from_graphml` set."""
    described, undirected = source["features"], source["undirected"]
    features: Any = described and [
        FeatureColumn.from_dict(each) if isinstance(each, dict) else each for each in described
    ]
    features = False if features == [] else features  # None for all
    match source["reader"]:
        case "csv":
            names = {name: source[name] for name in ("label", "id", "source", "target")}
            return from_csv(source["nodes"], source["edges"], features=features, **names, undirected=undirected)
        case "npz":
            return from_npz(source["path"], undirected, features is not False)
        case _:
            return from_graphml(source["path"], source["label"], features)
