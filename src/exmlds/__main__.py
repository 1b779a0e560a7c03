"""`python -m exmlds`."""

from .cli import main

main()
