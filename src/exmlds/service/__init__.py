"""A model behind HTTP: suggestions, explanations, growth and feedback, and a page to work with it."""
