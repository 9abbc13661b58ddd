"""`subchain info`: contents of a model file."""

from __future__ import annotations

from subchain.cli import options
from subchain.cli.output import command_output, number_of


def info(model: options.ModelPath, as_json: options.AsJson = False) -> None:
    """Show the contents of a model file: settings, and occupancy, dwell time and emissions of each state."""
    with command_output(as_json) as out:
        from subchain.cli.inputs import load_model
        from subchain.cli.states import ENDS, show_restarts, show_states, summary

        found = load_model(model)
        out.add(model=str(model), **summary(found))
        symbols = [len(vocabulary) for vocabulary in found.vocabularies_ if vocabulary is not None]
        steps = len(found.trace_)
        facts = {
            "emission": str(found.family_),
            "transition": "Dirichlet()" if found.transition is None else str(found.transition),
            "inference": str(found.inference),
            "fitted to": number_of(found.n_sequences_, "sequence") if found.n_sequences_ else "no data",
            "columns": ", ".join(found.columns_ or ()),
            "symbols": ", ".join(map(str, symbols)),
            "run": f"{ENDS[found.status_]} after {number_of(steps, 'iteration')}" if steps else "",
            "held-out score": f"{found.trace_.validation[-1]:.4f}" if found.trace_.validation else "",
        }
        out.line(str(model))
        for name, text in facts.items():
            if text:
                out.line(f"  {name:<15}{text}")
        show_restarts(out, found)
        show_states(out, found)
