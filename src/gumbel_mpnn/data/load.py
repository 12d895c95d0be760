"""All data sets by name: benchmarks, which are read from files, and graphs that are generated."""

from __future__ import annotations

from pathlib import Path

import torch
from torch_geometric.data import Data

from gumbel_mpnn._util.errors import DataError, MissingDataError, UserError, check_whole, unknown_name
from gumbel_mpnn.config.registry import normal_name
from gumbel_mpnn.data.benchmarks import BENCHMARKS
from gumbel_mpnn.data.download import Progress
from gumbel_mpnn.data.files import all_found, locate, obtain
from gumbel_mpnn.data.generated import GENERATED
from gumbel_mpnn.data.planetoid import read_geom_gcn_splits
from gumbel_mpnn.data.raw import RawGraph, count_edges, set_edges, set_masks
from gumbel_mpnn.data.spec import AnySpec, DatasetSpec, Form, GeneratedSpec
from gumbel_mpnn.data.splits import PROTOCOLS, random_masks
from gumbel_mpnn.graph import check_edges

specs: dict[str, AnySpec] = {**BENCHMARKS, **GENERATED}
"""Every data set under the name that `load` takes."""


def get_spec(name: str) -> AnySpec:
    """Return the data set called `name`, ignoring case and the difference between `_` and `-`."""
    if not isinstance(name, str):
        raise UserError(f"a data set is given by its name, such as 'cora', not by {name!r}")
    known = specs.get(normal_name(name))
    if known is None:
        raise unknown_name("data set", name, specs)
    return known


def load(
    name: str,
    split: int | None = None,
    root: str | Path | None = None,
    protocol: str | None = None,
    features: bool = True,
    directed: bool = False,
    seed: int = 0,
    num_splits: int = 10,
    progress: Progress | None = None,
    as_listed: bool = False,
    attack: str = "",
) -> Data:
    """Load a data set by name as a plain `Data`.

    Files are searched in `root`, in the folder named by GUMBEL_MPNN_DATA and in the user's cache, in this order, and
    downloaded if they are in none of them. Generated data sets need no files and always list their edges in the same
    way: `root`, `progress` and `as_listed` have no effect on them.

    Args:
        name: name of the data set; `specs` lists all of them.
        split: number of a split, which gives masks [N]; None gives the masks [N, S] of all splits.
        root: folder of data files to search first.
        protocol: how the nodes are split; None selects the default of the data set. Every data set has `final` and
            `all`, without test nodes, too.
        features: False leaves `x` out. Some data sets can be loaded without the files of their features.
        directed: True keeps the direction of the edges, for data sets that have one.
        seed: seed of a random protocol.
        num_splits: number of splits of a random protocol.
        progress: called during a download with the number of bytes done and the number expected.
        as_listed: True keeps every edge as often as the files list it, and in the direction listed.
        attack: name of an attack, for data sets that come with poisoned edges; empty for the clean graph. After
            nettack, the test nodes are its targets.

    Returns:
        A graph with `x` float32 [N, F], `edge_index` int64 [2, E], sorted and with every edge once per direction, `y`
        int64 [N] with -1 for unlabelled nodes, the three masks, and the strings `name`, `metric` and `protocol`.
    """
    spec = get_spec(name)
    protocol = spec.protocol(protocol)
    _check_attack(spec, attack)
    if directed and not spec.has_directions:
        raise DataError(f"data set {spec.name!r} has no directed edges: load it with directed=False")
    if isinstance(spec, GeneratedSpec):
        data = spec.make()
    else:
        data = _read(spec, protocol, root, features, directed, progress, attack)
        if not as_listed:
            set_edges(data, undirected=not directed)
    if not features:
        data.num_nodes, data.x = len(data.y), None
    if protocol in PROTOCOLS:
        set_masks(data, random_masks(data.y, protocol, seed, num_splits))
    if split is not None:
        choose_split(data, split)
    data.name, data.metric, data.protocol = spec.name, spec.metric, protocol
    if spec.attacks:
        data.attack = attack
    return data


