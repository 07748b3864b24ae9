"""Data in: files, tables and arrays as lists of documents; bins; generators."""
