"""Models of other libraries, read and written: one module per format.

A reader makes `Nodes`, one table per tree, which `nodes.to_forest` checks and joins. A writer first asks
`expressible` for what the consumer can hold, and refuses what it cannot. `files` tells formats apart.
"""
