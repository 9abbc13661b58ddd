"""`subchain align`: link the words of sentence pairs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from subchain.cli import align_options, options
from subchain.cli.output import Output, command_output, number_of

if TYPE_CHECKING:
    from subchain.data import GoldLinks, Links, ParallelText

#: Stages of fitting, by the model that links are taken from.
STAGES = {"ibm1": ("ibm1",), "diagonal": ("diagonal",), "hmm": ("ibm1", "hmm")}
#: Options of a fit, by the names of their parameters.
OF_A_FIT = {
    "model": "--model", "inference": "--inference", "iterations": "--iterations",
    "agreement": "--agreement/--no-agreement", "prefix": "--prefix", "rare": "--rare", "seed": "--seed",
    "priors": "--priors", "save": "--save",
}  # fmt: skip
#: Methods by which the two directions are combined.
SYMMETRIZATIONS = (
    "grow-product", "product", "grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union",
)  # fmt: skip


def align(
    context: typer.Context,
    source: align_options.Source,
    target: align_options.Target = None,
    output: align_options.LinksTarget = None,
    format: align_options.Format = "pharaoh",
    symmetrize: align_options.Symmetrize = None,
    threshold: align_options.Threshold = None,
    lowercase: align_options.Lowercase = False,
    columns: align_options.Columns = None,
    model: align_options.Model = "hmm",
    inference: align_options.Inference = None,
    iterations: align_options.Iterations = None,
    agreement: align_options.Agreement = True,
    prefix: align_options.Prefix = None,
    rare: align_options.Rare = None,
    priors: align_options.Priors = None,
    fitted: align_options.Fitted = None,
    save: align_options.Save = None,
    report: align_options.Report = None,
    gold: align_options.Gold = None,
    swap: align_options.Swap = False,
    seed: options.Seed = 0,
    jobs: align_options.Jobs = None,
    log: options.Log = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Link the words of sentence pairs that translate each other.

    Both directions are fitted to the text and combined. Line n of the output has the links of pair n. A pair with an
    empty sentence has none. An interrupted run writes nothing.
    """
    with command_output(as_json, quiet) as out, ExitStack() as stack:
        from subchain.cli.run_log import logging_to

        settings = {
            "symmetrize": symmetrize, "threshold": threshold, "stages": STAGES.get(model), "random_state": seed,
            "agreement": agreement, "iterations": iterations, "n_jobs": jobs, "prefix": prefix, "rare": rare,
        }  # fmt: skip
        _check(format, symmetrize, model, inference, priors, fitted)
        _check_links(context, fitted, symmetrize, threshold)
        _check_page(report, gold, swap)
        _check_targets({"-o": output, "--save": save, "--report": report}, (source, target, priors, fitted, gold))
        began = time.perf_counter()
        stack.enter_context(logging_to(log, verbose))
        text = _read(source, target, columns, lowercase, _packed(stack, inference, output))
        links = None if gold is None else _read_gold(gold, swap, text)
        progress = "auto" if not (verbose or quiet or as_json) else False
        aligner = _load(fitted, settings) if fitted else _fit(text, inference, priors, progress, settings)
        if save is not None:
            aligner.save(save)
        blocks = aligner.link_blocks(text) if fitted else aligner.link_blocks()
        n_links = _write(output, blocks, format, out, as_json)
        _tell(out, output, len(text), n_links, time.perf_counter() - began)
        if report is not None:
            _write_page(report, aligner, text if fitted else None, source, links)
            out.add(report=str(report))
            out.line(f"report written to {report}")


def _check(format: str, symmetrize: str | None, model: str, inference: str | None, *files: Path | None) -> None:
    """Raise an `InputError` for options that are unknown or contradict each other, before anything is read."""
    from subchain.cli.inputs import existing
    from subchain.data.links import FORMATS
    from subchain.errors import unknown_name

    for option, value, known in (
        ("--format", format, FORMATS), ("--symmetrize", symmetrize, SYMMETRIZATIONS), ("--model", model, STAGES),
    ):  # fmt: skip
        if value is not None and value not in known:
            raise unknown_name(f"value of {option}:", value, known)
    if inference is not None:
        _algorithm(inference)
    for path in files:
        if path is not None:
            existing(path)


