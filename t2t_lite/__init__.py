"""The Transformer of "Attention Is All You Need", after tensor2tensor, on TensorFlow 2."""
