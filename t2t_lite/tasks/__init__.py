"""What everything above data needs to know of a problem: translation, parsing."""
