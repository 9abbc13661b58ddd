"""Equations, TeX between dollar signs, become MathML while the site is built: readers need no script and no network.

The Markdown extension `arithmatex` finds them, and leaves code alone; `latex2mathml` translates. Browsers implement a
part of MathML only (MathML Core), and the translator lets mistakes pass, so that its result is mended and checked here:
fonts become letters of Unicode, names of functions get their spaces, and what is not understood ends the build.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

ElementTree.register_namespace("", "http://www.w3.org/1998/Math/MathML")
MATH = "{http://www.w3.org/1998/Math/MathML}"

FOUND = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
CODE = re.compile(r"<(pre|code)\b.*?</\1>|<math\b.*?</math>", re.DOTALL)
#: What the translator calls differently.
RENAMED = [
    (r"\\(begin|end)\{(?:aligned|align\*?)\}", r"\\\1{split}"),
    (r"\\arg\s*\\(max|min)(?![a-zA-Z])", r"\\arg\1"),
    (r"\\operatorname\*?\{arg(?:\\,|\s)*(max|min)\}", r"\\arg\1"),
]
ENVIRONMENTS = {"split", "cases", "array", "matrix", "pmatrix", "bmatrix", "vmatrix", "smallmatrix"}
#: Operators whose subscripts stand below them where there is room.
WITH_LIMITS = {"max", "min", "lim", "sup", "inf", "arg max", "arg min"}
#: Large brackets that the translator leaves as they are.
BRACKETS = {r"\{": "{", r"\}": "}", r"\|": "‖"}
#: How many parts an element needs.
PARTS = {"mfrac": 2, "mover": 2, "mroot": 2, "msub": 2, "msubsup": 3, "msup": 2, "munder": 2, "munderover": 3}
SCRIPTS = ("msub", "msubsup", "msup", "munder", "munderover")
FONTS = {
    "bold": "BOLD",
    "bold-italic": "BOLD ITALIC",
    "double-struck": "DOUBLE-STRUCK",
    "fraktur": "FRAKTUR",
    "monospace": "MONOSPACE",
    "sans-serif": "SANS-SERIF",
    "script": "SCRIPT",
}
THIN = "0.167em"
PRIMES = ("′", "″", "‴")
#: Greek letters that TeX sets upright.
CAPITALS = tuple("ΓΔΘΛΞΠΣΥΦΨΩ")


class TexError(Exception):
    """A formula that is not understood."""


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Put MathML in place of every formula of a page."""

    def translated(found: re.Match[str]) -> str:
        tag, tex = found[1], html.unescape(found[2]).strip()
        try:
            return f'<{tag} class="equation">{mathml(tex, display=tag == "div")}</{tag}>'
        except TexError as error:
            raise PluginError(f"{page.file.src_uri}: {error} in the formula {tex!r}") from None

    content = FOUND.sub(translated, content)
    if "$$" in CODE.sub("", content):
        raise PluginError(f"{page.file.src_uri}: a formula between $$ has to be a paragraph of its own")
    if any("\\(" in entry.title for entry in _entries(page.toc)):
        raise PluginError(f"{page.file.src_uri}: a heading has a formula, which tables of contents cannot show")
    return content


def _entries(toc: Any) -> Any:
    for entry in toc:
        yield entry
        yield from _entries(entry.children)


def mathml(tex: str, *, display: bool = False) -> str:
    """Translate a formula; `display` sets it on a line of its own."""
    if len(re.findall(r"(?<!\\)(?:\\\\)*\{", tex)) != len(re.findall(r"(?<!\\)(?:\\\\)*\}", tex)):
        raise TexError("braces do not match")
    for pattern, name in RENAMED:
        tex = re.sub(pattern, name, tex)
    for name in re.findall(r"\\begin\{(.*?)\}", tex):
        if name not in ENVIRONMENTS:
            raise TexError(f"the unknown environment {name}")
    try:
        root = ElementTree.fromstring(convert(tex, display="block" if display else "inline"))
    except ElementTree.ParseError:
        raise TexError("& outside of an alignment, or something else that is not understood,") from None
    except Exception as error:  # the translator's errors have no common base and mostly no message
        raise TexError(str(error) or type(error).__name__) from error
    _mend(root)
    return ElementTree.tostring(root, encoding="unicode")


