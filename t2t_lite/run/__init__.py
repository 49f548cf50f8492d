"""What an output_dir holds: hparams, run, vocabulary, checkpoints, averaged and best weights."""
