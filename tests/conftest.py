"""Its place makes the modules beside it importable from every test."""

import os

# small kernels by the thousand: threads that spin between them starve each other on a busy machine
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
