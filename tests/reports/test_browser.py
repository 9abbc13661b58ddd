"""Pages in a real browser: they open without complaint, ask the network for nothing, and answer to mouse and keys."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import subchain
from subchain import HMM, VI, Categorical, Sequences, Vocabulary

pytestmark = pytest.mark.filterwarnings("ignore")
N = 40_000
NASTY = "<script>document.title='hurt'</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One chain of numbers with three states that last."""
    rng = np.random.default_rng(0)
    z = np.cumsum(rng.random(N) < 0.01) % 3
    model = HMM(3, "diagonal_gaussian", inference=VI(max_iter=8), random_state=0)
    x = rng.normal(size=(N, 2)) + np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])[z]
    path = tmp_path_factory.mktemp("page") / "report.html"
    subchain.report(model.fit(x, validation=x[:500]), x, path)
    return path


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many sequences of symbols, everything that can be named named so that it would run if anything let it."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(30, 90, 20)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    symbols = Vocabulary([NASTY, "</script>", "a & b", "'\"", "\u2028", "plain"])
    names = [f"{NASTY} {i}" for i in range(20)]
    data = Sequences(rng.integers(0, 6, offsets[-1]), offsets, names=names, vocabulary=symbols)
    model = HMM(3, Categorical(), inference=VI(max_iter=5), random_state=0).fit(data)
    model.state_names_ = [NASTY, "<img src=x onerror=alert(1)>", "ok"]
    path = tmp_path_factory.mktemp("nasty") / "report.html"
    subchain.report(model, data, path, title=NASTY)
    return path


LONG = ["strong_enhancer", "weak_enhancer", "a_name_that_is_much_too_long_to_be_drawn_whole_1", "quiet"]


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sequences of zeros and ones in bins of 200 base pairs, with long names."""
    rng = np.random.default_rng(2)
    z = np.cumsum(rng.random(6_000) < 0.05) % 4
    values = (rng.random((6_000, 4)) < np.where(np.eye(4)[z] > 0, 0.9, 0.05)).astype(np.uint8)
    columns = ["H3K4me1", "H3K4me2", "H3K4me3", "H4K20me1"]
    data = Sequences(values, [0, 4_000, 6_000], names=["alpha", "beta"], columns=columns)
    model = HMM(4, "bernoulli", inference=VI(max_iter=10), random_state=0).fit(data)
    model.state_names_ = LONG
    path = tmp_path_factory.mktemp("marks") / "report.html"
    subchain.report(model, data, path, step=200, unit="bp", offset=1_000_000)
    return path


@contextmanager
def narrow(browser) -> Iterator[None]:
    """The window of a telephone."""
    size = browser.driver.get_window_size()
    browser.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        yield
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.driver.set_window_size(size["width"], size["height"])


#: Texts of the graph, each with whether it lies inside.
IN_GRAPH = """
const svg = document.getElementById('graph'), box = svg.getBoundingClientRect();
return [...svg.querySelectorAll('text')].map((text) => { const r = text.getBoundingClientRect(); return [
  text.textContent, r.left >= box.left && r.right <= box.right && r.top >= box.top && r.bottom <= box.bottom,
  text.parentElement.dataset.tip]; });
