"""`python -m subchain.cli` is `subchain`."""

from subchain.cli import main

main()
