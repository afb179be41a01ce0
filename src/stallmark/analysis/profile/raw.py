"""The rows of a raw table of a profile, a batch at a time, with the samples that they belong to."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from stallmark.analysis.profile.sample_clock import Samples
from stallmark.record.profile.reader import raw_batches


def placed(folder: Path, name: str, samples: Samples) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Yield the indices of the samples of some rows, and these rows. Those of samples that were not written whole are
    left out."""
    if not len(samples.number):
        return
    for batch in raw_batches(folder, name):
        number = batch.column("sample").to_numpy()
        at = np.minimum(np.searchsorted(samples.number, number), len(samples.number) - 1)
        whole = samples.number[at] == number
        if whole.any():
            yield at[whole], batch.filter(pa.array(whole))
