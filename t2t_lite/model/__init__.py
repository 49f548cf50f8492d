"""The Transformer's layers and the model."""
