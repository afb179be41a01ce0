"""What a block device lies on, as the kernel says (/sys/class/block): of a partition, a volume, an array of md's."""

from pathlib import Path

SYS = Path("/sys/class/block")


def beneath(device: str) -> list[str]:
    """The names of the devices at the bottom, `["loop0"]` of `loop0p1` or of an encrypted volume on it (LVM, dm-crypt,
    md, bcache: `slaves`); itself where nothing is beneath it, or this is no Linux."""
    folder = (SYS / device).resolve()
    if (folder / "partition").exists():
        return beneath(folder.parent.name)
    slaves = folder / "slaves"
    parts = [each.name for each in slaves.iterdir()] if slaves.is_dir() else []
    return sorted({bottom for part in parts for bottom in beneath(part)}) or [device]


def file_behind(loop: str) -> Path | None:
    """The file that a loop device has now, also one that has been removed; None where the kernel names none."""
    try:
        named = (SYS / loop / "loop" / "backing_file").read_text()
    except OSError:
        return None
    return Path(named.removesuffix("\n").removesuffix(" (deleted)"))
