"""Emulated arrays of known slowness under the embedded PostgreSQL, without root (Linux only).

The server process is started with an interposer (interposer.c). It gives the I/O of chosen directories the service
times and queues of an emulated array: spindles, and flash as a read cache or as a tier. The header of interposer.c
specifies exactly which I/Os are slowed and counted, model.h how. Everything measured on an array is EMULATED, and must
be labelled so.

    with EmulatedArrays.create(Path("/dev/shm/arrays"), {"data": data, "wal": data / "pg_wal"},
                            {"data": ArrayModel(1, 8, 8, 8, 100), "wal": None}, build_dir=cache) as arrays:
        server = subprocess.Popen([...], env=os.environ | arrays.environment())
        arrays.set_model("data", None)      # while it runs
        arrays.counters()["data"].reads
"""
