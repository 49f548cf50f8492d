"""The named hyperparameter sets.

Imported as t2t_lite.hparams. Your own lie in a folder of yours (--t2t_usr_dir): docs/extend.md.
"""
