"""BLEU and chrF2 of translations."""
