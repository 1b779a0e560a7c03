"""Model folders, checkpoints of a fit, and reading and replacing single files."""
