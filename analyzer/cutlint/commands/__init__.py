"""The commands, one module each. They say what a user can type; the work is done by the modules they call."""
