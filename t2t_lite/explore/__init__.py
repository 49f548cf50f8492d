"""A page that shows what a model does, and the same as arrays."""
