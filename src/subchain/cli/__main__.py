"""Entry point of `python -m subchain.cli`."""

from subchain.cli import main

main()
