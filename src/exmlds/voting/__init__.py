"""Methods whose nearest training rows vote: fit, search, settings, memory, label space and explanation."""
