"""Execution: threads, progress and memory estimates."""
