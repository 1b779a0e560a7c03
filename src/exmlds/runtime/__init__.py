"""How work runs: threads, progress and memory."""
