"""The problems that ship with the library: what to learn, from which files."""
