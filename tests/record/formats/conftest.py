"""Import a text as a file, and return the manifest and the intervals of the profile it gave."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from stallmark.analysis.profile_intervals import intervals_of
from stallmark.record.formats import import_profile
from stallmark.record.formats.amounts import Wanted
from stallmark.record.profile import Intervals, ProfileManifest


@dataclass(frozen=True)
class Imported:
    manifest: ProfileManifest
    intervals: Intervals

    def io(self, column: str, held: str = "device") -> list[float | None]:
        rows = self.intervals.tables()["file_io"].to_pylist()
        return [row[column] for row in rows if row["file_class"] == held]

    def server(self, column: str) -> list[float | None]:
        return self.intervals.tables()["server"].column(column).to_pylist()

    def rows(self) -> list[tuple[datetime, dict[str, float | None]]]:
        """Return the rows of devices whose class was not given, by the end of their interval."""
        rows = self.intervals.tables()["file_io"].to_pylist()
        return [(row["end"], row) for row in rows if row["file_class"] == "device"]

    def ends(self) -> list[str]:
        return [f"{end:%d %H:%M:%S}" for end in self.intervals.tables()["file_io"].column("end").to_pylist()]


Import = Callable[..., Imported]


@pytest.fixture
def import_texts(tmp_path: Path) -> Import:
    return _importer(tmp_path)


@pytest.fixture(scope="module")
def import_many(tmp_path_factory: pytest.TempPathFactory) -> Import:
    """The same for examples of Hypothesis, which share a fixture."""
    return _importer(tmp_path_factory.mktemp("imports"))


def _importer(tmp_path: Path) -> Import:
    def run(*texts: str | bytes | Path, anonymous: bool = False, name: str = "file-{}.txt", **wanted) -> Imported:
        paths = []
        for place, text in enumerate(texts):
            if isinstance(text, Path):
                paths.append(text)
                continue
            paths.append(tmp_path / name.format(place))
            paths[-1].write_bytes(text.encode() if isinstance(text, str) else text)
        folder = tmp_path / f"profile-{len(list(tmp_path.iterdir()))}"
        manifest = import_profile(paths, folder, Wanted(**wanted), anonymous=anonymous)
        return Imported(manifest, intervals_of(folder))

    return run
