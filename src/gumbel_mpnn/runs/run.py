"""The finished runs of one setting: figures, models, predictions, the learned graph."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, UserError
from gumbel_mpnn._util.files import write_atomically
from gumbel_mpnn.config import Settings
from gumbel_mpnn.data.names import class_names_of
from gumbel_mpnn.nn import TrainableModel
from gumbel_mpnn.rewiring.rewired_graph import as_data
from gumbel_mpnn.runs.graph_file import Learned
from gumbel_mpnn.runs.query import Record, Summary
from gumbel_mpnn.runs.store import SettingFolder
from gumbel_mpnn.training import Task, build_model, metrics, pick_device, prepare
from gumbel_mpnn.training.precision import class_scores, pair_probability
from gumbel_mpnn.training.task import labels_per_class


@dataclass(frozen=True)
class Run:
    """The finished runs of one setting: figures, records, models.

    A graph that is given to one of its methods has the candidates that the settings say, as in training: those that
    their strategy finds in it or, where they are `data`, those that it brings.
    """

    settings: Settings
    metric: str
    records: tuple[Record, ...]
    data: Data = field(repr=False)
    folder: SettingFolder = field(repr=False)
    _temporary: object = field(default=None, repr=False, compare=False)

    @property
    def test(self) -> Summary:
        """Test metric at the epochs chosen on validation."""
        return Summary.of(record.test for record in self.records)

    @property
    def val(self) -> Summary:
        """Best validation metric."""
        return Summary.of(record.val for record in self.records)

    @property
    def n(self) -> int:
        """Number of runs."""
        return len(self.records)

    @property
    def seconds(self) -> float:
        """Time all runs took together."""
        return sum(record.seconds for record in self.records)

    @property
    def folders(self) -> list[str]:
        """The folders of the runs."""
        return [str(self.folder.folder(record.replica)) for record in self.records]

    @torch.no_grad()
    def predict_proba(self, data: Data | None = None) -> Tensor:
        """Class probabilities [N, C], averaged over all runs; on the training graph unless another is given."""
        task = self._task(data)
        return self._mean(class_scores(model, task, self.settings)[0].softmax(-1) for model in self._models(task))

    def rewire(self, data: Data | None = None, threshold: float = 0.5) -> Data:
        """The learned graph, averaged over all runs: `edge_index` and three attributes of every edge.

        `edge_probability` is how likely it is, `edge_weight` that times the weight it was given with (1 for new edges,
        and where there were none), and `edge_origin` is true for edges that were given.
        Of the model `sdrf` it is the graph that all runs trained on, which knows no probabilities: `edge_weight` is
        there only if the graph came with it, and `threshold` decides nothing.

        Args:
            data: Any graph with the same features, seen in training or not; the training graph by default.
            threshold: Pairs less likely than this are left out; 0 keeps all.
        """
        given = self.data if data is None else data
        _check_data(given)
        if self.settings.rewiring is None:
            rewired = prepare(given, self.settings)
            if rewired is given:
                raise UserError(f"model {self.settings.model!r} does not rewire the graph")
            return rewired
        here = copy.copy(given).cpu()
        kept = self.folder.learned(record.replica for record in self.records) if data is None else None
        learned = self._learned(here) if kept is None else kept
        return as_data(learned.graph, learned.probability, here, threshold).to(given.edge_index.device)

    def _learned(self, data: Data) -> Learned:
        """What the trained models say of the pairs of a graph, on average."""
        task = self._task(data)
        learned = (pair_probability(model, task, self.settings) for model in self._models(task))
        return Learned(task.graph, self._mean(each[0] for each in learned if each is not None))

    @torch.no_grad()
    def scores(self, data: Data, records: Iterable[Record] | None = None, device: str = "auto") -> list[float]:
        """The test metric of every run on a graph with the same nodes, such as a noisier one.

        Args:
            data: The graph, with the labels and masks of the training graph.
            records: Of which runs; all by default.
            device: `cpu`, `cuda`, or `auto` for a GPU if there is one.
        """
        _check_data(data)
        for name in ("y", "train_mask", "val_mask", "test_mask"):
            if data.get(name) is None:
                raise DataError(f"this graph has no {name}: give it the labels and masks of the training graph")
        records = self.records if records is None else tuple(records)
        task = self._task(data, pick_device(device))
        if any(record.split >= task.num_splits for record in records):
            raise DataError(
                f"this graph has masks for {task.num_splits} splits: give it all those of the training graph"
            )
        found = []
        for record, model in zip(records, self._models(task, records), strict=True):
            test_mask = task.masks([record.replica])[2]
            scores = class_scores(model, task, self.settings)
            found.append(float(metrics[task.metric](scores, task.y, test_mask)[0]))
        return found

    def stored(self, name: str, make: Callable[[], Any]) -> Any:
        """The result of `make`, plain JSON values, computed once for these records and stored beside them as `name`.

        What was computed from trained models is then available after the models were deleted. If `make` changes, the
        name must change too.
        """
        if (stored := self._read_stored(name)) is not None:
            return stored
        content = json.dumps(make())
        with suppress(OSError):  # a store that cannot be written to stays as it is
            write_atomically(self.folder.figures(name, self.records), content.encode())
        return json.loads(content)

    def has_stored(self, name: str) -> bool:
        """Whether `stored` has a result under this name and need not compute it again."""
        return self._read_stored(name) is not None

    def _read_stored(self, name: str) -> Any:
        try:
            return json.loads(self.folder.figures(name, self.records).read_bytes())
        except (OSError, ValueError):  # never made, or damaged
            return None

    def _task(self, data: Data | None, device: torch.device | str = "cpu") -> Task:
        data = self.data if data is None else data
        _check_data(data)
        data = prepare(data, self.settings)
        task = Task.of(_with_masks(data), self.settings.data, device, candidates=self.settings.rewiring is not None)
        features = int(self.data.x.shape[1])
        if task.num_features != features:
            raise UserError(f"the runs were trained on {features} features, but this graph has {task.num_features}")
        return replace(task, labels_per_class=labels_per_class(self.data))

    def _models(self, task: Task, records: Iterable[Record] | None = None) -> Iterator[TrainableModel]:
        """The trained models, one after the other, ready for evaluation."""
        for record in self.records if records is None else records:
            model = build_model(self.settings, task, [record.replica])
            model.load_state_dict(self.folder.state(record.replica))
            yield model.eval()

    def _mean(self, values: Iterable[Tensor]) -> Tensor:
        return torch.stack(list(values)).mean(0)

    def predict(self, data: Data | None = None) -> list[Any]:
        """The class of every node, as a name where the data have names."""
        classes = self.predict_proba(data).argmax(-1).tolist()
        names = class_names_of(self.data)
        return [names[c] for c in classes] if names else classes

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON values."""
        return {
            "dataset": self.settings.dataset,
            "model": self.settings.model,
            "metric": self.metric,
            "n": self.n,
            "test": self.test.to_dict(),
            "val": self.val.to_dict(),
            "seconds": self.seconds,
            "runs": self.folders,
        }


def _check_data(data: object) -> None:
    """Raise a `UserError` unless it is a graph."""
    if not isinstance(data, Data):
        what = f"the name {data!r}" if isinstance(data, str) else f"a {type(data).__name__}"
        raise UserError(f"runs are asked about a graph: give a Data, as gm.load makes one, not {what}")


def _with_masks(data: Data) -> Data:
    """Data to predict on need no masks and no labels: empty ones and a class for nobody stand in."""
    if data.get("train_mask") is not None and data.get("y") is not None:
        return data
    data = copy.copy(data)
    nobody = torch.zeros(int(data.num_nodes or 0), dtype=torch.bool)
    data.train_mask = data.val_mask = data.test_mask = nobody
    if data.get("y") is None:
        data.y = torch.full(nobody.shape, -1)
    return data
