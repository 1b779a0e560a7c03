"""One file a method; `fit` reads like the paper's algorithm."""
