"""The problems that ship with the library: what to learn, from which files.

Imported as t2t_lite.problems. Your own lie in a folder of yours (--t2t_usr_dir): docs/extend.md.
"""
