"""The Typer application: all commands, with examples."""

from __future__ import annotations

from typing import Annotated

import typer

from subchain.cli.align import align
from subchain.cli.align_score import align_score
from subchain.cli.compare import compare
from subchain.cli.demo import demo
from subchain.cli.exit_codes import MEANINGS
from subchain.cli.fit import fit
from subchain.cli.forecast import forecast
from subchain.cli.grammar_fit import grammar_fit
from subchain.cli.grammar_parse import grammar_parse
from subchain.cli.grammar_report import grammar_report
from subchain.cli.grammar_sample import grammar_sample
from subchain.cli.grammar_score import grammar_score
from subchain.cli.impute import impute
from subchain.cli.info import info
from subchain.cli.lm import lm
from subchain.cli.options import AsJson, examples
from subchain.cli.output import command_output
from subchain.cli.predict import predict
from subchain.cli.rename import rename
from subchain.cli.report import report
from subchain.cli.sample import sample
from subchain.cli.score import score
from subchain.cli.select import select
from subchain.errors import InputError

_CODES = "Exit codes:\n" + "\n".join(f"  {int(code):<4}{meaning}" for code, meaning in MEANINGS.items())

app = typer.Typer(
    name="subchain",
    help="Hidden Markov models on data too large, too long or too little understood for the usual tools.",
    epilog=examples(
        "subchain demo",
        "subchain fit book.txt --unit characters -o book.safetensors",
        "subchain info book.safetensors",
    ) + "\n\n" + _CODES,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip

app.command(epilog=examples("subchain demo", "subchain demo -o alice.html", "subchain demo --json"))(demo)
app.command(
    epilog=examples(
        "subchain fit book.txt --unit characters -o book.safetensors",
        "subchain fit walk.csv --columns speed,angle --sequence animal --states 4",
        "subchain fit marks.npz --array GM12878,K562 --states 15 --holdout 0.05",
        "subchain fit corpus/ --infinite --max-states 60 --time-limit 300",
        "subchain fit chain.npy --inference 'SCVI(length=10, boundary=Guards())'",
        "subchain fit big.npy --checkpoint run.ckpt     (and again with --resume)",
        "subchain fit walk.csv --states 4 --save-settings run.toml",
        "subchain fit --settings run.toml --states 5 -o five.safetensors",
    )
)(fit)
app.command(
    epilog=examples(
        "subchain select walk.csv --columns speed,angle --sequence animal --states 2-8",
        "subchain select walk.csv --states 2,4,8 --criterion held-out --folds 10",
    )
)(select)
app.command(
    epilog=examples(
        "subchain predict model.safetensors walk.csv -o states.csv",
        "subchain predict model.safetensors walk.csv --join -o walk-with-states.csv",
        "subchain predict model.safetensors walk.csv --probabilities -o p.npy",
        "subchain predict model.safetensors marks.npz --decoding viterbi -o segments.bed --chrom chr11 --bin 200",
        "subchain predict model.safetensors marks.npz --array GM12878,K562 --chrom chr11 --bin 200 -o '{sequence}.bed'",
    )
)(predict)
app.command(
    epilog=examples(
        "subchain score model.safetensors test.csv",
        "subchain score model.safetensors test.txt --each --json",
    )
)(score)
app.command(
    epilog=examples(
        "subchain sample model.safetensors -n 500 --seed 1",
        "subchain sample model.safetensors -n 100 --given past.csv -o next.csv",
    )
)(sample)
app.command(
    epilog=examples(
        "subchain forecast model.safetensors walk.csv --steps 5",
        "subchain forecast model.safetensors walk.csv --steps 24 --interval 0.5 -o next.csv",
    )
)(forecast)
app.command(epilog=examples("subchain impute model.safetensors gaps.csv -o complete.csv"))(impute)
app.command(
    epilog=examples(
        "subchain rename model.safetensors 0=resting 1=walking",
        "subchain rename model.safetensors --names names.json -o named.safetensors",
    )
)(rename)
app.command(epilog=examples("subchain info model.safetensors", "subchain info model.safetensors --json"))(info)
app.command(epilog=examples("subchain compare four.safetensors five.safetensors test.csv"))(compare)
app.command(
    epilog=examples(
        "subchain report model.safetensors walk.csv -o report.html",
        "subchain report model.safetensors bins.npy --step 200 --step-unit bp -o report.html",
    )
)(report)
app.command(
    epilog=examples(
        "subchain align text.en text.fr -o links.txt",
        "subchain align text.en.gz text.fr.gz --lowercase --format moses -o links.txt",
        "subchain align joined.txt --symmetrize grow-diag-final-and > links.txt",
        "subchain align text.en text.fr -o links.txt --save en-fr.safetensors",
        "subchain align new.en new.fr -o new.txt --fitted en-fr.safetensors",
        "subchain align new.en new.fr -o new.txt --priors en-fr.safetensors",
    )
)(align)
app.command(
    "align-score",
    epilog=examples(
        "subchain align-score links.txt gold.a",
        "subchain align-score links.txt gold.a --swap --lines 38-484",
        "subchain align-score links.txt gold.a --text test.en test.fr --json",
    ),
)(align_score)

grammar = typer.Typer(
    help="Learn grammars, of dependencies or of phrases, from sentences or a treebank; parse and score.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(grammar, name="grammar")
grammar.command(
    "fit",
    epilog=examples(
        "subchain grammar fit tags.txt -o grammar.safetensors",
        "subchain grammar fit train.conllu --column xpos --no-punctuation --max-length 10 -o grammar.safetensors",
        "subchain grammar fit tags.txt --inference vi --concentration 1 -o grammar.safetensors",
        "subchain grammar fit sentences.txt --rules grammar.cfg --inference cvi -o grammar.safetensors",
        "subchain grammar fit sentences.txt --nonterminals 10 --preterminals 20 -o grammar.safetensors",
        "subchain grammar fit treebank.mrg --model latent --annotations 4 --inference cvi -o grammar.safetensors",
    ),
)(grammar_fit)
grammar.command(
    "parse",
    epilog=examples(
        "subchain grammar parse grammar.safetensors test.conllu -o parsed.conllu",
        "subchain grammar parse grammar.safetensors tags.txt --method mbr --format heads",
        "subchain grammar parse grammar.safetensors tags.txt --format tree",
        "subchain grammar parse latent.safetensors sentences.txt -o parsed.mrg",
    ),
)(grammar_parse)
grammar.command(
    "report",
    epilog=examples(
        "subchain grammar report grammar.safetensors test.conllu -o trees.html",
        "subchain grammar report latent.safetensors test.mrg --max-length 40 -o trees.html",
    ),
)(grammar_report)
grammar.command(
    "sample",
    epilog=examples(
        "subchain grammar sample grammar.safetensors -n 10 --format tree",
        "subchain grammar sample grammar.safetensors -n 1000 --seed 1 -o made-up.conllu",
    ),
)(grammar_sample)
grammar.command(
    "score",
    epilog=examples(
        "subchain grammar score grammar.safetensors test.conllu --no-punctuation --max-length 10",
        "subchain grammar score grammar.safetensors tags.txt --json",
        "subchain grammar score latent.safetensors test.mrg",
    ),
)(grammar_score)


app.add_typer(lm)


@app.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def experiments(as_json: AsJson = False) -> None:
    """Raise an error that says where the experiments are now."""
    with command_output(as_json):
        raise InputError("the experiments left the package: run `python -m experiments list` in a copy of the sources.")


def _version(wanted: bool) -> None:
    if wanted:
        from subchain import __version__

        print(f"subchain {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
