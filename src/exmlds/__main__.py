"""`python -m exmlds`."""

from .cli import main

if __name__ == "__main__":
    main()