def _check_links(context: typer.Context, fitted: Path | None, symmetrize: str | None, threshold: float | None) -> None:
    """Raise an `InputError` for options that would be ignored: of fitting, if nothing is fitted, or a threshold."""
    from subchain.errors import InputError

    given = [name for name in OF_A_FIT if _is_given(context, name)]
    if fitted is not None and given:
        raise InputError(f"--fitted fits nothing; leave out {', '.join(OF_A_FIT[name] for name in given)}.")
    if threshold is not None and symmetrize not in (None, "grow-product", "product"):
        raise InputError(
            f"--threshold is for --symmetrize product and grow-product, not for {symmetrize}; leave one of them out."
        )


def _is_given(context: typer.Context, name: str) -> bool:
    """Return whether an option is on the command line."""
    origin = context.get_parameter_source(name)
    return origin is not None and origin.name != "DEFAULT"


def _check_page(report: Path | None, gold: Path | None, swap: bool) -> None:
    """Raise an `InputError` for options of the page that belong to others, which were not given."""
    from subchain.cli.inputs import existing
    from subchain.errors import InputError

    if gold is not None and report is None:
        raise InputError("--gold is for the page of --report; subchain align-score compares links with gold links.")
    if swap and gold is None:
        raise InputError("--swap is for the links of --gold.")
    if gold is not None:
        existing(gold)


def _read_gold(path: Path, swap: bool, text: ParallelText) -> GoldLinks:
    """Return the gold links of the first pairs of a text; raise an error that names the file if they do not fit."""
    from subchain.data import read_gold
    from subchain.data.links import check_inside
    from subchain.errors import InputError
    from subchain.reports.alignment import first_pairs

    found, name = read_gold(path, swap=swap), repr(str(path))
    if len(found.sure) > len(text):
        raise InputError(f"{name} has {len(found.sure):,} lines, but the text has {len(text):,} sentence pairs.")
    check_inside(found.possible, first_pairs(text, len(found.sure)), name)
    if not len(found.sure.source):
        raise InputError(f"{name} has no sure links, i-j, without which there is no recall.")
    return found


def _write_page(report: Path, aligner: Any, text: ParallelText | None, source: Path, gold: GoldLinks | None) -> None:
    """Write the page on an aligner; without a text on the one that it was fitted to."""
    import subchain

    subchain.report(aligner, text, report, title=source.name, gold=gold)


def _check_targets(targets: Mapping[str, Path | None], sources: Iterable[Path | None]) -> None:
    """Raise an error if a file cannot be written, is one that is read, or is given by two options."""
    from subchain.cli.targets import check_target
    from subchain.errors import InputError

    options: dict[Path, str] = {}
    for option, path in targets.items():
        if path is None:
            continue
        check_target(path, *sources)
        other = options.setdefault(path.resolve(), option)
        if other != option:
            raise InputError(f"{other} and {option} name the same file, {str(path)!r}; give each a file of its own.")


def _algorithm(text: str) -> Any:
    """Return the call that an option gives."""
    from subchain.cli.calls import parse
    from subchain.cli.choices import INFERENCES

    return parse(text, "--inference", {name: INFERENCES[name] for name in ("cvi", "em", "vi", "scvi", "gibbs")})


def _evaluated(text: str | None) -> Any:
    """Return the algorithm of an option; a bare name stays one, since the aligner has settings of its own for names."""
    if text is None:
        return None
    call = _algorithm(text)
    return call.evaluate() if "(" in text else call.name.lower()


