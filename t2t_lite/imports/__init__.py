"""Models that other frameworks trained, as output_dirs of this one."""
