"""`python -m wcpod`: the command line."""

from wcpod.cli import main

if __name__ == "__main__":
    main()
