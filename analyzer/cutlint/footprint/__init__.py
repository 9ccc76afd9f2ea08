"""The shared memory of one kernel, from its configuration: totals, regions, and whether CUTLASS compiles it at all."""
