"""SavedModel export, its use from Python, and a client of TensorFlow Serving."""
