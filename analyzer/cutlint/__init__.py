"""cutlint: exact shared-memory lint of CUTLASS MoE GEMM instantiations, before anything is built."""

__version__ = "0.1.0"
