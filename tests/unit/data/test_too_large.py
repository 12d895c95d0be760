"""Files that would take minutes to read are refused in a moment."""

import pytest

from gumbel_mpnn._util.errors import DataError
from gumbel_mpnn.data import from_csv


def test_a_million_columns_are_told_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("gumbel_mpnn.data.csv_file._parse", lambda *_, **__: pytest.fail("the table was parsed"))
    path = tmp_path / "nodes.csv"
    columns = ",".join(f"f{k}" for k in range(1_000_000))
    path.write_text(f"id,class,{columns}\n" + f"a,b,{',' * 999_999}\n" * 2)
    with pytest.raises(DataError, match=r"has 1,000,002 columns, and at most 100,000 are read"):
        from_csv(path, label="class")


def test_a_hundred_thousand_classes_are_told_before_the_features_are_read(tmp_path, monkeypatch):
    path = tmp_path / "nodes.csv"
    path.write_text("id,class,x\n" + "".join(f"n{k},c{k},1.0\n" for k in range(100_000)))
    monkeypatch.setattr("gumbel_mpnn.data.tables.all_features", lambda *_: pytest.fail("features were read"))
    with pytest.raises(DataError, match=r"the label has 100,000 different values, and at most 10,000 classes"):
        from_csv(path, label="class")
