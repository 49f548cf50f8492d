"""Decoding: search, cached decoder, translator, files of text."""
