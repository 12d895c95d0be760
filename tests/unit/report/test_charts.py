"""Line charts from rows: which rows become points, lines and markers."""

import matplotlib.pyplot as plt
import pytest

from gumbel_mpnn.report.chart import Chart, draw_charts

CHART = Chart(
    x="k", y="test", series=("model",), x_label="number", y_label="accuracy, %", title="By number", paper="paper"
)
ROWS = [
    {"model": "a", "k": 2, "test": 20.0, "stderr": 2.0, "paper": None},
    {"model": "a", "k": 1, "test": 10.0, "stderr": 1.0, "paper": 15.0},
    {"model": "b", "k": 1, "test": 30.0, "stderr": 3.0, "paper": None},
    {"model": "b", "k": 2, "test": None, "stderr": None, "paper": None},
    {"model": "level", "k": None, "test": 12.0, "stderr": 1.0, "paper": None},
]


ONLY_B = Chart(x="k", y="test", series=("model",), x_label="", y_label="", title="", where={"model": ("b",)})


@pytest.fixture
def panels(tmp_path, monkeypatch):
    """The axes of every chart after drawing."""
    figures = []

    def draw(*charts, rows=ROWS):
        with monkeypatch.context() as patch:
            patch.setattr(plt, "close", figures.append)
            assert draw_charts(charts, rows, [tmp_path / "figure.png"])
        return figures[-1].axes

    yield draw
    for figure in figures:
        plt.close(figure)


@pytest.fixture
def drawn(panels):
    """The axes of one chart after drawing."""
    return lambda chart, rows=ROWS: panels(chart, rows=rows)[0]


def curves(axes):
    """The points of every curve by its name."""
    return {box.get_label(): [list(map(float, xy)) for xy in box.lines[0].get_xydata()] for box in axes.containers}


def test_a_curve_for_each_series_in_the_order_of_x(drawn):
    assert curves(drawn(CHART)) == {"a": [[1, 10], [2, 20]], "b": [[1, 30]]}


def test_bars_are_the_standard_error(drawn):
    (bars,) = drawn(CHART).containers[0].lines[2]
    assert [list(map(float, segment[:, 1])) for segment in bars.get_segments()] == [[9, 11], [18, 22]]


def test_a_row_without_x_is_a_horizontal_line(drawn):
    (level,) = [line for line in drawn(CHART).lines if line.get_label() == "level"]
    assert list(level.get_ydata()) == [12, 12]


def test_the_papers_values_are_where_they_were_printed(drawn):
    (paper,) = [line for line in drawn(CHART).lines if line.get_label() == "the paper"]
    assert paper.get_xydata().tolist() == [[1, 15]]


def test_titles_and_axes_say_what_is_shown(drawn):
    axes = drawn(CHART)
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == (
        "By number",
        "number",
        "accuracy, % (± std error)",
    )


def test_a_logarithmic_axis_has_room_for_zero(drawn):
    log = Chart(x="k", y="test", series=("model",), x_label="", y_label="", title="", log_x=True)
    rows = [{"model": "a", "k": k, "test": 1.0, "stderr": 0.0} for k in (0, 10, 1_000)]
    axes = drawn(log, rows)
    place = axes.transData.transform([(0, 1), (10, 1), (100, 1), (1_000, 1)])[:, 0]
    assert place[0] < place[1]
    assert place[2] - place[1] == pytest.approx(place[3] - place[2])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "10", "1,000"]


def test_only_the_rows_that_are_asked_for(drawn):
    assert curves(drawn(ONLY_B)) == {"b": [[1, 30]]}


def test_a_series_keeps_its_color_in_every_panel(panels):
    looks = [
        (box.get_label(), box.lines[0].get_color(), box.lines[0].get_marker())
        for axes in panels(CHART, ONLY_B)
        for box in axes.containers
    ]
    assert len(looks) == 3
    assert looks[1] == looks[2] != looks[0]


def test_curves_have_the_names_of_their_models(drawn):
    chart = Chart(x="k", y="test", series=("model", "preset"), x_label="", y_label="", title="")
    kinds = (("gumbel-mpnn", "robust"), ("my-own", ""))
    rows = [{"model": model, "preset": preset, "k": 1, "test": 1.0} for model, preset in kinds]
    assert list(curves(drawn(chart, rows))) == ["Gumbel-MPNN, robust", "my-own"]


def test_nothing_to_draw(tmp_path):
    assert not draw_charts([CHART], ROWS[3:4], [tmp_path / "figure.png"])
    assert not draw_charts([], ROWS, [tmp_path / "figure.png"])
    assert list(tmp_path.iterdir()) == []


def test_the_same_rows_give_the_same_files(tmp_path):
    contents = []
    for name in ("one", "two"):
        paths = [tmp_path / f"{name}.png", tmp_path / f"{name}.pdf"]
        draw_charts([CHART], ROWS, paths)
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]


def test_no_two_curves_look_alike(drawn):
    """The fault: from the eighth curve on, color and marker were those of the first."""
    rows = [{"model": f"model {k}", "k": 1, "test": float(k), "stderr": 1.0, "paper": None} for k in range(14)]
    lines = [box.lines[0] for box in drawn(CHART, rows).containers]
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == 14