def _given(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _read(source: Path, target: Path | None, columns: str | None, lowercase: bool, packed: Path | None) -> ParallelText:
    """Return the text: from memory or, if the name of a packed file is given, mapped from that."""
    from subchain.cli.inputs import existing
    from subchain.data import pack_parallel, read_parallel
    from subchain.data.packed_parallel import SUFFIX
    from subchain.errors import InputError

    for path in (source, target):
        if path is not None:
            existing(path)
    chosen = chosen_columns(columns)
    if packed is None or source.suffix == SUFFIX:
        text = read_parallel(source, target, lowercase=lowercase, columns=chosen)
    else:
        text = pack_parallel(packed, source, target, lowercase=lowercase, columns=chosen)
    if not len(text.source_tokens) or not len(text.target_tokens):
        raise InputError("the text has no words on one of its sides; give files that are not empty.")
    return text


def chosen_columns(columns: str | None) -> tuple[str, str] | None:
    """Return the names of two columns that an option gives."""
    from subchain.errors import InputError

    if columns is None:
        return None
    first, comma, second = columns.partition(",")
    if not comma or "," in second:
        raise InputError(f"--columns must name two columns, as in --columns en,fr, not {columns!r}.")
    return first.strip(), second.strip()


def _packed(stack: ExitStack, inference: str | None, output: Path | None) -> Path | None:
    """Return a name for the packed text that stochastic inference works on, beside the output; it ends with `stack`."""
    if inference is None or _algorithm(inference).name != "SCVI":
        return None
    folder = None if output is None else output.absolute().parent
    return Path(stack.enter_context(TemporaryDirectory(dir=folder, prefix=".subchain-")), "text.pairs")


def _load(path: Path, settings: dict[str, Any] | None = None) -> Any:
    """Return the aligner of a file, with those settings that concern links."""
    from subchain import alignment

    aligner = alignment.WordAligner.load(path)
    given = {name: (settings or {}).get(name) for name in ("symmetrize", "threshold", "n_jobs")}
    return aligner if settings is None else aligner.set_params(**_given(**given))


def _fit(
    text: ParallelText, inference: str | None, priors: Path | None, progress: bool | str, settings: dict[str, Any]
) -> Any:
    """Return the aligner fitted to the text; an interrupted fit ends the command."""
    from subchain import alignment

    prior = None if priors is None else _load(priors)
    if prior is not None:  # there are no options for these
        settings = settings | {name: prior._read_with[name] for name in ("max_jump", "end_jumps")}
        if settings["prefix"] is None:
            settings |= {name: prior._read_with[name] for name in ("prefix", "rare")}
    aligner = alignment.WordAligner(progress=progress, **_given(inference=_evaluated(inference), **settings))
    aligner.fit(text, **_given(prior=prior))
    if getattr(aligner, "status_", None) == "interrupted":
        raise KeyboardInterrupt
    return aligner


def _write(output: Path | None, blocks: Iterable[Links], format: str, out: Output, as_json: bool) -> int:
    """Write links as they come, or add them to what is told as JSON; return their number."""
    from subchain.core.files import writing
    from subchain.data.links import Links, write_lines

    if output is not None:
        with writing(output) as file:
            return write_lines(blocks, file.write, format)[1]
    if not as_json:
        return write_lines(blocks, sys.stdout.write, format)[1]
    links = Links.joined(blocks)
    out.add(links=[pair.tolist() for pair in links])
    return len(links.source)


def _tell(out: Output, output: Path | None, n_pairs: int, n_links: int, seconds: float) -> None:
    """Tell what was written, and how fast."""
    rate = n_pairs / seconds
    out.add(
        output=None if output is None else str(output), n_pairs=n_pairs, n_links=n_links, seconds=seconds,
        pairs_per_second=rate,
    )  # fmt: skip
    if output is not None:
        told = f"{seconds:.1f} s, {rate:,.0f} pairs per second"
        out.line(f"{number_of(n_links, 'link')} of {number_of(n_pairs, 'sentence pair')} ({told})")
        out.line(f"links written to {output}")
