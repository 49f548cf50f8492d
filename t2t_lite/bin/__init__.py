"""The commands: flags in, one call out (floor 5)."""
