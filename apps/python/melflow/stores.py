"""Recordings of object stores and the web: the function that file_list calls where `root` is a URL.

Uses the package fsspec, with the package for the scheme (s3fs, gcsfs, aiohttp, ...), which also finds credentials in the usual
variables and profiles. What is on the web is listed by it, and read without Python where the machine has libcurl.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import html
import posixpath
import random
import re
import threading
import time
import urllib.parse
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional

from . import inputs
from ._melflow import RunError, with_escaped_user, without_secrets

_WEB = ("http://", "https://")
_TRIES, _SLOW_TRIES = 5, 2
_LARGEST_PAGE = 64 << 20  # [bytes] of a folder's list
_MOST_IGNORED = 64 << 10  # [bytes] of an answer that is no recording


class Refused(OSError):
    """An error that no other request would change."""


_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotImplementedError, Refused)


class Limits(NamedTuple):
    """The option `web` of file_list (stages/containers/web_limits.h)."""
    largest: int = 4 << 30
    least_speed: int = 1024
    patience: int = 30
    time: int = 1800


_of_thread = threading.local()


def _limits() -> Limits:
    return getattr(_of_thread, "limits", Limits())


@contextlib.contextmanager
def within(limits: Limits) -> Iterator[None]:
    """Applies these limits to all that this thread reads."""
    before, _of_thread.limits = _limits(), limits
    try:
        yield
    finally:
        _of_thread.limits = before


def _error_text(url: str, error: Exception) -> str:
    kind = "" if isinstance(error, Refused) else f"{type(error).__name__}: "
    return without_secrets(f"{without_secrets(url)}: {kind}{error}")


def _asked_to_wait(error: BaseException) -> float:
    """[s] The time in the header Retry-After of a server that refuses: a number of seconds, or a date."""
    headers = getattr(error, "headers", None)
    text = headers.get("Retry-After", "") if hasattr(headers, "get") else ""
    try:
        return float(text) if text.isdecimal() else parsedate_to_datetime(text).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return 0


def _tried(what: str, call: Callable[[], Any]) -> Any:
    end, slow = time.monotonic() + _limits().time, 0
    for tries in range(1, _TRIES + 1):
        try:
            return call()
        except _FINAL as error:
            raise RunError(_error_text(what, error)) from None
        except Exception as error:  # each package has its own
            slow += isinstance(error, TimeoutError) or "Timeout" in type(error).__name__
            wait = max(0.05 * 2 ** tries * (1 + random.random()), _asked_to_wait(error))
            why = _error_text(what, error)
            if tries == _TRIES or slow == _SLOW_TRIES:
                raise RunError(f"{why}; tried {tries} times") from None
            if time.monotonic() + wait > end:
                raise RunError(f"{why}; the next request, after {wait:.0f} s, would be later than web.time, {_limits().time} s") from None
        time.sleep(wait)


def _called(store: Any, function: str, *words: Any, **options: Any) -> Any:
    """Calls a function of a store; ends it at the time limit if the store allows that."""
    if not getattr(store, "async_impl", False) or store.asynchronous:
        return getattr(store, function)(*words, **options)
    import fsspec.asyn
    limit = _limits().time
    try:
        return fsspec.asyn.sync(store.loop, getattr(store, "_" + function), *words, timeout=limit, **options)
    except fsspec.asyn.FSTimeoutError as error:  # also for a timeout of the client
        if error.__cause__ is not None:
            raise error.__cause__ from None
        raise Refused(f"takes longer than web.time, {limit} s; raise it") from None


@functools.lru_cache(maxsize=None)  # which fsspec knows its clients by
def _client(limits: Limits) -> Dict[str, Any]:
    """Settings with which aiohttp follows the rules of stages/containers/web_reader."""
    import asyncio

    import aiohttp

    from ._melflow import is_private_address

    async def is_private(host: str) -> bool:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, None)
        except OSError:  # a proxy may find it
            return False
        return any(is_private_address(str(one[4][0])) for one in found)

    async def on_redirect(_session: Any, _context: Any, what: aiohttp.TraceRequestRedirectParams) -> None:
        here, place = what.response.url, what.response.headers.get("Location") or what.response.headers.get("URI") or ""
        there = here.join(type(here)(place))
        if there.scheme not in ("http", "https"):
            raise Refused("is redirected to what is neither http nor https")
        if here.scheme == "https" and there.scheme == "http":
            raise Refused("is redirected from https to http")
        if await is_private(there.host or "") and not await is_private(here.host or ""):
            raise Refused("is redirected from a public to a private address")

    class Response(aiohttp.ClientResponse):
        async def text(self, *words: Any, **options: Any) -> str:
            page = await super().text(*words, **options)
            return _LINK.sub(_unescaped, page) if self.content_type == "text/html" else page

        async def read(self) -> bytes:
            if self._body is None:
                most = min(limits.largest, _LARGEST_PAGE) if self.content_type == "text/html" else limits.largest
                most = most if self.ok else _MOST_IGNORED
                place = re.fullmatch(r"bytes 0-(\d+)/(\d+)", self.headers.get("Content-Range", ""))
                if self.status == 206 and (place is None or int(place[1]) + 1 != int(place[2])):
                    raise Refused(f"the server gives a part ({self.headers.get('Content-Range')}) of what was asked for as a whole")
                if self.ok and (self.content_length or 0) > most:
                    raise Refused(f"has {self.content_length} bytes, and web.largest is {most}; raise it")
                body, began, counted = bytearray(), time.monotonic(), 0
                async for part in self.content.iter_any():
                    body += part
                    if len(body) > most:
                        if not self.ok:  # its status says why
                            self.close()
                            break
                        raise Refused(f"has more bytes than web.largest, {most}; raise it")
                    if time.monotonic() - began > limits.patience:
                        if len(body) - counted < limits.least_speed * limits.patience:
                            raise TimeoutError(f"less than {limits.least_speed} bytes a second have come for {limits.patience} s "
                                               "(web.least_speed, web.patience)")
                        began, counted = time.monotonic(), len(body)
                else:
                    await super().read()  # the end
                self._body = bytes(body)
            return self._body

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(on_redirect)
    timeout = aiohttp.ClientTimeout(total=limits.time, sock_connect=limits.patience, sock_read=limits.patience)
    return {"response_class": Response, "trace_configs": [trace], "timeout": timeout}


_LINK = re.compile(r"""(?i)(<a\s[^>]*?href=)(["'])([^"']*)\2""")


def _unescaped(link: "re.Match[str]") -> str:
    """Unescapes entities (&amp;) in a link of a page, which fsspec does not."""
    place = html.unescape(link[3]).replace('"', "%22").replace("'", "%27")
    return f"{link[1]}{link[2]}{place}{link[2]}"


def _version(info: Dict[str, Any]) -> Optional[str]:
    for key in ("ETag", "etag", "mtime", "LastModified", "last_modified", "created"):
        if info.get(key) is not None:
            return str(info[key]).strip('"')
    return None


def _whole(store: Any, name: str, size: Optional[int], version: Optional[str]) -> bytes:
    """The bytes of an object. Raises OSError if the object is not the one that was listed."""
    if size is not None and size > _limits().largest:
        raise Refused(f"has {size} bytes, and web.largest is {_limits().largest}; raise it")
    is_local = "file" in (store.protocol if isinstance(store.protocol, (tuple, list)) else [store.protocol])
    data = inputs.read(name, inputs.SOUND) if is_local else _called(store, "cat_file", name)
    if size is not None and len(data) != size:
        raise OSError(f"{len(data)} bytes came, of {size}")
    # The ETag of most objects is an MD5 hash; if it is not that of the data, the store is asked whether the object has changed.
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
    """The URL for requests: if a password has `@` or `/`, the libraries would ask another host."""
    return with_escaped_user(url) if url.startswith(_WEB) else url


def _opened(url: str) -> Any:
    try:
        import fsspec
    except ImportError:
        raise RunError(f"{url.partition('://')[0]}:// takes the package fsspec: pip install fsspec") from None
    options: Dict[str, Any] = {}
    if url.startswith(_WEB):
        try:
            own = _client(_limits())
        except ImportError:
            own = {}  # fsspec says what is missing
        options["client_kwargs"] = {**own, **fsspec.config.conf.get(url.partition(":")[0], {}).get("client_kwargs", {})}
    try:
        return fsspec.core.url_to_fs(url, **options)
    except Exception as error:  # says which package is missing, or that there is no such scheme
        raise RunError(without_secrets(f"{without_secrets(url)}: {error}")) from None


def recordings(root: str) -> Iterator[Dict[str, Any]]:
    """The files below a URL, by their names."""
    root = _sent(root)
    store, folder = _opened(root)
    found = _tried(root, lambda: _called(store, "find", folder, detail=True))
    if root.endswith("/"):  # of a folder with nothing in it, the web's find() says that it is a file
        found.pop(folder, None)
    if not found:  # which find() also says of a folder that cannot be listed
        _tried(root, lambda: _called(store, "ls", folder))
    folder = folder.rstrip("/") + "/"
    is_web, by_libcurl = root.startswith(_WEB), is_plain(root)
    for name in sorted(found):
        info = found[name]
        # An empty object called like a folder is how consoles of object stores make one.
        is_folder = not is_web and not info.get("size") and (name.endswith("/") or name + "/" == folder)
        if info.get("type", "file") != "file" or is_folder:
            continue
        if root.startswith("https://") and name.startswith("http://"):  # as a page with its list may have it
            name = "https" + name[4:]
        size, version = info.get("size"), _version(info)
        audio: Any = lambda name=name, size=size, version=version: _tried(name, lambda: _whole(store, name, size, version))
        if by_libcurl and size is None and version is None:  # there is nothing to compare
            audio = name
        path = name[len(folder):] if name.startswith(folder) else posixpath.basename(name)
        yield {"path": urllib.parse.unquote(path, errors="surrogateescape") if is_web else path, "bytes": size,
               "version": None if size is None and version is None else f"{size} {version}", "audio": audio}
