"""Two emulated arrays."""

from support.emulated_bench import bench, build_dir

__all__ = ["bench", "build_dir"]
