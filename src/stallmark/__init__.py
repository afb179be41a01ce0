"""Stallmark: what storage and memory do to a real database."""


def __getattr__(name: str) -> str:
    """`__version__` is looked up when someone asks: most processes of a run do not, and it takes as long as the rest of
    a small one.
    """
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("stallmark")
