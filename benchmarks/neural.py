"""`python -m benchmarks.neural`: a neural HMM on Penn Treebank: words a second, memory, perplexity by epoch.

It needs PyTorch; a GPU is taken where there is one. Words are divided into classes by `--groups FILE` (a word and its
class in each line), or by the exchange algorithm (`subchain.data.word_classes`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subchain.data import Sequences, word_classes
from subchain.neural import LowRank, Softmax, Training
from subchain.neural.batches import Text
from subchain.neural.device import resolve_device
from subchain.neural.emissions import WordTable
from subchain.neural.parameters import PRECISIONS, Networks
from subchain.neural.progress import line
from subchain.neural.training import Trainer, whole_perplexity

#: Word that ends sentences.
END = "<eos>"


def read(path: Path) -> list[list[str]]:
    """Return the sentences of a file with one in each line, with the word that ends them."""
    with gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open(encoding="utf8") as file:
        return [[*line.split(), END] for line in file if line.split()]


def coded(sentences: list[list[str]], codes: dict[str, int]) -> Text:
    """Return sentences as text; words that are not known are not there in these corpora."""
    words = np.array([codes[word] for sentence in sentences for word in sentence])
    offsets = np.concatenate(([0], np.cumsum([len(sentence) for sentence in sentences])))
    return Text.of(words, offsets, joined=False)


def classes(path: Path | None, codes: dict[str, int], text: Text, n_groups: int) -> np.ndarray:
    """Return the class of each word: from a file, or by the exchange algorithm, numbered without gaps.

    Words that do not occur join the first class.
    """
    if path is not None:
        name_of = dict(row.split("\t")[:2] for row in path.read_text(encoding="utf8").splitlines())
        names = {name: number for number, name in enumerate(sorted({name_of[word].strip() for word in codes}))}
        return np.array([names[name_of[word].strip()] for word in codes])
    begin = time.perf_counter()
    found = word_classes(Sequences(text.words, text.chains()), n_groups)
    print(f"classes of words in {time.perf_counter() - begin:.1f} s", flush=True)
    known = np.zeros(len(codes), dtype=np.int64)
    known[: len(found)] = found
    return np.unique(known, return_inverse=True)[1]


def synchronised(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def run(options: argparse.Namespace) -> dict[str, Any]:
    folder, device = Path(options.data), resolve_device(options.device)
    suffix = ".txt.gz" if (folder / "ptb.train.txt.gz").exists() else ".txt"
    parts = {name: read(folder / f"ptb.{name}{suffix}") for name in ("train", "valid", "test")}
    words = dict.fromkeys(word for sentence in parts["train"] for word in sentence)
    codes = {word: code for code, word in enumerate(words)}
    texts = {name: coded(sentences[: options.sentences], codes) for name, sentences in parts.items()}
    groups = classes(options.groups, codes, texts["train"], options.classes)
    n_groups = int(groups.max()) + 1
    transition = LowRank(options.features) if options.features else Softmax()
    settings = Training(
        epochs=options.epochs, batch=options.batch, streams=options.streams, length=options.length,
        learning_rate=options.rate, averaging=options.averaging, state_dropout=options.dropout,
        network_dropout=options.network_dropout, weight_decay=options.decay, precision=options.precision,
    )  # fmt: skip
    settings.check(has_validation=True, joined=False)
    torch.manual_seed(options.seed)
    size = options.states // n_groups
    networks = Networks(len(codes), n_groups, size, options.embedding, transition)
    n_parameters = sum(parameter.numel() for parameter in networks.parameters())
    networks = networks.to(device=device, dtype=PRECISIONS[settings.precision][0])
    print(
        f"{size * n_groups} states, {n_groups} classes (largest {np.bincount(groups).max()} words), {n_parameters:,} "
        f"parameters, {len(texts['train'].words):,} words, {torch.__version__} on {_name(device)}", flush=True,
    )  # fmt: skip
    trainer = Trainer(networks, WordTable.of(groups, device), settings, texts["train"], texts["valid"], options.seed)
    if options.steps:
        return timed(trainer, options.steps)
    begin = synchronised(device)
    rows = []
    while not trainer.is_done and synchronised(device) - begin < options.seconds:
        start = synchronised(device)
        trainer.epoch()
        seconds = synchronised(device) - start
        networks_of = [network for network in (networks, trainer.averaged) if network is not None]
        test = min(whole_perplexity(network, trainer.table, texts["test"]) for network in networks_of)
        speed, memory = len(texts["train"].words) / seconds, peak(device)
        rows.append({"epoch": len(rows) + 1, "valid": trainer.trace.best[-1], "test": test, "words_a_second": speed})
        print(f"{line(trainer.trace)}; test {test:.2f}; {speed:,.0f} words/s with validation; {memory}", flush=True)
    return {"parameters": n_parameters, "epochs": rows}


def timed(trainer: Trainer, n: int) -> dict[str, Any]:
    """Return the speed of n updates after three that do not count, and where the time goes."""
    batches = [batch for batch, _ in zip(trainer._batches(), range(n + 3), strict=False)]
    carried = None
    for number, batch in enumerate(batches):
        if number == 3:
            start = synchronised(trainer.device)
        _, carried = trainer.update(batch, carried if batch.continues else None)
    seconds = synchronised(trainer.device) - start
    words = sum(int(batch.stretch.known.sum()) for batch in batches[3:])
    print(f"{words / seconds:,.0f} words/s in {len(batches) - 3} updates; {peak(trainer.device)}", flush=True)
    with torch.profiler.profile() as profile:
        for batch in batches[-3:]:
            trainer.update(batch, carried if batch.continues else None)
    order = "self_cuda_time_total" if trainer.device.type == "cuda" else "self_cpu_time_total"
    print(profile.key_averages().table(sort_by=order, row_limit=18, max_name_column_width=60))
    return {"words_a_second": words / seconds}


def peak(device: torch.device) -> str:
    if device.type != "cuda":
        return "memory not measured"
    return f"at most {torch.cuda.max_memory_allocated(device) / 2**30:.2f} GiB"


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "a processor"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/ptb", help="folder of ptb.{train,valid,test}.txt[.gz]")
    parser.add_argument("--groups", type=Path, help="file with a word and its class in each line")
    parser.add_argument("--classes", type=int, default=128, help="number of classes without a file")
    parser.add_argument("--states", type=int, default=1 << 15)
    parser.add_argument("--embedding", type=int, default=256)
    parser.add_argument("--features", type=int, default=0, help="low-rank transitions with so many features")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=240.0, help="begin no epoch after this")
    parser.add_argument("--steps", type=int, default=0, help="time so many updates, with a profile, instead of epochs")
    parser.add_argument("--batch", default="pieces")
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--decay", type=float, default=0.02)
    parser.add_argument("--averaging", type=float, default=0.999)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--network-dropout", type=float, default=0.1)
    parser.add_argument("--precision", default="mixed", choices=sorted(PRECISIONS))
    parser.add_argument("--sentences", type=int, help="use so many sentences of each part")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the result as JSON to this file")
    options = parser.parse_args()
    found = run(options)
    if options.out is not None:
        options.out.write_text(
            json.dumps(found | {"settings": {k: str(v) for k, v in vars(options).items()}}, indent=1)
        )


if __name__ == "__main__":
    main()
