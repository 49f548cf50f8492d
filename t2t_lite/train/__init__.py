"""The recipe: schedule, loss, optimizer, checkpoints, the training loop."""
