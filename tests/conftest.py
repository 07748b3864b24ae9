"""Its place makes the naive modules beside it importable from every test."""
