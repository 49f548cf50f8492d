"""The page over HTTP on this machine: Werkzeug serves it, an Explorer answers its requests.

    GET  /                   the page; its scripts and styles are under /page/
    GET  /api/about          the model and example texts
    POST /api/translation    {"text", "target"} -> Explorer.translation
    POST /api/search         {"text"} -> Explorer.search
    POST /api/attention      {"text", "target", "kind", "layer"} -> two bytes a weight
    POST /api/save           {"text", "target"} -> the page of this text in one HTML file

A browser lets any site send requests to this machine. So requests for another host name (DNS
rebinding) and from another origin are refused, and no header lets scripts of another origin read
the answers.
"""

import ipaddress
import json
import pathlib
import re
import socket
from collections.abc import Callable
from typing import Any

from werkzeug import exceptions, serving
from werkzeug.wrappers import Request, Response

from t2t_lite import errors
from t2t_lite.explore import export_explorer, saving

_PAGE = pathlib.Path(__file__).parent / "page"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
# Everything is loaded from this server; the page has no inline script or style.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MAX_BODY = 2 << 20  # bytes; models cut longer texts anyway


class Application:
    """The WSGI application.

    Args:
      answers: the explorer that answers.
      host: the address of the server, which requests may name.
    """

    def __init__(self, answers: export_explorer.Answers, host: str = "127.0.0.1"):
        self._explorer = answers
        self._hosts = {"localhost", socket.gethostname().lower(), host.lower()}
        self._routes: dict[str, Callable[[dict[str, Any]], Response]] = {
            "translation": lambda body: _json(answers.translation(_text(body), _target(body))),
            "search": lambda body: _json(answers.search(_text(body))),
            "attention": self._attention,
            "save": self._save,
        }

    def __call__(self, environ, start_response):
        """Answer one request."""
        request = Request(environ)
        request.max_content_length = MAX_BODY
        try:
            self._check_origin(request)
            response = self._respond(request)
        except errors.UserError as error:
            response = _json({"error": str(error)}, status=400)
        except exceptions.HTTPException as error:
            response = _json({"error": error.description or error.name}, status=error.code or 500)
        response.headers.update(_HEADERS)
        return response(environ, start_response)

    def _check_origin(self, request: Request) -> None:
        """Raise Forbidden for requests that do not come from this page."""
        host = request.host
        name = re.sub(r":\d+$", "", host).strip("[]").lower()
        # Nobody can make a numeric address point here.
        if name not in self._hosts and not _is_address(name):
            raise exceptions.Forbidden(f"{host} is not this server's name")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"{request.scheme}://{host}":
            raise exceptions.Forbidden("asked by a page of another origin")

    def _respond(self, request: Request) -> Response:
        part = request.path.removeprefix("/api/")
        if part in self._routes and part != request.path:
            if request.method != "POST":
                raise exceptions.MethodNotAllowed(["POST"])
            return self._routes[part](_body(request))
        if request.method not in ("GET", "HEAD"):
            raise exceptions.MethodNotAllowed(["GET"])
        if request.path == "/api/about":
            return _json(self._explorer.about())
        return _file("index.html" if request.path == "/" else request.path.removeprefix("/page/"))

    def _attention(self, body: dict[str, Any]) -> Response:
        layer = body.get("layer")
        if not isinstance(layer, int):
            raise errors.UserError(f"layer is a number, got {layer!r}")
        weights = self._explorer.attention(_text(body), _target(body), str(body.get("kind")), layer)
        return Response(weights, mimetype="application/octet-stream")

    def _save(self, body: dict[str, Any]) -> Response:
        return Response(
            saving.page(self._explorer, [(_text(body), _target(body))]),
            mimetype="text/html",
            headers={"Content-Disposition": 'attachment; filename="t2t-lite.html"'},
        )


def make(answers: export_explorer.Answers, *, host: str, port: int) -> serving.BaseWSGIServer:
    """Return a listening server; call its `serve_forever`. For port 0 its `port` is a free one.

    Raises UserError if it cannot listen on the address.
    """
    # Werkzeug itself would print several lines about a port in use and exit.
    family = serving.select_address_family(host, port)
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(serving.get_sockaddr(host, port, family))
    except OSError as error:
        raise errors.UserError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; another --port?"
        ) from None
    return serving.make_server(
        host, port, Application(answers, host), threaded=True, request_handler=_QuietHandler
    )


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


class _QuietHandler(serving.WSGIRequestHandler):
    """Logs only server errors."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log a request whose status is 5xx."""
        if str(code).startswith("5"):
            super().log_request(code, size)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object that was sent. Forms of other sites cannot send this type."""
    if request.mimetype != "application/json":
        raise exceptions.UnsupportedMediaType("send application/json")
    try:
        body = json.loads(request.get_data())
    except (ValueError, RecursionError):
        raise exceptions.BadRequest("the body is not JSON") from None
    if not isinstance(body, dict):
        raise exceptions.BadRequest("send a JSON object")
    return body


def _text(body: dict[str, Any]) -> str:
    text = body.get("text")
    if not isinstance(text, str):
        raise errors.UserError(f"text is a string, got {type(text).__name__}")
    return text


def _target(body: dict[str, Any]) -> str | None:
    target = body.get("target")
    if target is not None and not isinstance(target, str):
        raise errors.UserError(f"target is a string or null, got {type(target).__name__}")
    return target or None


def _json(content: Any, status: int = 200) -> Response:
    # ASCII, since a lone surrogate cannot be written as UTF-8.
    return Response(json.dumps(content), status=status, mimetype="application/json")


def _file(name: str) -> Response:
    path = _PAGE / name
    if path.parent != _PAGE or path.suffix not in _TYPES or not path.is_file():
        raise exceptions.NotFound("there is no such page")
    return Response(path.read_bytes(), mimetype=_TYPES[path.suffix])
