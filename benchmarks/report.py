"""The report of one very long chain: time and memory to write it, its size, and how fast a browser opens it.

    python -m benchmarks.report --length 10000000

The chain is drawn to disk and mapped, the model is the one that drew it. A short chain is reported first, so that
nothing is compiled while it is measured. Opening needs chromium, chromedriver and selenium, and is left out without
them.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks.memory import AnonymousPeak
from benchmarks.tables import megabytes, wide_console

SHORT = 100_000
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --window-size=1400,1000"
)
#: Wheel turns over the timeline, each with a redraw, and the mean time of one.
ZOOM = """
const done = arguments[0], canvas = document.getElementById('timeline'), box = canvas.getBoundingClientRect();
let turns = 0; const began = performance.now();
(function turn() {
  if (turns === 60) { done((performance.now() - began) / turns); return; }
  canvas.dispatchEvent(new WheelEvent('wheel', { deltaY: turns++ < 30 ? -120 : 120, clientX: box.left + 300,
    clientY: box.top + 40, cancelable: true, bubbles: true }));
  requestAnimationFrame(turn);
})();
"""


def model_and_chain(folder: Path, length: int, n_states: int, kind: str) -> tuple[Any, Path]:
    """A model by hand, and a chain in a file that it might have drawn."""
    from subchain import HMM, Categorical, DiagonalGaussian

    rng = np.random.default_rng(0)
    transition = 0.9 * np.eye(n_states) + 0.1 * rng.dirichlet(np.ones(n_states), n_states)
    initial, path = np.full(n_states, 1.0 / n_states), folder / f"{kind}-{length}.npy"
    if kind == "symbols":
        emission: Any = Categorical.from_parameters(rng.dirichlet(np.full(1_000, 0.05), n_states))
    else:
        emission = DiagonalGaussian.from_parameters(rng.normal(size=(n_states, 3)) * 3.0, np.ones((n_states, 3)))
    model = HMM.from_parameters(initial, transition, emission)
    np.save(path, model.sample(length, random_state=0).observations)
    return model, path


def write(length: int, n_states: int, kind: str, page: Path) -> tuple[float, int]:
    """Seconds to write a page, and bytes of anonymous memory at the peak beyond those before."""
    import subchain

    with tempfile.TemporaryDirectory() as folder:
        for n in (SHORT, length):
            model, path = model_and_chain(Path(folder), n, n_states, kind)
            with AnonymousPeak() as memory:
                began = time.perf_counter()
                subchain.report(model, path, page)
                seconds = time.perf_counter() - began
    return seconds, memory.beyond


def opened(page: Path) -> tuple[float, float] | None:
    """Milliseconds until a browser has drawn the page, and for one turn of the wheel; None without a browser."""
    chromium, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver_path is None:
        return None
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
        try:
            driver.get("about:blank")
            driver.get(page.as_uri())
            while driver.execute_script("return document.body.dataset.ready") != "yes":
                time.sleep(0.005)
            ready = driver.execute_async_script(
                "const done = arguments[0]; requestAnimationFrame(() => setTimeout(() => done(performance.now())))"
            )
            return float(ready), float(driver.execute_async_script(ZOOM))
        finally:
            driver.quit()


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="benchmarks.report", description="Time, memory and size of a report.")
    parser.add_argument("--length", type=int, default=10_000_000, help="observations (10,000,000)")
    options = parser.parse_args(arguments)
    table = Table(title=f"report of one chain of {options.length:,}", title_justify="left", title_style="bold")
    for heading in ("data", "states", "written in", "memory", "size", "opens in", "a turn of the wheel"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        for kind, n_states in (("symbols", 12), ("symbols", 40), ("numbers", 8)):
            seconds, memory = write(options.length, n_states, kind, page)
            times = opened(page)
            shown = ("no browser", "") if times is None else (f"{times[0]:.0f} ms", f"{times[1]:.0f} ms")
            size = f"{page.stat().st_size / 1e6:.2f} MB"
            table.add_row(kind, str(n_states), f"{seconds:.1f} s", megabytes(memory), size, *shown)
    wide_console().print(table)


if __name__ == "__main__":
    main()