def _mend(element: ElementTree.Element) -> None:
    """Check an element and what is inside, and write it as browsers understand it."""
    name = element.tag.removeprefix(MATH)
    for child in element:
        _mend(child)
    element.text = BRACKETS.get(element.text or "", element.text)
    if element.text and element.text.startswith("\\"):
        raise TexError(f"the unknown command {element.text}")
    if len(element) != PARTS.get(name, len(element)):
        raise TexError(f"<{name}> with {len(element)} instead of {PARTS[name]} parts")
    if name == "mtd" and "columnalign" in element.attrib:
        element.set("class", element.attrib.pop("columnalign"))
    if name == "mover" and element[1].tag == f"{MATH}mo":
        element.set("accent", "true")
    if name == "msub" and element[0].text in WITH_LIMITS:
        element.tag = f"{MATH}munder"
    if name in SCRIPTS:  # signs are closer together there
        for sign in (sign for script in element[1:] for sign in script.iter(f"{MATH}mo")):
            sign.attrib.update(lspace="0", rspace="0")
    if name == "msup" and element[1].text in PRIMES:  # the sign itself is raised
        element.tag = f"{MATH}mrow"
        element[1].tag = f"{MATH}mo"
        element[1].attrib.update(lspace="0", rspace="0")
    if name == "mi" and (element.text or "") in CAPITALS:
        element.set("mathvariant", "normal")
    _sort_sign(element)
    _join_upright(element)
    _set_font(element)
    _space_functions(element)


def _sort_sign(element: ElementTree.Element) -> None:
    """Tell signs, which have room on either side, from names, which have not."""
    text = " ".join((element.text or "").split())
    if element.tag == f"{MATH}mi" and text == "~":
        element.tag, element.text = f"{MATH}mo", "\N{TILDE OPERATOR}"
    elif text in ("∞", "∂", "∇"):
        element.tag = f"{MATH}mi"
    elif element.tag == f"{MATH}mi" and len(text) == 1 and unicodedata.category(text) in ("Ps", "Pe", "Sm"):
        element.tag = f"{MATH}mo"
    elif element.tag in (f"{MATH}mo", f"{MATH}mi") and text in WITH_LIMITS:
        element.tag, element.text = f"{MATH}mo", text
        element.attrib.update(movablelimits="true", lspace=THIN, rspace=THIN)
    elif element.tag == f"{MATH}mo" and len(text) > 1 and text.isalpha():
        element.tag = f"{MATH}mi"


def _join_upright(element: ElementTree.Element) -> None:
    """Make one word of a row of upright letters."""
    if len(element) > 1 and all(child.get("mathvariant") == "normal" for child in element):
        text = "".join(child.text or "" for child in element)
        element.clear()
        element.tag, element.text = f"{MATH}mi", text


def _set_font(element: ElementTree.Element) -> None:
    """Replace letters in a font by the letters that Unicode has for it."""
    variant = element.get("mathvariant", "normal")
    if variant not in FONTS:
        return
    element.text = "".join(_in_font(letter, FONTS[variant]) for letter in element.text or "")
    del element.attrib["mathvariant"]


def _in_font(letter: str, font: str) -> str:
    name = unicodedata.name(letter).replace("LATIN ", "").replace("GREEK ", "").replace(" LETTER", "")
    for prefix in (f"MATHEMATICAL {font}", font):
        try:
            return unicodedata.lookup(f"{prefix} {name}")
        except KeyError:
            continue
    if not letter.isalnum():
        return letter
    if font == "BOLD ITALIC":  # digits
        return _in_font(letter, "BOLD")
    raise TexError(f"no letter {letter!r} in the font {font.lower()}")


def _space_functions(element: ElementTree.Element) -> None:
    """Put a thin space on those sides of a function's name where no bracket or operator makes room."""
    if element.tag.removeprefix(MATH) not in ("math", "mrow", "mtd", "mstyle"):
        return
    children = list(element)
    gaps = [place for place in range(1, len(children)) if _are_close(children[place - 1], children[place])]
    for place in reversed(gaps):
        element.insert(place, ElementTree.Element(f"{MATH}mspace", width=THIN))


def _are_close(left: ElementTree.Element, right: ElementTree.Element) -> bool:
    """Whether one of two neighbours is a function's name and nothing keeps them apart."""
    if _is_function(left):
        return right.tag not in (f"{MATH}mo", f"{MATH}mspace") and not _opens(right)
    return _is_function(right) and (left.tag not in (f"{MATH}mo", f"{MATH}mspace") or left.text in (")", "]", "}"))


def _is_function(element: ElementTree.Element) -> bool:
    while element.tag.removeprefix(MATH) in PARTS and element.tag != f"{MATH}mfrac":
        element = element[0]
    return element.tag == f"{MATH}mi" and len(element.text or "") > 1


def _opens(element: ElementTree.Element) -> bool:
    """Whether a group begins with a bracket."""
    return len(element) > 0 and element.tag == f"{MATH}mrow" and element[0].tag == f"{MATH}mo"
