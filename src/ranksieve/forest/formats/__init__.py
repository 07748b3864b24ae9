"""Model formats, read and written: one module per format, or one for reading and one for writing.

A reader makes `Nodes`, one table per tree; `join_nodes` checks and joins them. A writer checks with `writing`
what the format can express and refuses the rest. `model_files` detects the format of a file.
"""
