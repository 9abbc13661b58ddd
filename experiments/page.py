"""One page for a folder of results: of every experiment its claims, what came out, and the figure.

The page is made from what the experiments have left in the folder, so that results of several runs come together. It
holds its figures itself and needs no other file.
"""

from __future__ import annotations

import base64
import json
from html import escape
from pathlib import Path
from typing import Any

PAGE = "index.html"
_VERDICTS = {"holds": "✓ holds", "doubted": "– does not come out", "failed": "✗ does not hold"}
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #8884; }
td:last-child { white-space: nowrap; }
.failed { font-weight: bold; }
img { max-width: 100%; background: white; }
pre { overflow-x: auto; }
section { margin-top: 3rem; }
.beside { opacity: .75; }
"""


def write_page(folder: Path) -> Path:
    """Write the page of all results in a folder, and say where it is."""
    results = [json.loads(file.read_text(encoding="utf8")) for file in sorted(folder.glob("*.json"))]
    body = "\n".join(_section(result, folder) for result in results)
    verdicts = [claim["verdict"] for result in results for claim in result["claims"]]
    html = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Experiments</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>Experiments</h1>\n"
        f"<p>Of {len(verdicts)} claims of {len(results)} experiments, {verdicts.count('holds')} hold, "
        f"{verdicts.count('failed')} do not hold, and {verdicts.count('doubted')} that were doubted beforehand do not "
        "come out. Claims without an entry in the column of the paper are our own.</p>\n"
        f"{_contents(results)}\n{body}\n"
        "</body></html>\n"
    )
    path = folder / PAGE
    path.write_bytes(html.encode())
    return path


def _contents(results: list[dict[str, Any]]) -> str:
    items = "".join(f'<li><a href="#{escape(r["name"])}">{escape(r["title"])}</a></li>' for r in results)
    return f"<ul>{items}</ul>"


def _section(result: dict[str, Any], folder: Path) -> str:
    name = escape(result["name"])
    claims = "".join(
        f"<tr><td>{escape(claim['text'])}</td><td>{escape(claim['published'] or '–')}</td>"
        f"<td>{escape(claim['evidence'])}</td>"
        f'<td class="{claim["verdict"]}">{_VERDICTS[claim["verdict"]]}</td></tr>'
        for claim in result["claims"]
    )
    summary = f"<pre>{escape(chr(10).join(result['summary']))}</pre>" if result["summary"] else ""
    size = "a quick look" if result["quick"] else "all of it"
    return (
        f'<section id="{name}"><h2>{escape(result["title"])}</h2>\n'
        f'<p class="beside">{escape(result["source"])}; {size}, {result["seeds"]} seeds, {result["seconds"]:.0f} s; '
        f'<a href="{name}.csv">table</a></p>\n'
        f"<table><tr><th>claim</th><th>paper</th><th>here</th><th></th></tr>{claims}</table>\n{summary}\n"
        f"{_figure(folder / (result['name'] + '.png'), result['title'])}</section>"
    )


def _figure(path: Path, title: str) -> str:
    if not path.exists():
        return ""
    content = base64.b64encode(path.read_bytes()).decode()
    return f'<p><img alt="Figure: {escape(title)}" src="data:image/png;base64,{content}"></p>'
