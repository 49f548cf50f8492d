"""SavedModel export, the TensorFlow Serving client, and a stand-in for the server."""
