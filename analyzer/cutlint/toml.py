"""Reading TOML, on Python 3.10 too."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from cutlint.errors import CutlintError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]


MAX_BYTES = 2**18
MAX_PARTS = 32  # of a key, for which tomllib takes quadratic time
_KEYS = re.compile(  # strings and comments, in which dots are no key's, and long keys from their first dot
    rb"""\"{3}(?:\\.|[^\\])*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)|\#[^\n]*|"(?:\\.|[^"\\\n])*"|'[^'\n]*'
    |(?P<long>(?:\.[ \t]*(?:[\w-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')[ \t]*){%d})"""
    % MAX_PARTS,
    re.DOTALL | re.VERBOSE,
)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        CutlintError: when it cannot be read or is not TOML, with the place.
    """
    try:
        if not path.is_file():  # a pipe or a device could be read for ever
            raise CutlintError(f"{path} cannot be read: it is {'not a regular file' if path.exists() else 'not there'}")
        if path.stat().st_size > MAX_BYTES:
            raise CutlintError(f"{path} cannot be read: it has more than {MAX_BYTES:,} bytes")
        data = path.read_bytes()
        if any(match.lastgroup for match in _KEYS.finditer(data)):
            raise CutlintError(f"{path} cannot be read: it has a key of more than {MAX_PARTS} parts")
        content: dict[str, Any] = tomllib.loads(data.decode())
        return content
    except OSError as error:
        raise CutlintError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # tomllib's own and those of Python's numbers, dates and UTF-8
        raise CutlintError(f"{path} is not valid TOML: {error}") from None
    except RecursionError:
        raise CutlintError(f"{path} is not valid TOML: nested too deep") from None
