"""The named hyperparameter sets."""
