"""Trees, treebanks, the grammar of outputs, and EVALB."""
