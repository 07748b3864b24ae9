"""Data in: files, tables and arrays as lists of documents; bins; generators."""

import os

# Arrow's other allocators keep what was freed; training needs that memory. No effect where pyarrow is imported already.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
