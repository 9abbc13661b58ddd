"""`subchain lm`: neural HMMs as language models; `lm_train.py`, `lm_score.py` and `lm_sample.py` are the commands."""

from __future__ import annotations

import typer

from subchain.cli.lm_sample import lm_sample
from subchain.cli.lm_score import lm_score
from subchain.cli.lm_train import lm_train
from subchain.cli.options import examples

lm = typer.Typer(
    name="lm",
    help="Language models: hidden Markov models with many states and neural parameters. They need PyTorch.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
lm.command(
    "train",
    epilog=examples(
        "subchain lm train train.txt --validation valid.txt --states 1024 --groups classes.txt -o lm.safetensors",
        "subchain lm train train.txt --states 2048 --features 256 -o lm.safetensors",
        "subchain lm train train.txt --states 1024 --checkpoint run.ckpt     (and again with --resume)",
    ),
)(lm_train)
lm.command("score", epilog=examples("subchain lm score lm.safetensors test.txt"))(lm_score)
lm.command("sample", epilog=examples("subchain lm sample lm.safetensors -n 200 --seed 1"))(lm_sample)
