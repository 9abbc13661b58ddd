"""What is in a page, for every family and shape of data, and what happens when it cannot be written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import subchain
from examples import FAMILIES, SHAPES, example
from subchain import CVI, EM, HDP, HMM, VI, Beam, Categorical, Gibbs, Sequences, Vocabulary
from subchain.errors import InputError, NotFittedError

pytestmark = pytest.mark.filterwarnings("ignore")
SYMBOLS = np.array([0, 0, 0, 1, 1, 1, 2, 2] * 60)


def contents(page: str) -> dict:
    """What the scripts of a page draw from."""
    found = re.search(r'<script type="application/json" id="contents">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


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
    assert "were given, not learned" in page
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
    code = re.search(r"<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)[1]
    code = code.replace("&#39;", "'").replace("&#34;", '"').replace("report.html", str(tmp_path / "again.html"))
    names = {"x": SYMBOLS}
    exec(code, names)
    np.testing.assert_array_equal(names["model"].transition_, model.transition_)


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


@pytest.mark.parametrize("case", ["unfitted", "not a model", "no folder", "a folder", "other data", "nothing"])
def test_bad_input_is_one_sentence_and_leaves_no_file(case, tmp_path) -> None:
    model = HMM(2, "categorical", random_state=0)
    if case != "unfitted":
        model.fit(SYMBOLS)
    subject = {"not a model": "model"}.get(case, model)
    path = {"no folder": tmp_path / "no" / "page.html", "a folder": tmp_path}.get(case, tmp_path / "page.html")
    data = {"other data": np.array([0.5, 1.5]), "nothing": []}.get(case, SYMBOLS)
    with pytest.raises((InputError, NotFittedError)) as found:
        subchain.report(subject, data, path)
    assert "\n" not in str(found.value)
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_fails_leaves_the_one_before(tmp_path, monkeypatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("before")
    monkeypatch.setattr("os.fsync", lambda file: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(InputError, match="No space left"):
        subchain.report(HMM(2, "categorical", random_state=0).fit(SYMBOLS), SYMBOLS, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
