"""The manifest of a run record: `manifest.json`, replaced whole with every change."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Whole or not at all: a reader may look at any moment."""
    draft = folder / "manifest.json.new"
    draft.write_text(json.dumps(manifest, indent=2, default=str) + "\n")
    os.replace(draft, folder / "manifest.json")
