"""Word alignment from the command line.

The aligner is replaced by one that links words of the same position, so that what is seen is the command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subchain import HMM, Categorical, alignment
from subchain.alignment import WordAligner
from subchain.data import Links, ParallelText, as_parallel_text

SOURCE = "the house\n\nthe green house\na house\n"
TARGET = "das Haus\nnichts\ndas grüne Haus\nein Haus\n"
DIAGONAL = "0-0 1-1\n\n0-0 1-1 2-2\n0-0 1-1\n"


class Diagonal:
    """An aligner that links words of the same position, and stores what it was told."""

    status_ = "converged"
    _read_with = {"max_jump": 7, "end_jumps": False, "prefix": None, "rare": None}  # noqa: RUF012
    made: list[Diagonal] = []  # noqa: RUF012

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.calls: list[Any] = []
        self.made.append(self)

    def set_params(self, **settings: Any) -> Diagonal:
        self.settings.update(settings)
        return self

    def fit(self, source: Any, target: Any = None, prior: Any = None) -> Diagonal:
        self.text = as_parallel_text(source, target)
        self.calls.append(("fit", prior))
        return self

    def link_blocks(self, source: ParallelText | None = None, target: Any = None) -> Iterator[Links]:
        text = self.text if source is None else source
        yield Links.from_pairs(np.repeat(np.arange(min(len(s), len(t))), 2).reshape(-1, 2) for s, t in text)

    def save(self, path: Path) -> None:
        Path(path).write_text("aligner")

    @classmethod
    def load(cls, path: Path) -> Diagonal:
        return cls(loaded=str(path))


@pytest.fixture(autouse=True)
def text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.en").write_text(SOURCE, encoding="utf8")
    Path("a.de").write_text(TARGET, encoding="utf8")
    Diagonal.made.clear()
    monkeypatch.setattr(alignment, "WordAligner", Diagonal, raising=False)


class TestAlign:
    def test_links_are_written_line_by_line(self, run: Any) -> None:
        told = run("align", "a.en", "a.de", "-o", "links.txt").stdout
        assert Path("links.txt").read_text() == DIAGONAL
        assert "7 links of 4 sentence pairs (" in told
        assert "pairs per second)" in told
        assert "links written to links.txt" in told

    def test_without_a_file_they_go_to_standard_output(self, run: Any) -> None:
        assert run("align", "a.en", "a.de").stdout == DIAGONAL

    def test_one_file_may_hold_both_sides(self, run: Any) -> None:
        lines = [f"{s} ||| {t}" for s, t in zip(SOURCE.splitlines(), TARGET.splitlines(), strict=True)]
        Path("joined.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
        assert run("align", "joined.txt").stdout == DIAGONAL

    def test_columns_of_a_parquet_file_can_be_chosen(self, run: Any) -> None:
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {"n": [1, 2, 3, 4], "en": SOURCE.splitlines(), "de": TARGET.splitlines()}
        parquet.write_table(pyarrow.table(columns), "a.parquet")
        assert run("align", "a.parquet", "--columns", "en, de").stdout == DIAGONAL
        assert "choose those of source and target with --columns" in run("align", "a.parquet", status=2).stderr
        assert "two columns, as in" in run("align", "a.parquet", "--columns", "en", status=2).stderr

    def test_json_has_the_links_or_the_file(self, answer: Any) -> None:
        assert answer("align", "a.en", "a.de")["links"][1:3] == [[], [[0, 0], [1, 1], [2, 2]]]
        found = answer("align", "a.en", "a.de", "-o", "links.txt")
        assert (found["n_pairs"], found["n_links"], found["output"]) == (4, 7, "links.txt")
        assert "links" not in found

    def test_a_quiet_run_says_nothing(self, run: Any) -> None:
        assert run("align", "a.en", "a.de", "-o", "links.txt", "-q").output == ""

    def test_options_reach_the_aligner(self, run: Any) -> None:
        run(
            "align", "a.en", "a.de", "-q", "-o", "l.txt", "--symmetrize", "product", "--model", "ibm1",
            "--no-agreement", "--inference", "CVI(max_iter=4)", "--iterations", 2, "--seed", 7, "--jobs", 1,
            "--threshold", 0.3, "--lowercase",
        )  # fmt: skip
        (aligner,) = Diagonal.made
        inference = aligner.settings.pop("inference")
        assert (type(inference).__name__, inference.max_iter) == ("CVI", 4)
        assert aligner.settings == {
            "symmetrize": "product", "stages": ("ibm1",), "agreement": False, "random_state": 7, "n_jobs": 1,
            "iterations": 2, "threshold": 0.3, "progress": False,
        }  # fmt: skip
        assert aligner.text.target_words == ["das", "haus", "nichts", "grüne", "ein"]

    @pytest.mark.parametrize("name", ["cvi", "gibbs", "EM"])
    def test_a_bare_name_of_an_algorithm_stays_a_name(self, run: Any, name: str) -> None:
        run("align", "a.en", "a.de", "--inference", name)
        assert Diagonal.made[0].settings["inference"] == name.lower()

    def test_what_is_not_given_is_left_to_the_aligner(self, run: Any) -> None:
        run("align", "a.en", "a.de")
        assert Diagonal.made[0].settings.keys() == {"progress", "stages", "agreement", "random_state"}

    def test_a_fitted_aligner_is_stored_and_used_again(self, run: Any) -> None:
        run("align", "a.en", "a.de", "-o", "links.txt", "--save", "en-de.safetensors")
        assert Path("en-de.safetensors").read_text() == "aligner"
        run("align", "a.en", "a.de", "--fitted", "en-de.safetensors", "--symmetrize", "union")
        assert Diagonal.made[-1].calls == []
        assert Diagonal.made[-1].settings == {"loaded": "en-de.safetensors", "symmetrize": "union"}
        run("align", "a.en", "a.de", "--priors", "en-de.safetensors")
        ((_, prior),) = Diagonal.made[-2].calls or Diagonal.made[-1].calls
        assert prior.settings == {"loaded": "en-de.safetensors"}
        fitted = next(one for one in reversed(Diagonal.made) if one.calls)
        assert (fitted.settings["max_jump"], fitted.settings["end_jumps"]) == (7, False)

    def test_a_prior_may_have_jumps_of_its_own(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(alignment, "WordAligner", WordAligner)
        known = WordAligner(max_jump=3, end_jumps=False, progress=False).fit(SOURCE.split("\n"), TARGET.split("\n"))
        known.save("known")
        run("align", "a.en", "a.de", "--priors", "known", "--save", "new", "-q")
        assert (WordAligner.load("new").max_jump, WordAligner.load("new").end_jumps) == (3, False)

    def test_gold_links_are_checked_before_the_fit(self, run: Any) -> None:
        for content, status, told in (
            ("0-0\n" * 5, 2, "'gold.a' has 5 lines, but the text has 4"),
            ("0-7\n", 3, "line 1 of 'gold.a' links target position 7"),
            ("0?0\n", 2, "'gold.a' has no sure links"),
            ("house\n", 3, "line 1 of 'gold.a'"),
        ):
            Path("gold.a").write_text(content)
            assert told in run("align", "a.en", "a.de", "--report", "p", "--gold", "gold.a", status=status).stderr
            assert Diagonal.made == []


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "status", "told"),
        [
            (["a.en", "a.fr"], 3, "there is no file 'a.fr'"),
            (["a.en", "book.txt"], 2, "'a.en' has 4 lines, but 'book.txt' has 40"),
            (["a.en"], 3, "line 1 of 'a.en' has 0 separators '|||'"),
            (["a.en", "a.de", "--format", "giza"], 2, "unknown value of --format: 'giza'"),
            (["a.en", "a.de", "--symmetrize", "grow"], 2, "unknown value of --symmetrize: 'grow'"),
            (["a.en", "a.de", "--model", "ibm4"], 2, "unknown value of --model: 'ibm4'"),
            (["a.en", "a.de", "--inference", "mcmc"], 2, "unknown value of --inference: 'mcmc'"),
            (["a.en", "a.de", "--priors", "none"], 3, "there is no file 'none'"),
            (["a.en", "a.de", "--fitted", "a.en", "--save", "b"], 2, "--fitted fits nothing; leave out --save."),
            (["a.en", "a.de", "--fitted", "a.en", "--model", "hmm", "--seed", "0"], 2, "leave out --model, --seed."),
            (["a.en", "a.de", "--fitted", "a.en", "--iterations", "3"], 2, "leave out --iterations."),
            (["a.en", "a.de", "--fitted", "a.en", "--no-agreement"], 2, "leave out --agreement/--no-agreement."),
            (
                ["a.en", "a.de", "--symmetrize", "union", "--threshold", "0.5"],
                2,
                "--threshold is for --symmetrize prod",
            ),
            (["a.en", "a.de", "-o", "a.en"], 4, "'a.en' is also an input"),
            (["a.en", "a.de", "-o", "none/links.txt"], 4, "the folder 'none' does not exist"),
            (["a.en", "a.de", "-o", "x", "--save", "./x"], 2, "-o and --save name the same file, 'x'"),
            (["a.en", "a.de", "--save", "x", "--report", "x"], 2, "--save and --report name the same file"),
            (["empty", "empty"], 2, "the text has no words on one of its sides"),
            (["a.en", "latin"], 3, "line 3 of 'latin' is not UTF-8 text"),
        ],
    )
    def test_they_are_told_in_one_line(self, run: Any, arguments: list[str], status: int, told: str) -> None:
        Path("empty").write_text("")
        Path("latin").write_bytes(TARGET.encode("latin-1"))
        result = run("align", *arguments, status=status)
        assert told in result.stderr
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""

    def test_an_interrupted_run_writes_nothing(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("links.txt").write_text("old\n")
        monkeypatch.setattr(Diagonal, "status_", "interrupted")
        before = set(Path.cwd().iterdir())
        told = run("align", "a.en", "a.de", "-o", "links.txt", "--save", "s.safetensors", status=130)
        assert "interrupted; nothing was written" in told.stderr
        assert Path("links.txt").read_text() == "old\n"
        assert set(Path.cwd().iterdir()) == before

    def test_nor_does_one_that_fails_while_it_writes(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        before = set(Path.cwd().iterdir())
        monkeypatch.setattr("subchain.data.links.write_lines", fail)
        told = run("align", "a.en", "a.de", "-o", "links.txt", status=4)
        assert "the disk is full" in told.stderr
        assert set(Path.cwd().iterdir()) == before


class TestScore:
    @pytest.fixture(autouse=True)
    def gold(self) -> None:
        Path("links.txt").write_text(DIAGONAL)
        Path("gold.a").write_text("0-0 1-1\n\n0-0 2-2 1?1 2?1\n0-1\n")

    def test_scores_are_printed_with_intervals(self, run: Any) -> None:
        told = run("align-score", "links.txt", "gold.a").stdout
        assert "links           7 found, 5 sure, 7 sure or possible" in told
        assert "precision        71.43%   95% interval" in told
        assert "recall           80.00%" in told
        assert "AER              25.00%" in told

    def test_json_has_them_too(self, answer: Any) -> None:
        found = answer("align-score", "links.txt", "gold.a", "--level", 0.9)
        assert found["aer"] == pytest.approx(0.25)
        assert found["intervals"]["aer"][0] <= 0.25 <= found["intervals"]["aer"][1]
        assert (found["n_pairs"], found["n_links"], found["n_sure"], found["n_possible"]) == (4, 7, 5, 7)

    def test_lines_of_a_longer_file_can_be_chosen(self, answer: Any) -> None:
        Path("long.txt").write_text("9-9\n" + DIAGONAL + "8-8\n")
        assert answer("align-score", "long.txt", "gold.a", "--lines", "2-5") == answer(
            "align-score", "links.txt", "gold.a"
        )

    def test_chosen_lines_are_checked_by_the_text_of_the_gold(self, run: Any) -> None:
        Path("long.txt").write_text("9-9\n0-0\n\n0-0 1-7\n0-0\n")
        told = run("align-score", "long.txt", "gold.a", "--lines", "2-5", "--text", "a.en", "a.de", status=3).stderr
        assert "line 4 of 'long.txt' links target position 7, but the target sentence has 3 tokens" in told

    def test_gold_links_may_have_the_target_first(self, run: Any, answer: Any) -> None:
        Path("links.txt").write_text("0-1 0-2\n0-1\n")
        Path("gold.a").write_text("1-0 2-0\n1-0\n")
        assert answer("align-score", "links.txt", "gold.a", "--swap")["aer"] == 0.0
        assert "add --swap if GOLD has the target position first" in run("align-score", "links.txt", "gold.a").stderr

    @pytest.mark.parametrize(
        ("arguments", "status", "told"),
        [
            (["links.txt", "none.a"], 3, "there is no file 'none.a'"),
            (["links.txt", "short.a"], 2, "'links.txt' has 4 lines, but 'short.a' has 1"),
            (["links.txt", "gold.a", "--lines", "2-5"], 2, "--lines 2-5 is outside 'links.txt', which has 4 lines"),
            (["links.txt", "gold.a", "--lines", "5"], 2, "--lines must be a range such as 38-484"),
            (["links.txt", "outside.a", "--text", "a.en", "a.de"], 3, "line 3 of 'outside.a' links source position 7"),
            (["a.en", "gold.a"], 3, "line 1 of 'a.en' holds 'the'"),
            (["links.txt", "possible.a"], 2, "the gold has no sure links"),
        ],
    )
    def test_mistakes_are_told_in_one_line(self, run: Any, arguments: list[str], status: int, told: str) -> None:
        Path("short.a").write_text("0-0\n")
        Path("outside.a").write_text("0-0\n\n7-0\n\n")
        Path("possible.a").write_text("0?0\n\n\n\n")
        result = run("align-score", *arguments, status=status)
        assert told in result.stderr
        assert result.stderr.count("\n") == 1

    def test_mistakes_are_told_in_json(self, run: Any) -> None:
        found = json.loads(run("align-score", "links.txt", "none.a", "--json", status=3).stdout)
        assert found["exit_code"] == 3


class TestRealAligner:
    @pytest.fixture(autouse=True)
    def real(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(alignment, "WordAligner", WordAligner)
        rng = np.random.default_rng(0)
        sentences = [rng.permutation(8)[: rng.integers(1, 6)] for _ in range(60)]
        sentences[7] = sentences[7][:0]
        for side in ("en", "de"):
            order = slice(None) if side == "en" else slice(None, None, -1)
            lines = [" ".join(f"{side}{word}" for word in sentence[order]) + "\n" for sentence in sentences]
            Path(f"b.{side}").write_text("".join(lines))
        self.expected = ["".join(f"{i}-{len(s) - 1 - i} " for i in range(len(s))).strip() for s in sentences]

    def test_words_in_reverse_order_are_linked(self, run: Any) -> None:
        run("align", "b.en", "b.de", "-o", "links.txt", "--save", "b.safetensors")
        links = Path("links.txt").read_text().splitlines()
        assert len(links) == 60
        assert links[7] == ""
        agreed = sum(found == wanted for found, wanted in zip(links, self.expected, strict=True))
        assert agreed >= 57
        again = run("align", "b.en", "b.de", "--fitted", "b.safetensors").stdout.splitlines()
        assert sum(found == wanted for found, wanted in zip(again, self.expected, strict=True)) >= 57
        Path("c.en").write_text("en1 en2\n\nen3 unseen\n")
        Path("c.de").write_text("de2 de1\nde1\nde3\n")
        for option in ("--fitted", "--priors"):
            found = run("align", "c.en", "c.de", option, "b.safetensors").stdout.splitlines()
            assert found[:2] == ["0-1 1-0", ""]

    def test_results_do_not_depend_on_threads(self, run: Any) -> None:
        one, two = (run("align", "b.en", "b.de", "--jobs", n).stdout for n in (1, 2))
        assert one == two

    @pytest.mark.parametrize("inference", ["em", "vi", "scvi", "gibbs", "CVI(max_iter=2)"])
    def test_every_algorithm_aligns(self, run: Any, inference: str) -> None:
        links = run("align", "b.en", "b.de", "--inference", inference).stdout.splitlines()
        assert len(links) == 60
        assert links[7] == ""

    def test_a_model_of_another_kind_is_refused(self, run: Any) -> None:
        model = HMM.from_parameters([0.5, 0.5], np.eye(2), Categorical.from_parameters(np.eye(2)))
        model.save("hmm.safetensors")
        told = run("align", "b.en", "b.de", "--fitted", "hmm.safetensors", status=3).stderr
        assert "hmm.safetensors" in told
        assert told.count("\n") == 1

    def test_very_long_sentences_are_read_and_noted(self, run: Any) -> None:
        Path("long.en").write_text(Path("b.en").read_text() + "en1 " * 10_000 + "\n")
        Path("long.de").write_text(Path("b.de").read_text() + "de1 " * 10_000 + "\n")
        result = run("align", "long.en", "long.de", "-o", "links.txt")
        assert "sentence pair 60 has a sentence of more than 1,000 words and no links" in result.stderr
        assert Path("links.txt").read_text().splitlines()[-1] == ""


class TestPagesAndLargeTexts:
    """With the real aligner: pages, and texts that are packed first."""

    @pytest.fixture(autouse=True)
    def real(self, monkeypatch: pytest.MonkeyPatch, text: None) -> None:
        monkeypatch.setattr(alignment, "WordAligner", WordAligner)

    def test_stochastic_inference_packs_the_text_and_leaves_nothing_behind(self, run: Any) -> None:
        before = set(Path.cwd().iterdir())
        run("align", "a.en", "a.de", "-o", "links.txt", "--inference", "scvi", "-q")
        assert len(Path("links.txt").read_text().splitlines()) == 4
        assert set(Path.cwd().iterdir()) == before | {Path.cwd() / "links.txt"}

    def test_a_run_that_is_interrupted_while_it_writes_leaves_nothing(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: Any) -> Iterator[Links]:
            yield Links.from_pairs([[(0, 0)]])
            raise KeyboardInterrupt

        monkeypatch.setattr(WordAligner, "link_blocks", interrupted)
        before = set(Path.cwd().iterdir())
        run("align", "a.en", "a.de", "-o", "links.txt", "--inference", "scvi", status=130)
        assert set(Path.cwd().iterdir()) == before

    def test_a_page_is_written_with_gold_links(self, run: Any) -> None:
        Path("gold.a").write_text("0-0 1-1\n\n")
        told = run("align", "a.en", "a.de", "-o", "links.txt", "--report", "page.html", "--gold", "gold.a").stdout
        assert "report written to page.html" in told
        assert "alignment error rate" in Path("page.html").read_text(encoding="utf8")

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (["--gold", "gold.a"], "--gold is for the page of --report"),
            (["--report", "page.html", "--swap"], "--swap is for the links of --gold"),
            (["--report", "page.html", "--gold", "none.a"], "there is no file 'none.a'"),
        ],
    )
    def test_options_of_the_page_that_do_not_fit_are_refused(self, run: Any, arguments: list[str], told: str) -> None:
        Path("gold.a").write_text("0-0\n")
        status = 3 if "none.a" in arguments else 2
        assert told in run("align", "a.en", "a.de", "-o", "links.txt", *arguments, status=status).stderr
        assert not Path("links.txt").exists()
