"""A plain gRPC server around CTranslate2: what `benchmarks/serving.py --peer` compares ours with.

    other/bin/python benchmarks/ctranslate2_server.py --ctranslate2=ct2_model --precision=int8

The environment needs ctranslate2, sentencepiece and grpcio. A request is a text, in UTF-8, and so
is the answer. Each request is one call of CTranslate2, which has a worker for each core, of one
thread each; beam 4 without a length penalty. The first line says which port it has.
"""

import argparse
import threading
from concurrent import futures

import decode_text

METHOD = "/peer/translate"


def main() -> None:
    """Serve until the process is ended."""
    import grpc

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ctranslate2", required=True, help="a converted model")
    parser.add_argument("--precision", default="float32")
    flags = parser.parse_args()
    peer = decode_text.by_ctranslate2(flags.ctranslate2, flags.precision, batch_size=1)

    def translate(request: bytes, context: grpc.ServicerContext) -> bytes:
        return peer.decode([request.decode()])[0].encode()

    class Handler(grpc.GenericRpcHandler):
        """Answers the one method."""

        def service(self, handler_call_details: grpc.HandlerCallDetails):
            if handler_call_details.method == METHOD:
                return grpc.unary_unary_rpc_method_handler(translate)
            return None

    server = grpc.server(futures.ThreadPoolExecutor(64), handlers=[Handler()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"serving on port {port}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
