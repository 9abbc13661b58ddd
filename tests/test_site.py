"""The documentation becomes a site: without a warning, without the network, with every public name and formula."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import subchain

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
#: Attributes by which a page makes a browser load something.
LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}


def public_names() -> Iterator[tuple[str, Any]]:
    """Every name that users may import, from the package and from its public modules."""
    for name in ["subchain", *(f"subchain.{module}" for module in subchain._MODULES)]:
        try:
            module = importlib.import_module(name)
        except ImportError:
            if name == "subchain.neural" and find_spec("torch") is None:
                continue
            raise
        for public in getattr(module, "__all__", None) or own_classes(module):
            item = getattr(module, public)
            if "Deprecated" not in (item.__doc__ or ""):
                yield f"{name}.{public}", item


def own_classes(module: ModuleType) -> list[str]:
    return [name for name, item in inspect.getmembers(module, inspect.isclass) if item.__module__ == module.__name__]


def documented() -> list[str]:
    """What the pages of the reference ask for."""
    texts = [page.read_text(encoding="utf8") for page in sorted(REFERENCE.glob("*.md"))]
    return [name for text in texts for name in re.findall(r"^::: (\S+)", text, re.MULTILINE)]


def found(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def test_every_public_name_is_in_the_reference_once() -> None:
    there = [name for name in documented() if find_spec("torch") is not None or not name.startswith("subchain.neural")]
    times = Counter(id(found(name)) for name in there)
    assert [name for name, item in public_names() if times[id(item)] == 0] == [], "not in docs/reference"
    assert [name for name in there if times[id(found(name))] > 1] == [], "more than once in docs/reference"


def test_the_page_of_the_model_has_all_its_methods_and_properties() -> None:
    members = inspect.getmembers(subchain.HMM, lambda item: callable(item) or isinstance(item, property))
    public = [name for name, item in members if not name.startswith("_") and "Deprecated" not in (item.__doc__ or "")]
    listed = re.findall(r"^        - (\w+)$", (REFERENCE / "model.md").read_text(encoding="utf8"), re.MULTILINE)
    assert sorted(listed) == public


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as strictly as it can be."""
    for package in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
        pytest.importorskip(package, reason=f"{package} is not installed; pip install 'subchain[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return folder


def html(site: Path) -> dict[str, str]:
    return {str(page.relative_to(site)): page.read_text(encoding="utf8") for page in sorted(site.rglob("*.html"))}


class Loaded(HTMLParser):
    """Collects the addresses of what a page makes a browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name == LOADING.get(tag)]


def test_pages_load_nothing_from_the_network(site: Path) -> None:
    for name, text in html(site).items():
        reader = Loaded()
        reader.feed(text)
        assert reader.addresses, name
        assert [address for address in reader.addresses if re.match(r"(https?:)?//", address)] == [], name
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text(encoding="utf8")), style


def test_every_public_name_has_a_place_on_the_site(site: Path) -> None:
    text = "\n".join(page for name, page in html(site).items() if name.startswith("reference"))
    assert [name for name in documented() if f'id="{name}"' not in text] == []


def test_every_command_has_a_place_on_the_site(site: Path) -> None:
    text = html(site)["reference/command-line.html"]
    for command in ("demo", "fit", "predict", "score", "sample", "info", "compare", "report"):
        assert f'id="subchain-{command}"' in text
    assert "--time-limit SECONDS" in text
    assert "subchain-experiments" not in text  # the old spelling is kept, but not offered


def test_formulas_are_mathml_and_nothing_is_left_of_their_source(site: Path) -> None:
    sources = [page.read_text(encoding="utf8") for page in (ROOT / "docs").rglob("*.md")]
    assert any("$$" in source for source in sources)
    for name, text in html(site).items():
        assert "arithmatex" not in text, name
        assert text.count("<math") == text.count('class="equation"'), name
        prose = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert "$$" not in prose, name
        assert not re.search(r"\\(frac|sum|log|mathbb|operatorname|begin)\b", prose), name
    assert sum(text.count("<math") for text in html(site).values()) > 0


def test_search_works_in_a_page_that_is_opened_from_the_disk(site: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no browser: install chromium to test pages in one")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
    page = f"{(site / 'index.html').as_uri()}?q=forecast"
    done = subprocess.run([chromium, *flags, page], capture_output=True, text=True, timeout=120)
    assert re.search(r"md-search-result__meta\">\s*\d+ matching documents", done.stdout)
    assert 'reference/model.html?h=forecast#subchain.HMM.forecast"' in done.stdout


def test_hooks_and_sources_are_not_published(site: Path) -> None:
    assert list(site.rglob("*.py")) == []
    assert list(site.rglob("*.md")) == []


def hook(name: str) -> ModuleType:
    """A module of docs/hooks."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "hooks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def equations() -> ModuleType:
    """The hook that translates formulas."""
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed")
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    return hook("equations")


@pytest.mark.parametrize(
    ("tex", "part"),
    [
        (r"\mathbb E[x]", "<mi>𝔼</mi>"),
        (r"\boldsymbol\theta", "<mi>𝜽</mi>"),
        (r"\mathbf{1}", "<mn>𝟏</mn>"),
        (r"\operatorname{Dir}(\alpha)", "<mi>Dir</mi><mo"),
        (r"\mathrm{KL}(q)", "<mi>KL</mi><mo"),
        (r"n \log n", '<mi>n</mi><mspace width="0.167em" /><mi>log</mi><mspace width="0.167em" /><mi>n</mi>'),
        (r"x \sim p", "<mo>∼</mo>"),
        (r"\tilde A_{ij}", '<mover accent="true"><mi>A</mi>'),
        (r"a \propto b", "<mo>∝</mo>"),
        (r"\sum_{t=1}^{T} x_t", "<munderover><mo>∑</mo>"),
        (r"\arg\max_k x_k", "arg max</mo><mi>k</mi></munder>"),
        (r"j'", '<mi>j</mi><mo lspace="0" rspace="0">′</mo>'),
        (r"\Bigl\{ x \Bigr\}", ">{</mo>"),
        (r"\begin{aligned} a &= b \\ &= c \end{aligned}", '<mtd class="right"><mi>a</mi></mtd>'),
    ],
)
def test_a_formula_becomes_what_browsers_understand(equations: ModuleType, tex: str, part: str) -> None:
    assert part in equations.mathml(tex, display=True)


@pytest.mark.parametrize(
    ("tex", "complaint"),
    [
        (r"\foo x", r"unknown command \\foo"),
        (r"\frac{a}", "parts"),
        (r"x_{", "braces do not match"),
        (r"a & b", "alignment"),
        (r"\begin{foo} x \end{foo}", "unknown environment foo"),
        (r"\left( x", "Left"),
    ],
)
def test_a_formula_that_is_not_understood_is_an_error(equations: ModuleType, tex: str, complaint: str) -> None:
    with pytest.raises(equations.TexError, match=complaint):
        equations.mathml(tex)


def test_a_mistake_in_a_formula_ends_the_build_and_names_the_page(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed")
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs" / "hooks", tmp_path / "docs" / "hooks")
    (tmp_path / "docs" / "index.md").write_text("# A page\n\nThis is `$not$` one, this is: $\\foo$.\n")
    (tmp_path / "mkdocs.yml").write_text(
        "site_name: one page\nhooks: [docs/hooks/equations.py]\nplugins: []\nexclude_docs: hooks/\n"
        "markdown_extensions:\n  - pymdownx.arithmatex: {generic: true}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert r"index.md: the unknown command \foo in the formula" in done.stderr


DOCSTRING = """Counts, see :func:`count`.

Attributes
----------
pairs : (K, K) expected transitions
    from row to column
x : array, list of arrays, or path
    The data.
seconds : time since the run began

Examples
--------
>>> a : b
"""
TIDY = """Counts, see `count`.

Attributes
----------
pairs
    (K, K) expected transitions
    from row to column
x : array, list of arrays, or path
    The data.
seconds
    time since the run began

Examples
--------
>>> a : b
"""


def test_descriptions_in_the_place_of_types_become_descriptions() -> None:
    pytest.importorskip("griffe", reason="griffe is not installed")
    assert hook("docstrings").tidy(DOCSTRING) == TIDY


def test_comments_are_left_out_of_the_site() -> None:
    page = "<!-- needs: chromatin -->\n# Title\n\n<!-- hidden\n```python\nx = 1\n```\n-->\n```python\nx\n```\n"
    assert hook("comments").on_page_markdown(page) == "# Title\n\n```python\nx\n```\n"
