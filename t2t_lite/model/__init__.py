"""The Transformer's layers and the model; `variants` chooses parts that are not the paper's."""
