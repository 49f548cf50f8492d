"""Beam search and the translation of text."""
