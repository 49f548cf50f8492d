"""The commands: flags in, one call out."""
