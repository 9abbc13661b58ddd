"""What is in a page, for every family and shape of data, and what happens when it cannot be written."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from examples import FAMILIES, SHAPES, example

import subchain
from subchain import (
    CVI,
    EM,
    HDP,
    HMM,
    SVI,
    VI,
    Beam,
    Bernoulli,
    Buffer,
    Categorical,
    Dirichlet,
    Gaussian,
    Gibbs,
    Product,
    Sequences,
    Vocabulary,
    as_sequences,
)
from subchain.errors import InputError, NotFittedError

pytestmark = pytest.mark.filterwarnings("ignore")
SYMBOLS = np.array([0, 0, 0, 1, 1, 1, 2, 2] * 60)


def contents(page: str) -> dict:
    """What the scripts of a page draw from."""
    found = re.search(r'<script type="application/json" id="contents">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def python_of(page: str) -> str:
    """The call that a page shows."""
    return html.unescape(re.search(r"<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)[1])


def written(model: HMM, x: object, folder: Path, **settings: object) -> str:
    subchain.report(model, x, folder / "report.html", **settings)
    return (folder / "report.html").read_text(encoding="utf8")


@pytest.mark.parametrize("shape", ["one sequence", "ragged", "missing", "one observation"])
@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_family_and_shape_has_a_page_with_all_its_states(family, shape, tmp_path) -> None:
    emission, data = example(family, "ragged")
    model = HMM(3, emission, inference=VI(max_iter=4), random_state=0).fit(data)
    page = contents(written(model, example(family, shape)[1], tmp_path))
    assert sorted(page["order"]) == list(range(len(page["states"])))
    assert sum(state["occupancy"] for state in page["states"]) == pytest.approx(1.0, abs=1e-4)
    assert sum(track["length"] for track in page["timeline"]["tracks"]) == sum(SHAPES[shape])


@pytest.mark.parametrize(
    ("inference", "transition"),
    [
        (EM(max_iter=5), None),
        (CVI(max_iter=5), HDP()),
        (VI(max_iter=5), HDP(construction="sticks")),
        (Gibbs(n_samples=20, burn_in=10, n_chains=2), None),
        (Beam(n_samples=20, burn_in=10, n_chains=2), HDP()),
    ],
    ids=["EM", "collapsed", "sticks", "Gibbs", "Beam"],
)
def test_every_kind_of_inference_has_a_page(inference, transition, tmp_path) -> None:
    model = HMM(5, "categorical", transition=transition, inference=inference, random_state=0).fit(SYMBOLS)
    page = written(model, SYMBOLS, tmp_path)
    assert ("R-hat" in page) == (model.samples_ is not None)
    assert contents(page)["course"]["charts"]


def test_a_model_by_hand_has_a_page_without_intervals_or_convergence(tmp_path) -> None:
    emission = Categorical.from_parameters([[0.9, 0.1], [0.2, 0.8]])
    model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emission)
    page = written(model, [0, 0, 1, 1, 1], tmp_path)
    assert "were given, not fitted" in page
    assert "There are no intervals" in page


def test_states_without_data_are_left_out_with_a_note(tmp_path) -> None:
    model = HMM(12, "categorical", transition=HDP(), inference=CVI(max_iter=20), random_state=0).fit(SYMBOLS)
    page = written(model, SYMBOLS, tmp_path)
    n_shown = len(contents(page)["states"])
    assert 1 <= n_shown < 12
    assert f"{12 - n_shown} states are left out" in page


def test_what_comes_from_data_is_escaped(tmp_path) -> None:
    evil = "<script>alert(1)</script>"
    data = Sequences(SYMBOLS, names=[evil], vocabulary=Vocabulary([evil, "</style>", "b&c"]))
    model = HMM(3, "categorical", inference=VI(max_iter=3), random_state=0).fit(data)
    model.state_names_ = [evil, "<b>", "c"]
    page = written(model, data, tmp_path, title=evil)
    assert evil not in page
    assert page.count("<script") == page.count("</script>") == 12  # the contents, and the page's own eleven
    assert "</style>" in page
    assert page.count("</style>") == 1


def test_a_page_names_no_address_outside_itself(tmp_path) -> None:
    page = written(HMM(2, "categorical", random_state=0).fit(SYMBOLS), SYMBOLS, tmp_path)
    assert set(re.findall(r"https?://[^\s\"']+", page)) <= {"http://www.w3.org/2000/svg"}  # a namespace
    assert not re.search(r"(src|href)=[\"'](?!#)", page)


def test_a_loaded_model_gives_the_same_page(tmp_path) -> None:
    model = HMM(3, "categorical", random_state=0).fit(SYMBOLS)
    model.save(tmp_path / "model")
    pages = [written(one, SYMBOLS, tmp_path) for one in (model, HMM.load(tmp_path / "model"))]
    first, second = (re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", page) for page in pages)
    assert first == second


def test_the_call_in_a_page_runs_and_makes_the_same_model(tmp_path) -> None:
    model = HMM(3, "categorical", transition=HDP(concentration=2.0), inference=VI(max_iter=5), random_state=3)
    model.fit(SYMBOLS)
    page = written(model, SYMBOLS, tmp_path)
    names = {"x": SYMBOLS}
    exec(python_of(page).replace("report.html", str(tmp_path / "again.html")), names)
    np.testing.assert_array_equal(names["model"].transition_, model.transition_)


def test_the_call_in_a_page_is_whole_however_long(tmp_path) -> None:
    inference = SVI(length=20, batch=5, boundary=Buffer(4), max_passes=2, report_every=7, average=True)
    transition = Dirichlet(concentration=np.array([[2.0, 1.0], [0.25, 3.0]]))
    model = HMM(2, "categorical", transition, inference, random_state=0).fit(SYMBOLS)
    code = python_of(written(model, SYMBOLS, tmp_path, step=0.5, unit="s", offset=3))
    assert "…" not in code
    names = {"x": SYMBOLS}
    exec(code.replace("report.html", str(tmp_path / "again.html")), names)
    np.testing.assert_array_equal(names["model"].transition_, model.transition_)
    assert contents((tmp_path / "again.html").read_text())["positions"]["offset"] == 3


def test_a_run_that_began_from_a_fitted_model_is_told(tmp_path) -> None:
    start = HMM(2, "categorical", inference=SVI(length=20, batch=5, max_passes=1), random_state=5).fit(SYMBOLS)
    model = HMM(2, "categorical", inference=VI(max_iter=5), init=start, random_state=0).fit(SYMBOLS)
    code = python_of(written(model, SYMBOLS, tmp_path))
    assert "# The run started from the parameters of another model" in code
    assert repr(start.inference) in code
    with pytest.raises(NameError, match="start"):
        exec(code, {"x": SYMBOLS})
    names = {"x": SYMBOLS, "start": start}
    exec(code.replace("report.html", str(tmp_path / "again.html")), names)
    np.testing.assert_array_equal(names["model"].transition_, model.transition_)


def test_what_a_page_cannot_do_again_is_a_comment(tmp_path) -> None:
    by_hand = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Categorical.from_parameters([[0.9, 0.1]] * 2))
    assert "model.fit" not in python_of(written(by_hand, [0, 0, 1], tmp_path))
    batches = HMM(2, "categorical", random_state=0).partial_fit(SYMBOLS).partial_fit(SYMBOLS)
    page = written(batches, SYMBOLS, tmp_path)
    assert "# It was fitted to 2 batches" in python_of(page)
    assert "fitted batch by batch" in page
    watched = HMM(2, "categorical", random_state=0).fit(SYMBOLS, validation=SYMBOLS[:40])
    assert "give the same validation=..." in python_of(written(watched, SYMBOLS, tmp_path))


def test_names_of_columns_stay_apart_on_cards(tmp_path) -> None:
    names = ["H3K4me1", "H3K4me2", "a_very_long_name_of_a_mark_1", "a_very_long_name_of_a_mark_2"]
    data = Sequences(np.random.default_rng(0).integers(0, 2, (200, 4)).astype(np.uint8), columns=names)
    page = written(HMM(2, "bernoulli", random_state=0).fit(data), data, tmp_path)
    labels = re.findall(r'<tr title="(.*?): [^"]*"><th scope="row">(.*?)</th>', page)[:4]
    assert [name for name, _ in labels] == names
    assert [label for _, label in labels[:2]] == names[:2]
    assert len({label for _, label in labels}) == 4
    assert "share of positions where present" in page


def test_numbers_and_chances_have_tables_of_their_own(tmp_path) -> None:
    rng = np.random.default_rng(0)
    data = Sequences(np.column_stack([rng.normal(size=200), rng.integers(0, 2, 200)]), columns=["speed", "asleep"])
    emission = Product(speed=Gaussian(columns=["speed"]), asleep=Bernoulli(columns=["asleep"]))
    page = written(HMM(2, emission, random_state=0).fit(data), data, tmp_path)
    captions = re.findall("<caption>(.*?)</caption>", page)
    assert captions[:2] == ["mean ± standard deviation", "share of positions where present"]


def test_positions_have_units_everywhere(tmp_path) -> None:
    model = HMM(2, "categorical", random_state=0).fit(SYMBOLS)
    page = written(model, SYMBOLS, tmp_path, step=200, unit="bp", offset=1000)
    assert contents(page)["positions"] == {
        "step": 200.0, "unit": "bp", "offset": 1000.0, "digits": 0, "plain": False,
        "larger": [["Gb", 1e9], ["Mb", 1e6], ["kb", 1e3]],
    }  # fmt: skip
    assert re.search(r"<dt>lasts</dt><dd>[\d.]+ positions? \([\d.,]+\xa0(bp|kb)\)", page)
    assert re.search(r"longest [\d.,]+\xa0(bp|kb)", page)


@pytest.mark.parametrize(("n", "borders"), [(1, 1), (3, 3), (24, 24), (25, 0)])
def test_borders_of_few_sequences_are_kept(n, borders, tmp_path) -> None:
    data = as_sequences([SYMBOLS[:20]] * n)
    page = written(HMM(2, "categorical", inference=VI(max_iter=2), random_state=0).fit(data), data, tmp_path)
    assert contents(page)["sequences"] == [[str(i), 20 * i] for i in range(borders)]
    assert page.count('class="border"') == (2 if borders > 1 else 0)


def test_changes_on_cards_are_counted_in_the_data(tmp_path) -> None:
    emission = Categorical.from_parameters(np.eye(4))
    chain = [[0.98, 0.015, 0.004, 0.001], [0.3, 0.4, 0.2, 0.1], [0.9, 0.05, 0.05, 0.0], [0.0, 0.0, 0.0, 1.0]]
    model = HMM.from_parameters([0.5, 0.2, 0.2, 0.1], chain, emission)
    page = written(model, [[0, 0, 1, 0, 2, 0, 2, 0, 2, 2], [3, 3], [2, 2]], tmp_path)
    left = [re.sub("<.*?>", "", text) for text in re.findall(r"left for (.*?)</p>", page, re.DOTALL)]
    assert left == ["2 (75 % of 4 times), 1 (25 %)", "0 (100 % of 1 time)", "0 (100 % of 2 times)"]
    assert "never left: the model gives it no way out" in page
    assert "for ever: never left" in page
    assert page.count("never entered from another state in these data") == 1


def test_a_state_that_is_not_left_in_these_data_says_so(tmp_path) -> None:
    model = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Categorical.from_parameters(np.eye(2)))
    page = written(model, [[0, 0, 0], [0, 1, 1]], tmp_path)
    assert page.count("never left in these data") == 1
    assert page.count("10 positions by the model") == 2


def test_scores_say_which_data_they_are_of(tmp_path) -> None:
    model = HMM(2, "categorical", random_state=0).fit(SYMBOLS, validation=SYMBOLS[:40])
    page = written(model, SYMBOLS, tmp_path)
    assert "in-sample: as many observations as the model was fitted to" in page
    assert "held-out log likelihood" in page
    assert "per observation of the validation data, not fitted" in page
    assert "not in-sample: the model was fitted to 480 observations" in written(model, SYMBOLS[:100], tmp_path)
    known = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], Categorical.from_parameters(np.eye(2)))
    assert "the parameters were given" in written(known, [0, 1], tmp_path)


def test_track_labels_have_the_range_of_the_data(tmp_path) -> None:
    x = np.random.default_rng(0).normal(size=2_000)
    x[[100, 900]] = [-50.0, 400.0]
    page = written(HMM(2, "gaussian", random_state=0).fit(x), x, tmp_path)
    (column,) = contents(page)["timeline"]["columns"]
    assert column["range"] == [-50.0, 400.0]
    assert column["high"] < 10.0  # the outliers do not flatten the rest


def test_the_title_is_the_name_of_the_data(tmp_path) -> None:
    model = HMM(2, "categorical", random_state=0).fit(SYMBOLS)
    np.save(tmp_path / "heart-beats.npy", SYMBOLS)
    for data, title in (
        (tmp_path / "heart-beats.npy", "heart-beats"),
        (Sequences(SYMBOLS, names=["patient 7"]), "patient 7"),
        (SYMBOLS, "Hidden Markov model with 2 states"),
    ):
        assert f"<h1>{title}</h1>" in written(model, data, tmp_path)
    assert "<h1>Mine</h1>" in written(model, SYMBOLS, tmp_path, title="Mine")


def test_numbers_are_for_people(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(1224.0, 192.0, 900), rng.normal(0.0, 1e-9, 900)])
    page = written(HMM(1, "diagonal_gaussian", random_state=0).fit(x), x, tmp_path)
    words = re.sub(r"(?s)<(script|style).*?</\1>|<.*?>", " ", page)
    assert re.search(r"1,2[23]0 ± (190|200)", words)
    assert not re.search(r"\d[eE][-+]?\d|[-−]0(\.0+)?(?![.\d])|\binf\b|\bnan\b", words)


def test_restarts_are_compared(tmp_path) -> None:
    model = HMM(3, "categorical", n_init=4, inference=VI(max_iter=4), random_state=0).fit(SYMBOLS)
    found = contents(written(model, SYMBOLS, tmp_path))["course"]["restarts"]
    assert [run["below"] for run in found["runs"]] == sorted(
        round(max(run.objective for run in model.runs_) - run.objective, 3) for run in model.runs_
    )
    assert "within 1 nat of the best" in found["verdict"]


def test_a_model_that_does_not_fit_is_visible(tmp_path) -> None:
    rng = np.random.default_rng(0)
    z = np.repeat(np.arange(120) % 2, 25)  # every visit lasts 25 positions
    fits, not_ = rng.normal(6.0 * z, 1.0), 6.0 * z + rng.standard_t(2, len(z))
    pages = [contents(written(HMM(2, "gaussian", random_state=0).fit(x), x, tmp_path)) for x in (fits, not_)]
    assert [state["far"] for state in pages[0]["dwelling"]["states"]] == [True, True]
    assert "2 of 2 states with enough visits are far outside" in pages[0]["dwelling"]["verdict"]
    assert "None of 7 statistics" in pages[0]["check"]["verdict"]
    assert "kurtosis" in pages[1]["check"]["verdict"]


def test_pairs_need_two_columns_of_numbers(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3)) * [1.0, 1.0, 0.1] + np.repeat([0.0, 9.0], 150)[:, None] * [1.0, 0.0, 1.0]
    found = contents(written(HMM(2, "gaussian", random_state=0).fit(x), x, tmp_path))["pairs"]
    assert found["first"] == [0, 2]  # the columns that separate the states
    assert contents(written(HMM(2, "gaussian", random_state=0).fit(x[:, 0]), x[:, 0], tmp_path))["pairs"] is None


def test_known_states_are_used(tmp_path) -> None:
    model = HMM(2, "categorical", random_state=0).fit(SYMBOLS)
    page = written(model, SYMBOLS, tmp_path, states=np.ones(len(SYMBOLS), dtype=int))
    assert [state["occupancy"] for state in contents(page)["states"]] == pytest.approx([0.0, 1.0])


def test_a_long_chain_stays_small(tmp_path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300_000, 3)) + 3.0 * (np.cumsum(rng.random(300_000) < 0.01) % 4)[:, None]
    model = HMM(6, "diagonal_gaussian", inference=VI(max_iter=2), random_state=0).fit(x[:5000])
    written(model, x, tmp_path)
    assert (tmp_path / "report.html").stat().st_size < 1_500_000


CASES = ["unfitted", "not a model", "no folder", "a folder", "other data", "nothing", "no step"]


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_sentence_and_leaves_no_file(case, tmp_path) -> None:
    model = HMM(2, "categorical", random_state=0)
    if case != "unfitted":
        model.fit(SYMBOLS)
    subject = {"not a model": "model"}.get(case, model)
    path = {"no folder": tmp_path / "no" / "page.html", "a folder": tmp_path}.get(case, tmp_path / "page.html")
    data = {"other data": np.array([0.5, 1.5]), "nothing": []}.get(case, SYMBOLS)
    with pytest.raises((InputError, NotFittedError)) as found:
        subchain.report(subject, data, path, step=0 if case == "no step" else 1)
    assert "\n" not in str(found.value)
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_fails_leaves_the_one_before(tmp_path, monkeypatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("before")
    monkeypatch.setattr("os.fsync", lambda file: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        subchain.report(HMM(2, "categorical", random_state=0).fit(SYMBOLS), SYMBOLS, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
