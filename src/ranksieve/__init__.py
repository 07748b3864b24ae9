"""ranksieve: learning to rank that sieves."""

__version__ = "0.1.0"
