"""The column type of long texts."""

from typing import Any

from sqlalchemy import String
from sqlalchemy.ext.compiler import compiles


class Article(String):
    """A text that no engine may compress. SQL Server leaves VARCHAR(max) outside the row uncompressed by itself."""


@compiles(Article, "postgresql")
def _article(article: Article, compiler: Any, **options: Any) -> str:
    return "TEXT STORAGE EXTERNAL"
