"""`python -m subchain`: the command line."""

from subchain.cli import main

if __name__ == "__main__":
    main()
