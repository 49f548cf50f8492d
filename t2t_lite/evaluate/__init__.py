"""BLEU and chrF of translations."""
