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
    assert page.count("<script") == page.count("</script>") == 7  # the contents, and the page's own six
    assert "</style>" in page
    assert page.count("</style>") == 2


def test_a_page_names_no_address_outside_itself(tmp_path) -> None:
    page = written(HMM(2, "categorical", random_state=0).fit(SYMBOLS), SYMBOLS, tmp_path)
    named = {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"}  # a namespace, and a comment
    assert set(re.findall(r"https?://[^\s\"']+", page)) <= named
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
        "step": 200.0, "unit": "bp", "offset": 1000.0, "digits": 0, "plain": False
    }  # fmt: skip
    assert re.search(r"<dt>lasts</dt><dd>[\d.]+ positions? \([\d.\u202f]+\xa0bp\)", page)
    assert re.search(r"longest [\d\u202f]+\xa0bp", page)


@pytest.mark.parametrize(("n", "borders"), [(1, 1), (3, 3), (24, 24), (25, 0)])
def test_borders_of_few_sequences_are_kept(n, borders, tmp_path) -> None:
    data = as_sequences([SYMBOLS[:20]] * n)
    page = written(HMM(2, "categorical", inference=VI(max_iter=2), random_state=0).fit(data), data, tmp_path)
    assert contents(page)["sequences"] == [[str(i), 20 * i] for i in range(borders)]
    assert page.count('class="border"') == (2 if borders > 1 else 0)


def test_moves_on_cards_are_shares_of_all_changes(tmp_path) -> None:
    emission = Categorical.from_parameters([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])
    chain = [[0.98, 0.015, 0.005], [0.3, 0.4, 0.3], [0.0, 0.0, 1.0]]
    page = written(HMM.from_parameters([1.0, 0.0, 0.0], chain, emission), [0, 0, 0, 1, 1], tmp_path)
    left = re.findall(r"left for (.*?)</p>", page, re.DOTALL)
    assert re.findall(r"\((.*?)\)", left[0]) == ["75 %", "25 %"]
    assert "for ever: it is never left" in page


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
