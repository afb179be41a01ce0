"""Six published experiments, run on emulated arrays and held against what their authors saw.

    python -m benchmarks.published FOLDER                 all of them, some 90 minutes: records, then the claims
    python -m benchmarks.published FOLDER --only e1 e6    some of them
    python -m benchmarks.published FOLDER --judge         the claims of the records in FOLDER, without a run
    python -m benchmarks.published FOLDER --judge --again OTHER    the same beside those of other runs
    python -m benchmarks.published FOLDER --page docs     writes tables and charts into the page of that folder

Each module `e1` to `e6` is one experiment: what is run, and a claim of its authors for each thing that they saw. An
array has what the publication says of its hardware, in the scenario's file, and nothing that was found by trying.
"""
