"""The benchmarks that are read from files: names, published counts, files and readers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gumbel_mpnn.data import attacked, npz, ogb, planetoid
from gumbel_mpnn.data.raw import RawGraph
from gumbel_mpnn.data.spec import Counts, DatasetSpec, File, Form, Metric
from gumbel_mpnn.data.splits import RANDOM_PROTOCOLS

_GITHUB = "https://raw.githubusercontent.com"
_HETEROPHILOUS = f"{_GITHUB}/yandex-research/heterophilous-graphs/main/data"
_PLANETOID = f"{_GITHUB}/kimiyoung/planetoid/master/data"
_GEOM_GCN = f"{_GITHUB}/graphdml-uiuc-jlu/geom-gcn/master/splits"
_ARXIV = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"

# The published checksums, in the format that `sha256sum -c` reads in a data root.
_SHA256 = {
    path: digest for digest, path in map(str.split, Path(__file__).with_name("SHA256SUMS").read_text().splitlines())
}

BENCHMARKS: dict[str, DatasetSpec] = {}


def _file(path: str, url: str | None = None, member: str | None = None) -> File:
    return File(path, url, _SHA256.get(path), member)


def _add(
    name: str,
    counts: Counts,
    protocols: tuple[str, ...],
    forms: tuple[Form, ...],
    source: str,
    licence: str,
    metric: Metric = "accuracy",
    split_files: tuple[File, ...] = (),
) -> None:
    every = dict.fromkeys((*protocols, *RANDOM_PROTOCOLS))  # removes duplicates and keeps the order
    BENCHMARKS[name] = DatasetSpec(name, metric, tuple(every), *counts, source, licence, forms, split_files)


def _add_planetoid(name: str, counts: Counts) -> None:
    raw = [f"ind.{name}.{part}" for part in planetoid.PARTS]
    splits = [f"{name}_split_0.6_0.2_{k}.npz" for k in range(10)]
    _add(
        name,
        counts,
        ("geom-gcn", "public"),
        (Form(tuple(_file(f"planetoid/{name}/raw/{f}", f"{_PLANETOID}/{f}") for f in raw), planetoid.read_planetoid),),
        source="github.com/kimiyoung/planetoid, splits github.com/graphdml-uiuc-jlu/geom-gcn",
        licence="MIT (splits: none stated)",
        split_files=tuple(_file(f"geom-gcn-splits/{f}", f"{_GEOM_GCN}/{f}") for f in splits),
    )


def _add_heterophilous(
    name: str,
    counts: Counts,
    file: str | None = None,
    protocol: str = "heterophilous",
    metric: Metric = "accuracy",
    more: tuple[Form, ...] = (),
) -> None:
    form = _npz_form(file or name.replace("-", "_"))
    source = "github.com/yandex-research/heterophilous-graphs"
    _add(name, counts, (protocol,), (form, *more), source, "MIT", metric)


def _npz_form(file: str, directed: bool = False) -> Form:
    path = _file(f"heterophilous/{file}.npz", f"{_HETEROPHILOUS}/{file}.npz")
    return Form((path,), npz.read_graph, directed=directed)


def _add_wikipedia(name: str, filtered: Counts, unfiltered: Counts) -> None:
    """Add a filtered graph, whose name has no suffix, and the original, whose duplicate nodes leak test labels."""
    directed = _npz_form(f"{name}_filtered_directed", directed=True)
    _add_heterophilous(name, filtered, f"{name}_filtered", more=(directed,))
    directed = _npz_form(f"{name}_directed", directed=True)
    _add_heterophilous(f"{name}-unfiltered", unfiltered, name, protocol="geom-gcn", more=(directed,))


def _add_repacked(
    name: str,
    counts: Counts,
    protocol: str,
    source: str,
    licence: str,
    folder: str | None = None,
    read: Callable[[Sequence[Path]], RawGraph] = npz.read_graph,
) -> None:
    _add(name, counts, (protocol,), (Form((File(f"{folder or name}/{name}.npz"),), read),), source, licence)


def _add_attacked(name: str, counts: Counts) -> None:
    """Add a graph with poisoned edges, whose counts are those of the clean graph.

    It has no random splits: the attacks were made against the split of the file.
    """
    BENCHMARKS[f"attacked-{name}"] = DatasetSpec(
        f"attacked-{name}",
        "accuracy",
        ("pro-gnn",),
        *counts,
        source="github.com/danielzuegner/nettack, split and attacks github.com/ChandlerBang/Pro-GNN",
        licence="none stated",
        forms=(Form((File(f"attacked/{name}.npz"),), attacked.read_attacked),),
        attacks=attacked.ATTACKS,
    )


def _add_arxiv() -> None:
    files = tuple(_file(f"ogbn-arxiv/{f}", _ARXIV, f"arxiv/{f}") for f in (*ogb.STRUCTURE, ogb.FEATURES))
    forms: tuple[Form, ...] = (
        Form(files, ogb.read_ogb),
        Form(files[:-1], ogb.read_ogb, features=False),
        Form((File("incomplete/ogbn_arxiv_without_features.npz"),), ogb.read_structure, features=False),
    )
    forms += tuple(replace(form, directed=True) for form in forms)
    counts = (169_343, 1_157_799, 128, 40)
    _add("ogbn-arxiv", counts, ("year",), forms, "ogb.stanford.edu", "ODC-BY")


_add_planetoid("cora", (2_708, 5_278, 1_433, 7))
_add_planetoid("citeseer", (3_327, 4_552, 3_703, 6))
_add_planetoid("pubmed", (19_717, 44_324, 500, 3))
_add_arxiv()
_add_wikipedia("squirrel", filtered=(2_223, 46_998, 2_089, 5), unfiltered=(5_201, 198_353, 2_089, 5))
_add_wikipedia("chameleon", filtered=(890, 8_854, 2_325, 5), unfiltered=(2_277, 31_371, 2_325, 5))
_add_heterophilous("actor", (7_600, 26_659, 932, 5), protocol="geom-gcn")
_add_heterophilous(
    "roman-empire",
    (22_662, 32_927, 300, 18),
    more=(Form((File("incomplete/roman_empire_without_features.npz"),), npz.read_graph, features=False),),
)
_add_heterophilous("questions", (48_921, 153_540, 301, 2), metric="roc_auc")
_add_heterophilous("minesweeper", (10_000, 39_402, 7, 2), metric="roc_auc")
_add_heterophilous("tolokers", (11_758, 519_000, 10, 2), metric="roc_auc")
_add_heterophilous("amazon-ratings", (24_492, 93_050, 300, 5))
_add_heterophilous("texas", (183, 279, 1_703, 5), protocol="geom-gcn")
_add_heterophilous("cornell", (183, 277, 1_703, 5), protocol="geom-gcn")
_add_heterophilous("wisconsin", (251, 450, 1_703, 5), protocol="geom-gcn")
_SHCHUR = "github.com/EdisonLeeeee/GraphData, split github.com/cornell-zhang/Polynormer", "MIT (split: BSD-3-Clause)"
_add_repacked("amazon-computers", (13_752, 245_861, 767, 10), "fixed-60-20-20", *_SHCHUR)
_add_repacked(
    "coauthor-physics", (34_493, 247_962, 8_415, 5), "fixed-60-20-20", *_SHCHUR, read=npz.read_binary_features
)
_add_repacked(
    "github-musae",
    (37_700, 289_003, 4_005, 2),
    "random-60-20-20",
    "github.com/bkamins/JuliaForDataAnalysis (SNAP)",
    "MIT",
)
_add_repacked(
    "cornell5",
    (18_660, 790_777, 4_735, 2),
    "random-60-20-20",
    "github.com/CUAI/Non-Homophily-Large-Scale (Facebook100)",
    "none stated",
    folder="facebook100",
    read=npz.read_facebook,
)
_add_repacked("blogcatalog", (5_196, 171_743, 8_189, 6), "random-48-32-20", "github.com/EdisonLeeeee/GraphData", "MIT")
_add_attacked("cora", (2_485, 5_069, 1_433, 7))
_add_attacked("citeseer", (2_110, 3_668, 3_703, 6))
_add_attacked("polblogs", (1_222, 16_714, 1_222, 2))
