import pytest

from gumbel_mpnn._util.errors import UnknownNameError
from gumbel_mpnn.data import get_spec, specs
from gumbel_mpnn.data.benchmarks import BENCHMARKS

NAMES = [
    "cora",
    "citeseer",
    "pubmed",
    "ogbn-arxiv",
    "squirrel",
    "chameleon",
    "squirrel-unfiltered",
    "chameleon-unfiltered",
    "actor",
    "roman-empire",
    "questions",
    "minesweeper",
    "tolokers",
    "amazon-ratings",
    "texas",
    "cornell",
    "wisconsin",
    "amazon-computers",
    "coauthor-physics",
    "github-musae",
    "cornell5",
    "blogcatalog",
]
ATTACKED = ["attacked-cora", "attacked-citeseer", "attacked-polblogs"]


def test_every_name_is_there():
    assert sorted(BENCHMARKS) == sorted(NAMES + ATTACKED)
    assert all(spec.name == name for name, spec in BENCHMARKS.items())


def test_roc_auc_for_three_and_accuracy_for_the_rest():
    assert {name for name in specs if specs[name].metric == "roc_auc"} == {"minesweeper", "tolokers", "questions"}
    assert {spec.metric for spec in specs.values()} == {"roc_auc", "accuracy"}


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("cora", "geom-gcn"),
        ("squirrel-unfiltered", "geom-gcn"),
        ("actor", "geom-gcn"),
        ("squirrel", "heterophilous"),
        ("questions", "heterophilous"),
        ("ogbn-arxiv", "year"),
        ("coauthor-physics", "fixed-60-20-20"),
        ("cornell5", "random-60-20-20"),
        ("blogcatalog", "random-48-32-20"),
        ("attacked-cora", "pro-gnn"),
    ],
)
def test_default_protocols(name, protocol):
    assert get_spec(name).protocol(None) == protocol


@pytest.mark.parametrize("name", NAMES)
def test_every_data_set_takes_the_random_protocols(name):
    assert {"per-class-20-30", "random-48-32-20", "random-60-20-20"} <= set(specs[name].protocols)
    assert ("public" in specs[name].protocols) == (name in ("cora", "citeseer", "pubmed"))


@pytest.mark.parametrize("name", ATTACKED)
def test_attacked_graphs_have_the_split_that_was_attacked_and_no_other(name):
    assert specs[name].protocols == ("pro-gnn",)
    assert len(specs[name].attacks) == 10


@pytest.mark.parametrize("spelling", ["Roman_Empire", "ROMAN-EMPIRE", "roman_empire"])
def test_spelling_does_not_matter(spelling):
    assert get_spec(spelling).name == "roman-empire"


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="no data set called 'coar': did you mean 'cora'"):
        get_spec("coar")


def test_an_unknown_protocol_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="protocol of 'cora' called 'geomgcn': did you mean 'geom-gcn'"):
        get_spec("cora").protocol("geomgcn")


def test_the_plain_wikipedia_names_are_the_filtered_files():
    assert get_spec("squirrel").forms[0].files[0].path == "heterophilous/squirrel_filtered.npz"
    assert get_spec("squirrel-unfiltered").forms[0].files[0].path == "heterophilous/squirrel.npz"
    assert get_spec("chameleon").forms[1].files[0].path == "heterophilous/chameleon_filtered_directed.npz"


def test_every_file_on_github_has_a_checksum():
    files = {file for spec in BENCHMARKS.values() for form in spec.forms for file in form.files}
    files |= {file for spec in BENCHMARKS.values() for file in spec.split_files}
    on_github = {file for file in files if file.url and "github" in file.url}
    assert len(on_github) == 17 + 3 * 7 + 3 * 10
    assert all(file.sha256 and len(file.sha256) == 64 for file in on_github)


def test_what_was_repacked_has_no_public_original():
    for name in ("amazon-computers", "coauthor-physics", "github-musae", "cornell5", "blogcatalog", *ATTACKED):
        assert [file.url for form in specs[name].forms for file in form.files] == [None]
