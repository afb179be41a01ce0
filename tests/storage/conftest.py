"""Two emulated arrays, and a program in fio's place."""

from support.emulated_bench import bench, build_dir
from support.fake_fio import fake

__all__ = ["bench", "build_dir", "fake"]
