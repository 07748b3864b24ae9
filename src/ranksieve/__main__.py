"""`python -m ranksieve`."""

from ranksieve.cli import main

main()
