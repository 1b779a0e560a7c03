"""The command `exmlds serve`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from ..errors import DataError
from ..storage.files import reading
from .arguments import ModelFolder
from .settings import OwnMethod, Trusted, import_methods, look_in_folder
from .startup import import_for_prediction

READ_TOKEN, WRITE_TOKEN = "EXMLDS_READ_TOKEN", "EXMLDS_WRITE_TOKEN"
SHORTEST_TOKEN = 16  # characters
MOST_TOKEN_BYTES = 4096
ORIGIN = re.compile(r"https?://[^/\s]+")
PACKAGES = ("fastapi", "pydantic", "starlette", "uvicorn")  # of the extra "service"


def serve(
    model: ModelFolder,
    host: Annotated[str, Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8000,
    name: Annotated[
        str | None, Option(help="What the service calls the model.  [default: the name of its folder]")
    ] = None,
    read_token_file: Annotated[
        Path | None,
        Option(help=f"A file with the token that every request needs.  [default: ${READ_TOKEN}, or none]"),
    ] = None,
    write_token_file: Annotated[
        Path | None,
        Option(
            help="A file with the token that changes of the model and feedback need.  "
            f"[default: ${WRITE_TOKEN}, or the token for reading]"
        ),
    ] = None,
    cors: Annotated[
        list[str] | None,
        Option(
            "--cors",
            metavar="ORIGIN",
            help="The origin of another site whose pages may use the service, such as https://a.example; "
            "repeat it for several.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="A host name that the service answers to; repeat it for several.  "
            "[default: any, but on 127.0.0.1 only that of this machine]",
        ),
    ] = None,
    max_body: Annotated[
        str, Option(metavar="SIZE", help="The largest body of a request, such as '10 MB'.")
    ] = "10 MB",
    feedback_file: Annotated[
        Path | None,
        Option(help="The file in which feedback is kept.  [default: MODEL.feedback.jsonl, beside the model]"),
    ] = None,
    no_feedback: Annotated[bool, Option("--no-feedback", help="Keep no feedback at all.")] = False,
    read_only: Annotated[
        bool, Option("--read-only", help="Neither add nor remove documents, also where the model can grow.")
    ] = False,
    method: OwnMethod = None,
    trusted: Trusted = None,
) -> None:
    """Serve a model of texts over HTTP, with a page to work with it.

    The page is at the address that is printed, and the API is described in /openapi.json. A model that was
    trained with --growable is open for writing: documents are added and removed by requests. When a new model
    is put into the folder, the service takes it over. SIGTERM ends it after the requests that were begun.

    Feedback is kept in a file until somebody deletes it. Texts that are only sent for suggestions are not.
    """
    from ..validation import params

    import_for_prediction()
    import_methods(method)
    if trusted:
        look_in_folder()
    folder = Path(os.path.abspath(model))
    strange = next((origin for origin in cors or () if not ORIGIN.fullmatch(origin)), None)
    if strange is not None:
        raise DataError(f"--cors {strange}: an origin is a scheme and a host, such as https://a.example.")
    if no_feedback and feedback_file is not None:
        raise DataError("Pass either --feedback-file or --no-feedback.")
    kept = folder.with_name(f"{folder.name}.feedback.jsonl") if feedback_file is None else feedback_file
    params.check("exmlds serve", {"max_body": max_body}, {"max_body": params.MEMORY})
    run(
        host=host,
        port=port,
        model=model,
        name=name or folder.name,
        feedback=None if no_feedback else kept,
        read_token=_token(read_token_file, READ_TOKEN),
        write_token=_token(write_token_file, WRITE_TOKEN),
        origins=tuple(cors or ()),
        hosts=tuple(allow_host or ()),
        max_body=int(params.as_bytes(max_body)),
        is_read_only=read_only,
        trusted=tuple(trusted or ()),
    )


def check_packages() -> None:
    """Say which package of the extra is missing."""
    try:
        from ..service import server as _  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        raise DataError(f'The service needs {error.name}: pip install "exmlds[service]"') from None


def run(*, host: str, read_token: str | None = None, write_token: str | None = None, **settings: Any) -> None:
    """Start the service, and say where it is."""
    import sys

    from ..display import harmless

    check_packages()
    from ..service.security import is_loopback
    from ..service.server import run as run_server
    from ..service.settings import AccessTokens, ServiceSettings

    chosen = ServiceSettings(host=host, tokens=AccessTokens(read_token, write_token), **settings)
    is_changeable = chosen.feedback is not None or not chosen.is_read_only
    if not is_loopback(host) and is_changeable and chosen.tokens.for_writing is None:
        raise DataError(
            f"Others can reach {host}: give a token for writing (--write-token-file or {WRITE_TOKEN}), or "
            "pass --read-only and --no-feedback."
        )

    def say(address: str) -> None:
        print(
            harmless(f"{chosen.name} is at {address} (open it in a browser); Ctrl-C ends it."),
            file=sys.stderr,
        )

    run_server(chosen, say)


def _token(path: Path | None, variable: str) -> str | None:
    """The token of a file or of the environment."""
    if path is None:
        token, source = os.environ.get(variable), variable
    else:
        with reading(path) as file:
            token, source = file.read(MOST_TOKEN_BYTES).decode("utf-8", "replace").strip(), str(path)
    if token is None:
        return None
    if not (len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable() and " " not in token):
        raise DataError(
            f"{source}: a token has at least {SHORTEST_TOKEN} letters, digits and signs of ASCII, without "
            "blanks, such as the output of `openssl rand -hex 32`."
        )
    return token
