"""Compiler-exact footprints: libclang evaluates what a launcher's own text says, over the checkout's own headers.

    launcher + arguments → probe text → units → worker processes (libclang) → footprints → cache

`engine` is the way in. Only `evaluate` touches libclang, and only worker processes import it.
"""
