import numpy as np
import pytest
from cli_samples import QUICK, letor_text

import ranksieve as rs


@pytest.fixture
def files(tmp_path, run):
    for name, seed in (("a", 1), ("b", 2), ("valid", 3)):
        (tmp_path / f"{name}.letor").write_text(letor_text(20, seed))
    for name in ("a", "b"):
        assert run("train", tmp_path / f"{name}.letor", "--out", tmp_path / f"{name}.txt", *QUICK).code == 0
    run("train", tmp_path / "a.letor", "--out", tmp_path / "svm.json", "--algo", "ranksvm")
    return tmp_path


def test_combine_writes_one_forest_and_the_curve(run, files):
    done = run("combine", files / "a.txt", files / "b.txt", "--data", files / "valid.letor", "--out", files / "ab.txt",
               "--curve", files / "curve.tsv")  # fmt: skip
    assert done.code == 0, done.output
    assert "24 trees" in done.output and "best α" in done.output
    both, data = rs.load(files / "ab.txt"), rs.read(files / "valid.letor")
    assert both.n_trees == 24
    found = rs.combine(rs.load(files / "a.txt"), rs.load(files / "b.txt"), data)
    assert both.info["combination"]["alpha"] == found.alpha
    curve = np.loadtxt(files / "curve.tsv", skiprows=1, ndmin=2)
    np.testing.assert_allclose(curve[:, 2].max(), found.curve.values.max(), atol=1e-5)


def test_other_models_combine_and_interpolate(run, files):
    out = files / "blend.json"
    done = run("combine", files / "a.txt", files / "svm.json", "-d", files / "valid.letor", "-o", out, "--form",
               "additive", "--range", "0", "2", "-m", "map")  # fmt: skip
    assert done.code == 0, done.output
    assert run("evaluate", out, files / "a.txt", files / "valid.letor").code == 0
    described = run("describe", out).output
    assert "model 1 of 2" in described and "weight" in described
    done = run(
        "interpolate", files / "a.txt", files / "b.txt", files / "svm.json", "-d", files / "valid.letor", "-o", out
    )
    assert done.code == 0, done.output
    assert "ndcg@10 alone" in done.output and len(rs.load(out).models) == 3


def test_without_data_combine_writes_the_mean(run, files):
    paths = [files / "a.txt", files / "b.txt"]
    done = run("combine", *paths, "--out", files / "mean.txt")
    assert done.code == 0, done.output
    assert "24 trees" in done.output and "0.5, 0.5" in done.output
    data = rs.read(files / "valid.letor")
    scores = [rs.load(path).predict(data) for path in paths]
    np.testing.assert_allclose(rs.load(files / "mean.txt").predict(data), np.mean(scores, axis=0), atol=1e-12)
    done = run("combine", *paths, files / "svm.json", "--weights", "1,0.5,2", "--out", files / "sum.json")
    assert done.code == 0, done.output
    expected = scores[0] + 0.5 * scores[1] + 2 * rs.load(files / "svm.json").predict(data)
    np.testing.assert_allclose(rs.load(files / "sum.json").predict(data), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--weights", "1,x"], "--weights is '1,x'; expected numbers separated by commas"),
        (["--weights", "1"], "expected 2 finite numbers"),
        (["--curve", "curve.tsv"], "need --data"),
    ],
)
def test_a_mean_with_wrong_options_is_refused(run, files, monkeypatch, more, message):
    monkeypatch.chdir(files)
    done = run("combine", "a.txt", "b.txt", "--out", "mean.txt", *more)
    assert done.code == 2 and message in done.output
    assert not (files / "mean.txt").exists()


def test_the_best_weights_are_for_two_models(run, files):
    paths = [files / "a.txt", files / "b.txt", files / "svm.json"]
    done = run("combine", *paths, "--data", files / "valid.letor", "--out", files / "abc.json")
    assert done.code == 2 and "use ranksieve interpolate" in done.output


def test_refit_raises_the_metric(run, files):
    out = files / "refitted.txt"
    done = run("refit", files / "a.txt", "--data", files / "a.letor", "--out", out, "--range", "0", "3")
    assert done.code == 0, done.output
    assert "before" in done.output
    values = rs.load(out).info["refit"]["values"]
    assert values == sorted(values)
    narrow = files / "narrow.letor"  # text does not name features that are absent throughout
    first, *lines = (line.split(" 5:")[0] for line in (files / "a.letor").read_text().splitlines())
    narrow.write_text("\n".join((first.split(" 4:")[0], *lines, "")))
    assert run("refit", files / "a.txt", "--data", narrow, "--out", out).code == 0


def test_init_takes_files_and_features(run, files):
    out = files / "adapted.txt"
    args = ("train", files / "b.letor", "--valid", files / "valid.letor", "--out", out, *QUICK, "--row-fraction", "0.7")
    assert run(*args, "--init", files / "a.txt").code == 0
    assert rs.load(out).info["init"]["trees"] == 12
    rate = args.index("--learning-rate")  # of shrinkage alone
    steps = ("--objective", "map", "--step", "optimal", "--step-range", "0.1", "2")
    assert run(*args[:rate], *args[rate + 2 :], "--init", "f1", *steps).code == 0
    assert rs.load(out).models[0].weights[0] == 1.0
    done = run(*args, "--init", "nothing.txt")
    assert done.code == 2 and "neither a model file nor a feature" in done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--range", "1", "0"], "smaller one first"),
        (["--form", "round"], "convex, additive"),
        (["--metric", "ndcg@0"], "the cut-off of 'ndcg@0' is"),
    ],
)
def test_bad_input_is_one_line(run, files, options, message):
    out = files / "never.txt"
    done = run("combine", files / "a.txt", files / "b.txt", "-d", files / "valid.letor", "-o", out, *options)
    assert done.code == 2 and message in done.output and not out.exists()


@pytest.mark.parametrize("command", ["combine", "interpolate"])
def test_absent_features_are_read_as_in_training(run, files, command):
    nan, out = files / "nan.txt", files / "both.txt"
    assert run("train", files / "a.letor", "--out", nan, *QUICK, "--missing", "nan").code == 0
    args = (command, files / "a.txt", nan, "-d", files / "valid.letor", "-o", out)
    refused = run(*args)
    assert refused.code == 2 and "--missing" in refused.output and not out.exists()
    assert run(*args, "--missing", "nan").code == 0
    assert rs.load(out).info["missing"] == "nan"
