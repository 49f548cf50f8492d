"""The recipe: schedule, loss, optimizer, the training loop and what it reports."""
