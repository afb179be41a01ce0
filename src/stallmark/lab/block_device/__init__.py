"""The emulated array as a block device, on which files, file systems and containers can live (Linux, root).

nbdkit serves a backing file through a plugin of ours (plugin.c), which delays each I/O as the emulated array would
(storage/emulator/model.h). nbdfuse shows that as a file, and a loop device with direct I/O as a block device:

    backing file <- nbdkit + plugin <- nbdfuse, 64 connections <- /dev/loopN

Everything measured on it is EMULATED, and is to be labelled so.
"""
