"""`subchain info`: what a model file holds."""

from __future__ import annotations

from subchain.cli import options
from subchain.cli.conversation import conversation, number_of


def info(model: options.ModelPath, as_json: options.AsJson = False) -> None:
    """Show what a model holds: how it was made, what each state emits and how long it lasts."""
    with conversation(as_json) as talk:
        from subchain.cli.inputs import load_model
        from subchain.cli.states import ENDS, show_states, summary

        found = load_model(model)
        talk.fact(model=str(model), **summary(found))
        symbols = [len(vocabulary) for vocabulary in found.vocabularies_ if vocabulary is not None]
        steps = len(found.trace_)
        facts = {
            "emission": str(found.family_),
            "transition": "Dirichlet()" if found.transition is None else str(found.transition),
            "inference": str(found.inference),
            "learned from": number_of(found.n_sequences_, "sequence") if found.n_sequences_ else "no data",
            "columns": ", ".join(found.columns_ or ()),
            "symbols": ", ".join(map(str, symbols)),
            "run": f"{ENDS[found.status_]} after {number_of(steps, 'iteration')}" if steps else "",
            "held-out score": f"{found.trace_.validation[-1]:.4f}" if found.trace_.validation else "",
        }
        talk.say(str(model))
        for name, text in facts.items():
            if text:
                talk.say(f"  {name:<15}{text}")
        show_states(talk, found)
