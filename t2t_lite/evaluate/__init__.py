"""Scores: BLEU and labelled brackets."""
