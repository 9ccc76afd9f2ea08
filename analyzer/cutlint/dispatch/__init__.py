"""What the autotuner is offered, what the dispatch code makes of it, and whether that was instantiated.

The tactics come from host code: `cutlass_heuristic.cpp` lists candidates, the dispatch headers turn one into a
launcher's template arguments. That code is read and followed here as the compiler and the CPU would: one preprocessor,
one reader of functions, one small interpreter that runs what is known and follows both ways where it is not.
"""
