"""A stand-in for TensorFlow Serving: its gRPC and REST interfaces over a folder of exports.

For tests, measurements and trying a model out where no TensorFlow Serving is at hand:

  python -m t2t_lite.bin.loopback_server --export_dir=export --servable_name=ende

It loads a SavedModel as TensorFlow knows it, with nothing of t2t-lite's model code, runs its
warm-up requests, gathers requests as the export's batching parameters say (see batcher), takes up
new versions, and answers errors with TensorFlow Serving's codes and words. By gRPC it has Predict,
by REST Predict, the status and the metadata of the model. It is not meant for production: one
model, on this machine alone.
"""

import threading
from concurrent import futures
from typing import Any, Self

import grpc

from t2t_lite import errors
from t2t_lite.serving import protocol, rest, served_model


class Server:
    """Serves a Model under a name, on ports of this machine alone.

    Args:
      model: what to serve.
      name: under which name.
      port: of gRPC; 0 takes a free one.
      rest_port: of REST; 0 takes a free one.
      poll_wait: seconds between two looks for new versions.

    Raises:
      UserError: where a port is in use.
    """

    def __init__(
        self,
        model: served_model.Model,
        name: str,
        *,
        port: int = 0,
        rest_port: int = 0,
        poll_wait: float = 1.0,
    ):
        self.model = model
        self.name = name
        handler = type("Handler", (rest.Handler,), {"serving": self})
        try:
            self._http = rest.Server(("127.0.0.1", rest_port), handler)
        except OSError as error:
            raise errors.UserError(f"REST port {rest_port} cannot be had: {error}") from error
        self.rest_port = self._http.server_port
        self._grpc = grpc.server(
            futures.ThreadPoolExecutor(64),
            options=[
                ("grpc.max_receive_message_length", -1),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),  # else two servers take the same port
            ],
        )
        predict = grpc.unary_unary_rpc_method_handler(
            self._answer,
            request_deserializer=protocol.PredictRequest.FromString,
            response_serializer=protocol.PredictResponse.SerializeToString,
        )
        self._grpc.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(protocol.SERVICE, {"Predict": predict})]
        )
        try:
            self.port = self._grpc.add_insecure_port(f"127.0.0.1:{port}")
        except RuntimeError as error:
            self._http.server_close()
            raise errors.UserError(f"gRPC port {port} cannot be had: is it in use?") from error
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._http.serve_forever, daemon=True),
            threading.Thread(target=self._poll, args=(poll_wait,), daemon=True),
        ]

    def __enter__(self) -> Self:
        self._grpc.start()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stopped.set()
        self._grpc.stop(grace=None).wait()
        self._http.shutdown()
        self._http.server_close()
        self._threads[1].join()
        self.model.close()

    def version(self, name: str, choice: served_model.Choice) -> served_model.Version:
        """Return what a request asks for; raise Refused as TensorFlow Serving would."""
        if name != self.name and choice.label is None:
            raise served_model.not_found(name, choice.number)
        if name != self.name:
            raise protocol.Refused(
                "INVALID_ARGUMENT", f"Unrecognized servable version label: {choice.label}"
            )
        return self.model.version(name, choice)

    def _answer(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Answer a PredictRequest."""
        spec = request.model_spec
        number = spec.version.value if spec.HasField("version") else None
        try:
            version = self.version(
                spec.name, served_model.Choice(number, spec.version_label or None)
            )
            outputs = version.predict(
                spec.signature_name, served_model.arrays(protocol.inputs(request))
            )
        except protocol.Refused as error:
            context.abort(getattr(grpc.StatusCode, error.status), str(error))
        else:
            return protocol.response(request, version.number, served_model.tensors(outputs))

    def _poll(self, wait: float) -> None:
        while not self._stopped.wait(wait):
            self.model.refresh()
