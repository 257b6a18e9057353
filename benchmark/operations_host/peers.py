"""Host time of operations in NumPy or CuPy, for benchmark/operations_host.rb.

    python3 benchmark/operations_host/peers.py LIBRARY CALLS SIZE...

Prints as its last line {"seconds": {"x * 2.5": {"10": seconds of a call, ...}, ...}, "version": "..."}, or {"missing": "..."} where the library, or the
device that it needs, is not there. On a GPU a call's time ends when it returns.
"""

import json
import sys
import time


def cases(np, size):
    """The operations that the library has, by the names of the benchmark."""
    x = np.arange(size, dtype=np.float64) * 0.5
    y = x.reshape(size // 10, 10)
    row = np.arange(10, dtype=np.float64)
    a, b = np.ones((30, 30)), np.ones((30, 33))
    return {
        "x * 2.5": lambda: x * 2.5,
        "x * 2.5 + x * x": lambda: x * 2.5 + x * x,
        "x.sum": lambda: x.sum(),
        "(x * x).sum": lambda: (x * x).sum(),
        "x.max": lambda: x.max(),
        "y + row": lambda: y + row,
        "y.t + y.t": lambda: y.T + y.T,
        "y.sum(axis: 0)": lambda: y.sum(axis=0),
        "y[0..0, true].max(axis: 1)": lambda: y[0:1, :].max(axis=1),
        "x.cumsum": lambda: np.cumsum(x),
        "x.sort": lambda: np.sort(x),
        "x[x > 3.0]": lambda: x[x > 3.0],
        "matmul 30 x 33": lambda: a @ b,
        "x[5]": lambda: x[5],
    }


def measured(work, calls, wait):
    for _ in range(3):
        work()
    best = None
    for _ in range(5):
        wait()
        began = time.perf_counter()
        for _ in range(calls):
            work()
        took = (time.perf_counter() - began) / calls
        best = took if best is None else min(best, took)
    return best


def main():
    library, calls, sizes = sys.argv[1], int(sys.argv[2]), [int(size) for size in sys.argv[3:]]
    try:
        np = __import__(library)
        np.arange(3).sum()
        wait = np.cuda.Device().synchronize if library == "cupy" else lambda: None
    except Exception as error:
        print(json.dumps({"missing": f"{library}: {error}"}))
        return
    seconds = {}
    for size in sizes:
        for name, work in cases(np, size).items():
            seconds.setdefault(name, {})[str(size)] = measured(work, calls, wait)
    print(json.dumps({"seconds": seconds, "version": f"{library} {np.__version__}"}))


main()