def _check_attack(spec: AnySpec, attack: str) -> None:
    """Raise a `UserError` if the data set does not come with this attack."""
    if attack and not spec.attacks:
        attacked = ", ".join(name for name, each in specs.items() if each.attacks)
        raise UserError(f"there are no attacks on data set {spec.name!r}, only on {attacked}: leave out the attack")
    if attack and attack not in spec.attacks:
        raise unknown_name(f"attack on {spec.name!r}", attack, spec.attacks)


def choose_split(data: Data, split: int) -> None:
    """Replace the masks [N, S] of `data` by the masks [N] of one split."""
    check_whole(split=split)
    count = data.train_mask.shape[1]
    if not 0 <= split < count:
        raise UserError(f"there is no split {split}: this protocol has splits 0 to {count - 1}")
    for mask in ("train_mask", "val_mask", "test_mask"):
        data[mask] = data[mask][:, split].contiguous()


def _read(
    spec: DatasetSpec,
    protocol: str,
    root: str | Path | None,
    features: bool,
    directed: bool,
    progress: Progress | None,
    attack: str,
) -> Data:
    """Read a data set from its files, with the splits of `protocol` unless it is a random one."""
    form, paths = _obtain(spec, protocol, root, features, directed, progress)
    graph = form.read(paths[: len(form.files)])
    _check_counts(spec, graph, features)
    if attack:
        graph = graph.attacks[attack]
        check_edges(torch.from_numpy(graph.edges).T, num_nodes=len(graph.y))
    data = graph.to_data()
    if protocol not in PROTOCOLS:
        split_files = paths[len(form.files) :]
        masks = read_geom_gcn_splits(split_files) if split_files else graph.masks
        if masks is None or len(masks.train) != len(graph.y):
            raise DataError(
                f"the files of protocol {protocol!r} have no masks for {len(graph.y)} nodes: choose another protocol"
            )
        set_masks(data, masks)
    return data


def _obtain(
    spec: DatasetSpec,
    protocol: str,
    root: str | Path | None,
    features: bool,
    directed: bool,
    progress: Progress | None,
) -> tuple[Form, list[Path]]:
    """Return the form to read and the paths of its files, preferring files that need no download."""
    forms = [form for form in spec.forms if form.directed == directed and (form.features or not features)]
    forms.sort(key=lambda form: form.features)  # prefers the smaller files without features
    wanted = [(form, spec.files_for(protocol, form)) for form in forms]
    here = [pair for pair in wanted if all_found(pair[1], root)]
    downloadable = [pair for pair in wanted if all(file.url for file in pair[1])]
    form, files = [*here, *downloadable, *wanted][0]
    try:
        return form, obtain(spec.name, files, root, progress)
    except MissingDataError as error:
        if features and locate(spec, root).without_features:
            raise MissingDataError(f"{error}, or load the graph without features (features=False)") from error
        raise


def _check_counts(spec: DatasetSpec, graph: RawGraph, features: bool) -> None:
    num_nodes = len(graph.y)
    check_edges(torch.from_numpy(graph.edges).T, num_nodes=num_nodes)
    counts = {
        "nodes": (num_nodes, spec.num_nodes),
        "edges": (count_edges(graph.edges, num_nodes), spec.num_edges),
        "classes": (len(torch.unique(torch.from_numpy(graph.y[graph.y >= 0]))), spec.num_classes),
    }
    if features:
        shape = (0, 0) if graph.x is None else graph.x.shape
        counts |= {"rows of features": (shape[0], spec.num_nodes), "features": (shape[1], spec.num_features)}
    wrong = [
        f"{found} {what} instead of {published}" for what, (found, published) in counts.items() if found != published
    ]
    if wrong:
        raise DataError(
            f"the files of data set {spec.name!r} contain {', '.join(wrong)}: replace them by the published files"
        )
