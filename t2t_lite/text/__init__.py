"""Vocabularies, files of text, parallel text and what is left out of it."""