"""
#: Names on cards that are cut, or that reach into what is drawn beside them.
CUT = """
const names = [...document.querySelectorAll('.bars th')];
return names.filter((th) => th.scrollWidth > th.clientWidth + 1).map((th) => th.textContent);
"""


@pytest.mark.parametrize("is_narrow", [False, True])
def test_names_are_whole_or_lose_their_middle(browser, marks, is_narrow) -> None:
    with narrow(browser) if is_narrow else nullcontext():
        browser.open(marks)
        drawn = browser.run(IN_GRAPH)
        assert browser.run(CUT) == []
        assert browser.run("return document.documentElement.scrollWidth") <= (390 if is_narrow else 1280)
    shown = {text for text, _, _ in drawn}
    assert all(inside for _, inside, _ in drawn)
    assert {"strong_enhancer", "weak_enhancer", "quiet"} < shown
    assert any(text.startswith("a_name") and text.endswith("whole_1") and "…" in text for text in shown)
    assert any(LONG[2] in title for _, _, title in drawn)
    assert browser.complaints() == []


def test_a_selected_state_has_its_whole_name_in_the_graph(browser, marks) -> None:
    browser.open(marks)
    browser.run("document.querySelector(`.card[data-slot='2'] button.state`).click()")
    drawn = browser.run(IN_GRAPH)
    assert LONG[2] in {text for text, _, _ in drawn}
    assert all(inside for _, inside, _ in drawn)


def test_a_name_beside_the_matrix_tells_all_of_itself(browser, marks) -> None:
    browser.open(marks)
    told = set()
    for place in np.linspace(0.35, 0.97, 12):
        browser.run(
            "const c = document.getElementById('matrix'), b = c.getBoundingClientRect();"
            "const [x, y] = [b.left + 12, b.top + arguments[0] * b.height];"
            "c.dispatchEvent(new PointerEvent('pointermove', {clientX: x, clientY: y, bubbles: true}))",
            float(place),
        )
        told.add(browser.run("return document.getElementById('matrix-readout').textContent"))
    assert any(f"({LONG[2]})" in line and "of positions" in line for line in told)


def test_positions_are_told_in_units(browser, marks) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(marks)
    readout = "return document.getElementById('timeline-readout').textContent"
    browser.press("#timeline", *[Keys.ARROW_UP] * 2)
    assert "bp, " in browser.run(readout)
    assert "bp long" in browser.run(readout)
    browser.press("#timeline", *[Keys.ARROW_UP] * 30, Keys.HOME, *[Keys.ARROW_LEFT] * 3)
    found = re.search(r"· ([\d,]+)\xa0bp \(position (\d+)\)", browser.run(readout))
    assert int(found[1].replace(",", "")) == 1_000_000 + 200 * int(found[2])
    assert "present: H" in browser.run(readout)


def test_doubt_along_the_data_names_the_sequence(browser, marks) -> None:
    browser.open(marks)
    point = (
        "const over = document.querySelector('#entropy rect.over'), b = over.getBoundingClientRect();"
        "over.dispatchEvent(new PointerEvent('pointermove', {clientX: b.left + arguments[0] * b.width,"
        "clientY: b.top + b.height / 2}))"
    )
    for share, name in ((0.25, "alpha"), (0.75, "beta")):
        browser.run(point, share)
        browser.settle()
        told = browser.run("return document.getElementById('tip').textContent")
        first = int(re.search(rf"{name}, ([\d,]+)\xa0bp", told)[1].replace(",", ""))
        assert first == pytest.approx(1_000_000 + 200 * (6_000 * share - (4_000 if name == "beta" else 0)), abs=20_000)


def test_one_state_has_a_page_without_moves(browser, tmp_path) -> None:
    x = np.random.default_rng(0).poisson(4.0, 300)
    subchain.report(HMM(1, "poisson", random_state=0).fit(x), x, tmp_path / "one.html")
    browser.open(tmp_path / "one.html")
    assert browser.complaints() == []
    assert "one state only" in browser.run("return document.getElementById('moves').innerText")
    assert browser.run("return document.getElementById('matrix').clientWidth") == 0


@pytest.mark.parametrize("dark", [False, True])
def test_a_page_opens_without_complaint_and_asks_for_nothing(browser, page, dark) -> None:
    browser.open(page, dark)
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground.strip("rgb()").split(","))
    assert (brightness < 200) == dark


def test_every_drawing_has_more_than_one_colour(browser, page) -> None:
    browser.open(page)
    for name in ("timeline", "matrix"):
        colours = browser.run(
            "const c = document.getElementById(arguments[0]); const d = c.getContext('2d').getImageData(0, 0, c.width,"
            "c.height).data; return new Set(new Uint32Array(d.buffer)).size",
            name,
        )
        assert colours > 3, name
    assert browser.run("return document.querySelectorAll('#graph .node').length") == 3
    assert browser.run("return document.querySelectorAll('#course figure path').length") > 10


def test_the_wheel_scrolls_and_with_ctrl_zooms_the_timeline_about_the_pointer(browser, page) -> None:
    browser.open(page)
    assert browser.window() == (0.0, N)
    before = browser.run("return scrollY")
    browser.wheel("#timeline", 120, ctrl=False)
    assert browser.window() == (0.0, N)
    assert browser.run("return scrollY") != before
    browser.wheel("#timeline", -400)
    first, last = browser.window()
    assert 0.0 < first < N / 2 < last < N
    browser.wheel("#timeline", 4000)
    browser.wheel("#timeline", 4000)
    assert browser.window() == (0.0, N)


def test_keys_zoom_and_move_the_timeline(browser, page) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(page)
    browser.press("#timeline", *[Keys.ARROW_UP] * 3)
    first, last = browser.window()
    assert last - first < N / 3
    browser.press("#timeline", Keys.ARROW_RIGHT)
    moved = browser.window()
    assert moved[0] > first
    assert moved[1] - moved[0] == pytest.approx(last - first)
    browser.press("#timeline", Keys.END)
    assert browser.window()[1] == N
    browser.press("#timeline", *[Keys.ARROW_UP] * 40)
    first, last = browser.window()
    assert last - first == pytest.approx(8)
    assert "position" in browser.run("return document.getElementById('timeline-readout').textContent")
    browser.press("#timeline", "0")
    assert browser.window() == (0.0, N)


def test_a_long_chain_shows_every_position_where_states_last(browser, tmp_path, monkeypatch) -> None:
    from selenium.webdriver.common.keys import Keys

    monkeypatch.setattr("subchain.reports.tracks.MOST_POSITIONS", 5_000)
    monkeypatch.setattr("subchain.reports.tracks.MOST_BINS", 2_048)
    rng = np.random.default_rng(1)
    z = np.cumsum(rng.random(N) < 0.01) % 2
    x = rng.normal(9.0 * z, 1.0)
    model = HMM(2, "gaussian", inference=VI(max_iter=8), random_state=0).fit(x)
    subchain.report(model, x, tmp_path / "long.html")
    browser.open(tmp_path / "long.html")
    browser.press("#timeline", Keys.END, *[Keys.ARROW_UP] * 40, Keys.END)
    first, last = browser.window()
    assert (last - first, last) == (pytest.approx(8), N)
    path = model.predict(x)
    start = int(np.flatnonzero(np.diff(path))[-1]) + 1
    told = browser.run("return document.getElementById('timeline-readout').textContent")
    assert f"from {start:,} to {N - 1:,}" in told
    assert f"state {path[-1]}" in told
    assert browser.complaints() == []


def test_a_state_is_selected_by_key_by_click_and_in_the_legend(browser, page) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(page)
    browser.press("#timeline", *[Keys.ARROW_UP] * 30, Keys.ENTER)
    chosen = browser.selected()
    assert chosen in {"0", "1", "2"}
    pressed = "return [...document.querySelectorAll('.card.selected')].map((card) => card.dataset.slot)"
    assert browser.run(pressed) == [chosen]
    browser.press("#timeline", Keys.ESCAPE)
    assert browser.selected() == ""
    browser.click(".card[data-slot='2'] button.state")
    assert browser.selected() == "2"
    browser.press("#legend button[tabindex='0']", Keys.ARROW_RIGHT)
    second = browser.run("return document.activeElement.dataset.slot")
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.selected() == second
    assert browser.complaints() == []


def test_the_switch_of_colours_works_without_the_system(browser, page) -> None:
    browser.open(page)
    theme = "return document.documentElement.dataset.theme"
    assert browser.run(theme) == "light"
    browser.run("document.getElementById('theme').click()")
    assert browser.run(theme) == "dark"
    browser.run("localStorage.clear()")


def test_the_matrix_is_walked_by_arrow_keys(browser, page) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(page)
    browser.press("#matrix", Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    said = browser.run("return document.getElementById('matrix-readout').textContent")
    assert said.startswith("from state")
    assert "95 %" in said


def test_everything_is_reached_by_the_tab_key(browser, page) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(page)
    browser.run("document.body.focus()")
    seen = set()
    for _ in range(70):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        seen.add(browser.run("const e = document.activeElement; return e.id || e.dataset.zoom || e.dataset.slot || ''"))
    assert {"theme", "timeline", "matrix", "least", "in", "out", "all", "0", "1", "2"} <= seen


def test_names_from_data_cannot_run(browser, nasty) -> None:
    browser.open(nasty)
    assert browser.complaints() == []
    assert browser.run("return document.title") == NASTY
    assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
    shown = browser.run("return document.querySelector('.card h3').textContent")
    assert NASTY in shown


def test_sequences_are_chosen(browser, nasty) -> None:
    browser.open(nasty)
    tall = browser.run("return document.getElementById('timeline').clientHeight")
    browser.run(
        "const s = document.getElementById('chooser'); s.selectedIndex = s.options.length - 1;"
        "s.dispatchEvent(new Event('change'))"
    )
    browser.settle()
    assert browser.run("return document.getElementById('timeline').clientHeight") < tall
    assert browser.complaints() == []


def test_a_narrow_window_needs_no_sideways_scrolling(browser, page) -> None:
    with narrow(browser):
        browser.open(page)
        assert browser.run("return document.documentElement.scrollWidth") <= 390
        assert browser.complaints() == []


FIGURES = ["heat", "pairs", "dwelling", "statistics", "distribution", "entropy", "certainty", "frequent"]
FIGURES += ["curve-0", "curve-1", "matrix", "graph", "timeline"]


def test_every_figure_is_saved_as_a_vector_graphic_a_picture_and_a_table(browser, page) -> None:
    browser.open(page)
    assert sorted(browser.run("return Figures.names")) == sorted(FIGURES)
    assert browser.run("return document.querySelectorAll('[data-figure] .tools button').length") == 3 * len(FIGURES)
    for name in FIGURES:
        text = browser.run("return Figures.svgOf(arguments[0])", name)
        shapes = ElementTree.fromstring(text).iter()
        assert sum(shape.tag.rpartition("}")[2] in {"path", "rect", "circle", "image"} for shape in shapes) > 4, name
        assert "var(--" not in text, name  # colours do not come from the page
        rows = list(csv.reader(io.StringIO(browser.run("return Figures.csvOf(arguments[0])", name))))
        assert len(rows) > 1, name
        assert {len(row) for row in rows} == {len(rows[0])}, name
        colours = browser.driver.execute_async_script(
            "const done = arguments[1]; Figures.pngOf(arguments[0]).then(createImageBitmap).then((image) => {"
            "const c = document.createElement('canvas'); [c.width, c.height] = [image.width, image.height];"
            "const g = c.getContext('2d'); g.drawImage(image, 0, 0);"
            "done(new Set(new Uint32Array(g.getImageData(0, 0, c.width, c.height).data.buffer)).size) })",
            name,
        )
        assert colours > 3, name
    assert browser.complaints() == []
    assert [asked for asked in browser.requests() if not asked.startswith("data:")] == [page.as_uri()]


def test_the_table_of_the_matrix_holds_the_transitions(browser, page) -> None:
    browser.open(page)
    rows = list(csv.DictReader(io.StringIO(browser.run("return Figures.csvOf('matrix')"))))
    assert len(rows) == 9
    for state in "012":
        assert sum(float(row["probability"]) for row in rows if row["from"] == state) == pytest.approx(1.0, abs=1e-3)
    assert all(float(row["low"]) <= float(row["probability"]) <= float(row["high"]) for row in rows)


def test_names_given_in_the_page_are_everywhere_and_stay(browser, page) -> None:
    browser.open(page)
    browser.run("localStorage.clear()")
    browser.open(page)
    browser.click(".card[data-slot='1'] button.rename")
    browser.press(".card[data-slot='1'] form input", "calm", "\n")
    for place in ("#legend", ".card[data-slot='1'] h3", "#graph", "#heat", "#dwelling"):
        assert "calm" in browser.run("return document.querySelector(arguments[0]).textContent", place), place
    assert browser.run("return Names.file()") == {"states": {"1": "calm"}}
    assert browser.run("return Names.give(2, 'calm')") == "“calm” is the name of state 1 already."
    browser.open(page)
    assert browser.run("return Page.label(1)") == "calm"
    browser.click("#old-names")
    assert browser.run("return Names.file()") == {"states": {}}
    assert browser.complaints() == []


def test_a_link_keeps_the_zoom(browser, page) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(page)
    browser.press("#timeline", *[Keys.ARROW_UP] * 4, Keys.ARROW_RIGHT)
    first, last = browser.window()
    browser.wait("return location.hash.startsWith('#timeline=')")
    link = browser.run("return document.getElementById('view-link').href")
    assert link == browser.run("return location.href")
    browser.driver.get("about:blank")
    browser.driver.get(link)
    browser.wait("return document.body.dataset.ready === 'yes'")
    browser.settle()
    assert browser.window() == pytest.approx((first, last), abs=1.0)


def test_what_is_under_the_pointer_is_told_beside_it(browser, page) -> None:
    browser.open(page)
    for figure in ("#timeline", "#matrix", "#heat rect[data-tip]", "#entropy"):
        x, y = browser.run(
            "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width * 0.6, b.y + b.height * 0.6]",
            figure,
        )
        for step in range(20):  # scrolling hides the note, until the pointer moves again
            browser.driver.execute_cdp_cmd(
                "Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x + step % 2, "y": y}
            )
            browser.settle()
            if not browser.run("return document.getElementById('tip').hidden"):
                break
        tip = (
            "const t = document.getElementById('tip'), b = t.getBoundingClientRect(); return [t.textContent, b.x, b.y]"
        )
        text, left, top = browser.run(tip)
        assert text, figure
        assert abs(left - x) < 360, figure
        assert abs(top - y) < 200, figure


def test_axes_have_names_and_units(browser, marks) -> None:
    browser.open(marks)
    recorded = browser.run("return Figures.svgOf('timeline')")
    assert "position in the sequence, in Mb" in recorded
    assert re.search(r">1\.\d\xa0Mb<", recorded)
    for figure, name in (
        ("entropy", "entropy in bits"),
        ("certainty", "% of positions"),
        ("dwelling", "longer than (kb)"),
    ):
        assert name in browser.run("return document.getElementById(arguments[0]).textContent", figure)


def test_no_text_of_a_figure_leaves_it(browser, page, marks) -> None:
    outside = """
    return [...document.querySelectorAll('figure svg')].flatMap((svg) => { const box = svg.getBoundingClientRect();
      return [...svg.querySelectorAll('text')].filter((text) => { const r = text.getBoundingClientRect();
        return r.width && (r.left < box.left - 2 || r.right > box.right + 2 || r.top < box.top - 2
          || r.bottom > box.bottom + 2); }).map((text) => `${svg.id}: ${text.textContent}`) })"""
    for shown in (page, marks):
        browser.open(shown)
        assert browser.run(outside) == []
        with narrow(browser):
            browser.open(shown)
            assert browser.run(outside) == []
