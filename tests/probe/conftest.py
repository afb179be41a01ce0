"""A program in fio's place."""

from support.fake_fio import fake

__all__ = ["fake"]
