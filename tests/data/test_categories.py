"""Categories in data: the same numbers from every kind of table, names kept, missing and unknown ones defined."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import ranksieve as rs
from ranksieve.data.binned import bin_data, bin_like
from ranksieve.data.joined import JoinedSource, Piece
from ranksieve.data.letor import write_letor
from ranksieve.data.parquet import write_parquet
from ranksieve.data.read import open_data, read_like, read_source
from ranksieve.errors import DataError, RanksieveWarning

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

BRANDS = ["z", "a", None, "z", "ü b", ""]
COLUMNS = {"label": [1, 0, 2, 0, 1, 0], "qid": [1, 1, 1, 2, 2, 2], "price": [1.5, 2, 3, 4, 5, 6], "brand": BRANDS}
NUMBERS = [0.0, 1.0, np.nan, 0.0, 2.0, np.nan]
TABLES = {
    "pandas": pd.DataFrame,
    "pandas categories": lambda columns: pd.DataFrame(columns).assign(
        brand=pd.Categorical([one or None for one in BRANDS], categories=["z", "a", "ü b"])
    ),
    "polars": pl.DataFrame,
    "polars categories": lambda columns: pl.DataFrame(columns).with_columns(pl.col("brand").cast(pl.Categorical)),
    "arrow": pa.table,
    "arrow dictionary": lambda columns: pa.table(
        {**columns, "brand": pa.array([one or None for one in BRANDS]).dictionary_encode()}
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same_numbers(kind):
    given = TABLES[kind](COLUMNS)
    named = {} if "categories" in kind or "dictionary" in kind else {"categorical": ["br*"]}
    data = rs.read(given, **named)
    np.testing.assert_array_equal(data.features[:, 1], NUMBERS)
    names = [name for name in data.categories["brand"] if name]
    assert names == ["z", "a", "ü b"] and data.feature_names == ("price", "brand")
    features = rs.DataFile(TABLES[kind]({"price": COLUMNS["price"], "brand": BRANDS}), **named)
    made = rs.Dataset.from_arrays(features, COLUMNS["label"], COLUMNS["qid"])
    np.testing.assert_array_equal(made.features, data.features)
    assert made.info.categorical.tolist() == [1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files(tmp_path, ending):
    path = tmp_path / f"data.{ending}"
    frame = pd.DataFrame(COLUMNS)
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    with pytest.raises(DataError, match="categorical='brand'"):
        rs.read(path, ignore="price") if ending == "parquet" else rs.read(path)
    data = rs.read(path, categorical="brand")
    np.testing.assert_array_equal(data.features[:, 1], NUMBERS)
    assert bin_data(rs.DataFile(path, categorical="brand")).categories == {"brand": ["z", "a", "ü b"]}
    with pytest.raises(
        DataError, match=r"no feature is named 'brands', .*; did you mean 'brand'. it has: price, brand"
    ):
        rs.read(path, categorical="brands")


def test_parquet_keeps_names_and_letor_refuses_them(tmp_path):
    data = rs.read(pd.DataFrame({**COLUMNS, "code": [3, 0, 3, 1, 1, 0]}), categorical="brand,code")
    assert data.categories == {"brand": ["z", "a", "ü b"], "code": []}
    write_parquet(data, tmp_path / "packed.parquet")
    back = rs.read(tmp_path / "packed.parquet")
    np.testing.assert_array_equal(back.features, data.features)
    assert back.categories == data.categories
    pd.DataFrame(COLUMNS).to_csv(tmp_path / "data.csv", index=False)
    source = open_data(rs.DataFile(tmp_path / "data.csv", categorical="brand"))  # not read yet
    for given in (data, source):
        with pytest.raises(DataError, match="'brand' has names of categories, which LETOR text cannot hold"):
            write_letor(given, tmp_path / "data.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "packed.parquet"]


def test_an_ignored_column_of_parquet_has_no_categories(tmp_path):
    data = rs.read(pd.DataFrame({**COLUMNS, "code": [3, 0, 3, 1, 1, 0]}), categorical="brand,code")
    write_parquet(data, tmp_path / "packed.parquet")
    assert rs.read(tmp_path / "packed.parquet", ignore="brand,code").categories == {}
    file = rs.DataFile(tmp_path / "packed.parquet", ignore="brand,code")
    assert rs.train(file, algo="ranksvm", verbose=False).feature_names == ("price",)


def test_letor_text_has_numbers(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:1 1:0.5 2:3\n0 qid:1 1:0.1\n2 qid:2 2:3 3:1\n0 qid:2 2:7\n")
    binned = bin_data(rs.DataFile(path, categorical="f2-3"))
    assert {feature: codes.tolist() for feature, codes in binned.binning.codes.items()} == {1: [3, 0, 7], 2: [0, 1]}
    with pytest.raises(DataError, match="features of LETOR text have numbers, as in '3,7-9'"):
        rs.read(path, categorical="brand")
    for use in (rs.read, bin_data, lambda file: rs.train(file, trees=1, min_docs=1, verbose=False)):
        with pytest.raises(
            DataError, match=r"no feature is named 'f30', .*categorical; there are 3 features, f1 to f3"
        ):
            use(rs.DataFile(path, categorical="2,30"))
    for wrong in ("1-999999999", "3-2"):
        with pytest.raises(
            DataError, match=f"'{wrong}' is given as categorical; expected numbers of features from 1 to 1"
        ):
            rs.read(path, categorical=wrong)


def test_validation_text_may_leave_out_the_last_categorical_feature(tmp_path):
    (tmp_path / "train.txt").write_text("1 qid:1 1:0.5 2:3\n0 qid:1 1:0.1\n2 qid:2 2:3 3:1\n0 qid:2 2:7\n")
    (tmp_path / "valid.txt").write_text("1 qid:4 1:0.5 2:7\n0 qid:4 1:0.1\n0 qid:8 2:3\n")
    train = bin_data(rs.DataFile(tmp_path / "train.txt", categorical="2,3"))
    with pytest.warns(rs.errors.RanksieveWarning, match="no feature beyond 2 occurs"):
        valid = bin_like(rs.DataFile(tmp_path / "valid.txt", categorical="2,3"), train)
    column = int(np.flatnonzero(train.binning.features == 1)[0])
    assert valid.bins[:, column].tolist() == [2, 1, 0]


@pytest.mark.parametrize("wrong", [-0.5, 1.5, 2.0**24])
def test_validation_data_holds_whole_numbers_too(wrong):
    train = bin_data(
        rs.Dataset.from_arrays([[0.0], [1.0], [-1.0]], [1, 0, 0], group=[1, 2]).with_features(categorical="f1")
    )
    assert train.bins[:, 0].tolist() == [0, 1, 255]
    data = rs.Dataset.from_arrays([[0.0], [1.0], [wrong]], [1, 0, 0], group=[1, 2]).with_features(categorical="f1")
    for use in (bin_data, lambda given: bin_like(given, train)):
        with pytest.raises(DataError, match=r"feature 'f1' is categorical and holds .*; expected integers from 0 to"):
            use(data)


def test_texts_in_memory_are_to_be_dropped():
    frame = pd.DataFrame({"price": COLUMNS["price"], "brand": BRANDS})
    for use in (rs.Dataset.from_arrays, rs.Ranker().fit):
        with pytest.raises(DataError) as caught:
            use(frame, COLUMNS["label"], qid=COLUMNS["qid"])
        assert str(caught.value).endswith(
            "; drop it, or use its categories with categorical='brand' of Ranker.fit or of DataFile(table, …)"
        )


def test_validation_data_has_the_numbers_of_the_training_data():
    train = rs.read(pd.DataFrame(COLUMNS), categorical="brand")
    other = pd.DataFrame({**COLUMNS, "brand": ["new", "ü b", "z", "a", None, "a"]})
    expected = [255, 2, 0, 1, 255, 1]
    binned = bin_data(train)
    column = int(np.flatnonzero(binned.binning.features == 1)[0])
    assert binned.binning.codes[1].tolist() == [0, 1, 2]
    for given in (other, rs.read(other, categorical="brand"), other[["brand", "qid", "price", "label"]]):
        assert bin_like(given, binned).bins[:, column].tolist() == expected
    numbers = rs.read(pd.DataFrame({**COLUMNS, "brand": range(6)}))
    with pytest.raises(DataError, match="'brand' is categorical here, but was not in training"):
        bin_like(train, bin_data(numbers))
    with pytest.raises(DataError, match=r"column 'brand' holds text; expected numbers"):
        bin_like(other, bin_data(numbers))


def test_bins_and_open_files_with_other_numbers_are_refused(tmp_path):
    train = rs.read(pd.DataFrame(COLUMNS), categorical="brand")
    other = pd.DataFrame({**COLUMNS, "brand": ["a", "z", "ü b", "a", None, "new"]})
    other.to_csv(tmp_path / "other.csv", index=False)
    binned, file = bin_data(train), rs.DataFile(tmp_path / "other.csv", categorical="brand")
    bins = bin_data(rs.read(other, categorical="brand"), binning=binned.binning)
    for use in (lambda: bin_like(bins, binned), lambda: bin_like(open_data(file), binned),
                lambda: read_like(open_data(file), train)):  # fmt: skip
        with pytest.raises(DataError, match="the categories of 'brand' have other codes than in training"):
            use()
    np.testing.assert_array_equal(read_like(file, train).features[:, 1], [1, 0, 2, 1, np.nan, np.nan])
    assert bin_like(binned, binned) is binned


def test_parts_that_are_read_as_one_share_their_numbers(tmp_path):
    for number, brands in enumerate((["a", "b", "a"], ["c", "a", "b"])):
        part = {"label": [0, 1, 0], "qid": [number] * 3, "brand": brands, "x": [1.0, 2.0, 3.0]}
        pd.DataFrame(part).to_csv(tmp_path / f"{number}.csv", index=False)
    files = [rs.DataFile(tmp_path / f"{number}.csv", categorical="brand") for number in range(2)]
    joined = JoinedSource([Piece(file) for file in files])
    assert read_source(joined).features[:, 0].tolist() == [0, 1, 0, 2, 0, 1]
    sets = [rs.read(file) for file in files]
    with pytest.raises(DataError, match="different categories; read all of them together"):
        JoinedSource([Piece(one) for one in sets])


def test_rows_and_queries_keep_their_categories():
    data = rs.read(pd.DataFrame(COLUMNS), categorical="brand")
    assert data.take_queries([1]).categories == data.categories
    opened = open_data(data, wanted=("brand", "price"), categories=data.categories)
    np.testing.assert_array_equal(opened.features[:, 0], NUMBERS)
    assert dataclasses.replace(data.info, categories={}).for_model().get("categories") is None


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "parquet"])
def test_lists_become_features_of_0_and_1(kind, tmp_path):
    genres = [["war", "drama"], None, ["drama"], [], ["love", None], ["drama", "war"]]
    columns = {"label": [1, 0, 2, 0, 1, 0], "qid": [1, 1, 1, 2, 2, 2], "price": [1.5, 2, 3, 4, 5, 6], "genres": genres}
    table = TABLES["arrow" if kind == "parquet" else kind](columns)
    given = table
    if kind == "parquet":
        given = tmp_path / "data.parquet"
        pa.parquet.write_table(table, given)
    with pytest.raises(DataError, match="column 'genres' holds lists; expected numbers; leave it out"):
        rs.read(given)
    data = rs.read(given, categorical="gen*")
    assert data.feature_names == ("price", "genres=drama", "genres=war", "genres=love") and not data.categories
    expected = [[1, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1], [1, 1, 0]]
    np.testing.assert_array_equal(data.features[:, 1:], expected)
    names = ("genres=war", "price", "genres=drama")
    again = open_data(given, wanted=names, categories={})
    np.testing.assert_array_equal(read_source(again).features, data.features[:, [2, 0, 1]])
    if kind != "parquet":
        model = rs.train(data, algo="lambdamart", trees=2, leaves=2, min_docs=1, verbose=False)
        assert model.predict(table).tobytes() == model.predict(data).tobytes()


def test_columns_in_which_every_value_is_missing(tmp_path):
    """Such a column has no type of its own: it may lack numbers, texts or lists."""
    genres = [["war"], ["drama"], ["war", "drama"], [], ["war"], []]
    columns = {"label": [1, 0, 2, 0, 1, 0], "qid": [1, 1, 1, 2, 2, 2], "price": [1.5, 2, 3, 4, 5, 6], "genres": genres}
    train = rs.read(pd.DataFrame({**columns, "brand": ["a", "b", "a", "c", "b", "c"]}), categorical="brand,genres")
    model = rs.train(train, algo="lambdamart", trees=2, leaves=2, min_docs=1, verbose=False)
    given = {"label": [0, 1], "qid": [1, 1], "price": [1.5, 2.0], "brand": ["a", "c"], "genres": [["war"], ["drama"]]}
    names, columns = model.feature_names, ("price", "brand", "genres")
    missing = {"price": np.nan, "brand": np.nan, "genres=war": 0.0, "genres=drama": 0.0}
    for column in columns:
        full = read_source(open_data(TABLES["arrow"](given), wanted=names, categories=model.categories)).features
        expected = full.copy()
        for number, name in enumerate(names):
            if name.partition("=")[0] == column:
                expected[:, number] = missing[name]
        nothing = given | {column: [None, None]}
        tables = [TABLES[kind](nothing) for kind in ("pandas", "polars", "arrow")]
        tables.append(TABLES["pandas"](given | {column: [np.nan, np.nan]}))
        pa.parquet.write_table(tables[2], tmp_path / "data.parquet")
        for table in (*tables, tmp_path / "data.parquet"):
            found = read_source(open_data(table, wanted=names, categories=model.categories)).features
            np.testing.assert_array_equal(found, expected)
        for table in tables:
            np.testing.assert_array_equal(model.predict(table), model.predict(tables[2]))
    with pytest.raises(DataError, match="row 0: column 'label' is null"):
        rs.read(pa.table({"label": [None], "qid": [1], "price": [1.0]}))


@pytest.mark.parametrize("brands", [["Z", "A", None, "Z", "a", "B"], [1, 2, 3, 4, 5, 6]])
def test_a_warning_tells_of_categories_that_the_model_does_not_have(brands, tmp_path):
    train = rs.read(pd.DataFrame(COLUMNS), categorical="brand")
    model = rs.train(train, trees=1, leaves=2, min_docs=1, algo="lambdamart")
    other = pd.DataFrame({**COLUMNS, "brand": brands})
    path = tmp_path / "other.csv"
    other.to_csv(path, index=False)
    given = sum(brand is not None for brand in brands)
    unknown = sum(brand not in (None, "a") for brand in brands)
    values = rf": brand: {unknown} of {given} values are not categories of the model \({brands[0]}, {brands[1]}, "
    for use in (
        lambda: rs.evaluate(model, other),
        lambda: rs.evaluate(model, path),
        lambda: model.predict(other),
        lambda: model.predict(
            rs.read(other.assign(brand=pd.array([one and str(one) for one in brands], "string")), categorical="brand")
        ),
    ):
        with pytest.warns(RanksieveWarning, match=values) as caught:
            use()
        assert len(caught) == 1
        assert str(caught[0].message).endswith("; they are treated as missing")
        assert caught[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_a_few_unknown_categories_and_missing_ones_are_no_warning():
    train = rs.read(pd.DataFrame(COLUMNS), categorical="brand")
    model = rs.train(train, trees=1, leaves=2, min_docs=1, algo="lambdamart")
    for brands in (["z", "a", "new", "other", None, ""], [None] * 6):
        other = pd.DataFrame({**COLUMNS, "brand": pd.array(brands, dtype="string")})
        assert len(model.predict(other)) == len(model.predict(rs.read(other, categorical="brand"))) == 6
