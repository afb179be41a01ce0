#!/usr/bin/env bash
# NumPy gives other results on another x86 CPU, with the same version, the same input and the same seed. With AVX-512
# `exp`, `log`, `power` and `cbrt` have another last bit for 0.3 to 56 % of the values, and `argsort` puts equal values
# in another order. So a data generator that calls itself a pure function of its seed, and takes the floor of a power or
# deals out rows by `argsort`, makes another database on another machine, and shares of one load that two machines make
# do not fit together. What `Generator` draws (normal, exponential, zipf, permutation) is the same, and so are `sin`,
# `sqrt`, sums, `sort`, and `argsort` with kind="stable".
#
# NumPy chooses its loops when it is imported, by what the CPU has; here it is told to leave AVX-512 out.
# Run with NumPy 2.4.6 on Debian 12, on a CPU with AVX-512 (x86-64-v4), 2026-11-28, 200,000 values:
#   differ: exp 4.5%, log 0.3%, log1p 7.3%, power 5.8%, cbrt 55.9%, argsort 99.9%
#   the same: tanh, stable argsort, sort, sin, sqrt, sum, normal, exponential, zipf, permutation
# Source: documentation of NumPy, "CPU/SIMD optimizations" (NPY_DISABLE_CPU_FEATURES).
set -euo pipefail
case $(uname -m) in x86_64) ;; *) echo "This needs an x86-64 CPU."; exit 0 ;; esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6

cat >"$folder/results.py" <<'PYTHON'
import sys

import numpy as np

chance = np.random.default_rng(1)
x = chance.random(200_000)
ties = chance.integers(0, 100, x.size)
results = {
    "exp": np.exp(x * 10), "log": np.log(x), "log1p": np.log1p(-x), "power": np.power(x, 0.37), "cbrt": np.cbrt(x),
    "tanh": np.tanh(x), "argsort": np.argsort(ties), "stable argsort": np.argsort(ties, kind="stable"),
    "sort": np.sort(ties), "sin": np.sin(x * 9), "sqrt": np.sqrt(x), "sum": np.array([x.sum()]),
    "normal": chance.normal(size=x.size), "exponential": chance.exponential(size=x.size),
    "zipf": chance.zipf(1.3, x.size), "permutation": chance.permutation(x.size),
}
np.savez(sys.argv[1], **results)
PYTHON
cat >"$folder/compare.py" <<'PYTHON'
import sys

import numpy as np

one, other = (np.load(name) for name in sys.argv[1:3])
shares = {name: float(np.mean(one[name] != other[name])) for name in one}
apart = {name: share for name, share in shares.items() if share}
print("differ:", ", ".join(f"{name} {share:.1%}" for name, share in apart.items()) or "nothing")
print("the same:", ", ".join(name for name in shares if name not in apart))
same = {"sort", "stable argsort", "sin", "sqrt", "sum", "normal", "exponential", "zipf", "permutation"}
sys.exit(not ("argsort" in apart and ("exp" in apart or sys.argv[3] == "no") and not same & set(apart)))
PYTHON
features=$("$folder/venv/bin/python" -c 'import numpy._core._multiarray_umath as u
print(*(name for name in u.__cpu_dispatch__ if u.__cpu_features__.get(name)))')
v4=no
case $features in *X86_V4*) v4=yes ;; esac
"$folder/venv/bin/python" "$folder/results.py" "$folder/all.npz"
if [ $v4 = yes ]; then fewer="X86_V4"; else fewer="X86_V3"; fi
case " $features " in *" $fewer "*) ;; *) echo "This CPU has neither AVX-512 nor AVX2, so that there is nothing to leave out."; exit 0 ;; esac
NPY_DISABLE_CPU_FEATURES="$fewer" "$folder/venv/bin/python" "$folder/results.py" "$folder/fewer.npz"
echo "With $features, and without $fewer:"
"$folder/venv/bin/python" "$folder/compare.py" "$folder/all.npz" "$folder/fewer.npz" $v4 || { echo "This has changed."; exit 1; }
