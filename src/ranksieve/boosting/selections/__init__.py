"""Selections: which rows the next tree is trained on.

A selection is a function of a `View` that returns row numbers, a `Selected`, or None for all rows. The rules here are
frozen dataclasses whose fields are their parameters. Every module of this package is loaded; to add a rule, add a file.
"""
