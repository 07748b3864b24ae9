"""Kernels for NVIDIA GPUs (numba-cuda), the twins of those in `kernels`: arrays on the device in, arrays out."""
