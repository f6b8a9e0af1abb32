"""Recordings of object stores and the web: the function that file_list calls where `root` is a URL.

By the package fsspec, with what it takes for the scheme (s3fs, gcsfs, aiohttp, ...), which also finds credentials in the usual
variables and profiles. What is on the web is listed by it, and read without Python where the machine has libcurl.
"""

from __future__ import annotations

import hashlib
import posixpath
import random
import time
import urllib.parse
from typing import Any, Callable, Dict, Iterator, Optional

from . import inputs
from ._melflow import RunError, with_escaped_user, without_secrets

_WEB = ("http://", "https://")
_TRIES = 5
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotImplementedError)


def _said(url: str, error: Exception) -> str:
    return without_secrets(f"{without_secrets(url)}: {type(error).__name__}: {error}")


def _tried(what: str, call: Callable[[], Any]) -> Any:
    for i in range(_TRIES):
        try:
            return call()
        except _FINAL as error:
            raise RunError(_said(what, error)) from None
        except Exception as error:  # each package has its own
            if i == _TRIES - 1:
                raise RunError(f"{_said(what, error)}; tried {_TRIES} times") from None
            time.sleep(0.1 * 2 ** i * (1 + random.random()))


def _version(info: Dict[str, Any]) -> Optional[str]:
    for key in ("ETag", "etag", "mtime", "LastModified", "last_modified", "created"):
        if info.get(key) is not None:
            return str(info[key]).strip('"')
    return None


def _whole(store: Any, name: str, size: Optional[int], version: Optional[str]) -> bytes:
    """The bytes of an object. Raises OSError where they are not those of the object that was listed."""
    is_local = "file" in (store.protocol if isinstance(store.protocol, (tuple, list)) else [store.protocol])
    data = inputs.read(name, inputs.SOUND) if is_local else store.cat_file(name)
    if size is not None and len(data) != size:
        raise OSError(f"{len(data)} bytes came, of {size}")
    # The ETag of most objects is a hash; where it is none, or another one, the store says whether the object has changed.
    if version is not None and version != hashlib.md5(data, usedforsecurity=False).hexdigest():
        store.invalidate_cache(store._parent(name))
        if _version(store.info(name)) not in (version, None):
            raise OSError("has changed since it was listed")
    return data


def fetched(url: str) -> bytes:
    """The bytes behind one URL."""
    url = _sent(url)
    store, name = _opened(url)
    return _tried(url, lambda: _whole(store, name, None, None))


def is_plain(url: str) -> bool:
    """Whether libcurl may read a URL (stages/containers/web_reader): it is on the web, and fsspec has no settings of the user for that."""
    if not url.startswith(_WEB):
        return False
    try:
        from fsspec.config import conf
    except ImportError:
        return True
    return not (conf.get("http") or conf.get("https"))


def _sent(url: str) -> str:
    """The URL as it is asked for: of a password with `@` or `/`, the libraries would ask another host."""
    return with_escaped_user(url) if url.startswith(_WEB) else url


def _opened(url: str) -> Any:
    try:
        import fsspec
    except ImportError:
        raise RunError(f"{url.partition('://')[0]}:// takes the package fsspec: pip install fsspec") from None
    try:
        return fsspec.core.url_to_fs(url)
    except Exception as error:  # says which package is missing, or that there is no such scheme
        raise RunError(without_secrets(f"{without_secrets(url)}: {error}")) from None


def recordings(root: str) -> Iterator[Dict[str, Any]]:
    """The files below a URL, by their names."""
    root = _sent(root)
    store, folder = _opened(root)
    found = _tried(root, lambda: store.find(folder, detail=True))
    if root.endswith("/"):  # of a folder with nothing in it, the web's find() says that it is a file
        found.pop(folder, None)
    if not found:  # which find() also says of a folder that cannot be listed
        _tried(root, lambda: store.ls(folder))
    folder = folder.rstrip("/") + "/"
    is_web, by_libcurl = root.startswith(_WEB), is_plain(root)
    for name in sorted(found):
        info = found[name]
        if info.get("type", "file") != "file":
            continue
        size, version = info.get("size"), _version(info)
        audio: Any = lambda name=name, size=size, version=version: _tried(name, lambda: _whole(store, name, size, version))
        if by_libcurl and size is None and version is None:  # there is nothing to compare
            audio = name
        path = name[len(folder):] if name.startswith(folder) else posixpath.basename(name)
        yield {"path": urllib.parse.unquote(path, errors="surrogateescape") if is_web else path, "bytes": size,
               "version": None if size is None and version is None else f"{size} {version}", "audio": audio}
