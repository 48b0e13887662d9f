"""`explore`: a page in the browser that shows what vectors stand for, and their neighbours.

From the bottom up: `given` checks what the caller gave, `work` computes what the views need in a thread of its own, `answers`
answers each question of the page, `server` speaks HTTP, and page/ is what the browser gets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from kith._knn_graph import KnnGraph
from kith._metrics import Metric
from kith._other_names import answers_other_names
from kith._typing import DeviceNames

if TYPE_CHECKING:
    from kith._explore.server import Explorer


@answers_other_names("kith.explore()")
def explore(
    items: Any,
    x: Any = None,
    labels: Sequence[Any] | str | None = None,
    graph: KnnGraph | None = None,
    xy: Any = None,
    encode: Callable[[Any], Any] | None = None,
    *,
    metric: Metric | None = None,
    device: DeviceNames = "auto",
    host: str = "127.0.0.1",
    port: SupportsIndex = 0,
    browser: bool = True,
    shape: tuple[int, ...] | None = None,
    text: str | None = None,
    block: bool | None = None,
) -> Explorer:
    """Open a page in the browser that shows the items behind vectors: neighbours, search, clusters, paths, a map.

    The page is there at once. The k-NN graph, clusters, paths and places on the map are computed meanwhile, and it says how far
    they are. In a script this returns when Ctrl-C ends it; in a notebook and an interactive session it returns at once.

    Parameters
    ----------
    items : array_like, sequence, path or None
        What each row of `x` stands for. Images: arrays (rows, height, width) or (rows, height, width, 3), vectors of their
        pixels, sequences of arrays, of PIL's images or of files, or a folder of images in the order of their names. Texts: a
        sequence of str, a .txt file of a text a line, or a .jsonl file. None shows row numbers, and images where `shape` is given.
        Or a `Collection`, a view of one or its path, which has vectors, ids and metric of its own: its payloads are shown where they
        are images or texts, else its first column of texts.
    x : array_like (rows, dimension), or path
        The vectors; not with a collection.
    labels : sequence, optional
        The class of each row, or a number for each; marked beside items, and the colours of the map. Of a collection the name
        of a column.
    graph : KnnGraph, optional
        A graph of `x`; computed if not given.
    xy : array_like (rows, 2), optional
        Where to draw each row on the map, of UMAP for instance. By default the first two principal components.
    encode : callable, optional
        Makes a vector of what is searched for: of a str that was typed, of a PIL image that was uploaded. It may
        refuse one of both by any exception. Where `x` are the pixels of `items`, images can be searched without it.
    metric : str, optional
        As in `knn`; that of `graph`, or "l2".
    device : str, default "auto"
        Where to compute, as in `knn`.
    host : str, default "127.0.0.1"
        Where to listen. Any other than this machine's own address lets others on the network see the items, if they know the
        page's address; a warning says so.
    port : int, default 0
        0 takes a free one.
    browser : bool, default True
        Open the browser.
    shape : tuple of int, optional
        (height, width) or (height, width, 3) of images given as vectors.
    text : str, optional
        The column of a collection that is shown.
    block : bool, optional
        Wait for Ctrl-C. By default in scripts alone.

    Returns
    -------
    Explorer
        ``.url`` is the page's address, ``.close()`` ends it, as leaving a ``with`` block does.

    Raises
    ------
    ValueError
        Items, labels, `xy` or `graph` of another number of rows than `x`; values that no search takes.
    OSError
        The port is in use.

    Examples
    --------
    >>> import numpy as np, kith
    >>> images = np.random.default_rng(0).integers(0, 256, (50, 8, 8), dtype=np.uint8)
    >>> with kith.explore(images, images.reshape(50, -1), browser=False, block=False) as page:
    ...     page.url.startswith("http://127.0.0.1:")
    True
    """
    from kith._explore.given import Given
    from kith._explore.server import Explorer

    given = Given(items, x, labels, graph, xy, encode, metric=metric, device=device, shape=shape, text=text)
    try:
        page = Explorer(given, host, port)
    except BaseException:
        given.close()
        raise
    waits = block if block is not None else not _interactive()
    try:
        print(f"kith explore: {page.url}", flush=True)
        if browser:
            page.open_browser()
        if waits:
            page.wait()
    except KeyboardInterrupt:  # before it waits
        page.close()
        if not waits:
            raise
    return page


def _interactive() -> bool:
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or "ipykernel" in sys.modules
