"""Runs one operation of benchmark/operations.rb or mdarray.rb in one library.

    python3 benchmark/operations/peers.py LIBRARY OPERATION RUNS OUTPUT.npy INPUT.npy...

Prints as its last line {"seconds": [...], "version": "..."}, or {"missing": "..."} where the library, or the device that it needs, is not there.
Inputs are where the library computes before the clock starts, and results stay there until it has stopped. The first runs do not count: one compiles, and a GPU that was idle takes some to get to its clock.
"""

import json
import os
import sys
import time


WARMUP = int(os.environ.get("WARMUP", "10"))


class Missing(Exception):
    pass


def whole(np):
    """The operations, for libraries of NumPy's kind."""

    def stencil(g):
        inner = g[1:-1, 1:-1] * 0.5 + (g[:-2, 1:-1] + g[2:, 1:-1] + g[1:-1, :-2] + g[1:-1, 2:]) * 0.125
        return np.pad(inner, 1)

    def chain(x):
        a, b = x.dtype.type(2.5), x.dtype.type(0.5)
        return x * a + x * b * x

    return {
        "a*x + b*x*x": chain,
        "a*x + b*x*x, f32": chain,
        "sum": lambda x: x.sum(),
        "matmul": lambda a, b: a @ b,
        "stencil": stencil,
        "sort": lambda x: np.sort(x),
        "dot": lambda x, y: np.dot(x, y),
        "scan": lambda x: np.cumsum(x),
        "select": lambda x: x[x > 0.5],
        "tally": lambda x: np.bincount(x, minlength=256),
    }


def numpy():
    import numpy as np

    return whole(np), np.array, lambda r: r, np.asarray, "NumPy " + np.__version__


def numba():
    import numba
    import numpy as np

    parallel = numba.njit(parallel=True)

    @parallel
    def chain(x):
        out = np.empty_like(x)
        a, b = x.dtype.type(2.5), x.dtype.type(0.5)
        for i in numba.prange(x.size):
            out[i] = x[i] * a + x[i] * b * x[i]
        return out

    @parallel
    def total(x):
        s = 0.0
        for i in numba.prange(x.size):
            s += x[i]
        return s

    @parallel
    def dot(x, y):
        s = 0.0
        for i in numba.prange(x.size):
            s += x[i] * y[i]
        return s

    @numba.njit
    def scan(x):
        return np.cumsum(x)

    @parallel
    def stencil(g):
        out = np.empty_like(g)
        h, w = g.shape
        for i in numba.prange(h):
            for j in range(w):
                if 0 < i < h - 1 and 0 < j < w - 1:
                    out[i, j] = g[i, j] * 0.5 + (g[i - 1, j] + g[i + 1, j] + g[i, j - 1] + g[i, j + 1]) * 0.125
                else:
                    out[i, j] = 0.0
        return out

    @numba.njit
    def ordered(x):
        return np.sort(x)

    operations = {"a*x + b*x*x": chain, "a*x + b*x*x, f32": chain, "sum": total, "stencil": stencil, "sort": ordered}
    operations.update({"dot": dot, "scan": scan})
    return operations, np.array, lambda r: r, np.asarray, "Numba " + numba.__version__


def cupy():
    import cupy as cp

    if not cp.cuda.is_available():
        raise Missing("no GPU")

    @cp.fuse()
    def chain(x, a, b):
        return x * a + x * b * x

    operations = whole(cp)
    for name in ("a*x + b*x*x", "a*x + b*x*x, f32"):
        operations[name] = lambda x: chain(x, x.dtype.type(2.5), x.dtype.type(0.5))

    def wait(_):
        cp.cuda.Stream.null.synchronize()

    return operations, cp.asarray, wait, cp.asnumpy, "CuPy " + cp.__version__


def jax():
    import jax

    if jax.default_backend() != "gpu":
        raise Missing("no GPU")
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import numpy as np

    operations = {name: jax.jit(work) for name, work in whole(jnp).items()}
    # how many there will be is not known when it compiles
    operations["select"] = whole(jnp)["select"]
    operations["tally"] = jax.jit(lambda x: jnp.bincount(x, length=256))
    return operations, jax.device_put, lambda r: r.block_until_ready(), np.asarray, "JAX " + jax.__version__


def numba_cuda():
    import math as m

    import numpy as np

    # numba-cuda, up to 0.30 at least, asks for it when it first compiles, and NumPy has it no more since 2.5
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack
    import numba
    import numba.cuda as cuda

    if not cuda.is_available():
        raise Missing("no GPU")

    @cuda.jit(fastmath=False)
    def chain_kernel(x, out, a, b):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] * a + x[i] * b * x[i]

    @cuda.jit
    def stencil_kernel(g, out):
        j, i = cuda.grid(2)
        h, w = g.shape
        if 0 < i < h - 1 and 0 < j < w - 1:
            out[i, j] = g[i, j] * 0.5 + (g[i - 1, j] + g[i + 1, j] + g[i, j - 1] + g[i, j + 1]) * 0.125
        elif i < h and j < w:
            out[i, j] = 0.0

    add = cuda.reduce(lambda a, b: a + b)

    def chain(x):
        out = cuda.device_array_like(x)
        chain_kernel[(x.size + 255) // 256, 256](x, out, x.dtype.type(2.5), x.dtype.type(0.5))
        return out

    def stencil(g):
        out = cuda.device_array_like(g)
        stencil_kernel[(m.ceil(g.shape[1] / 32), m.ceil(g.shape[0] / 8)), (32, 8)](g, out)
        return out

    def down(r):
        return r.copy_to_host() if hasattr(r, "copy_to_host") else np.asarray(r)

    operations = {"a*x + b*x*x": chain, "a*x + b*x*x, f32": chain, "sum": add, "stencil": stencil}
    return operations, cuda.to_device, lambda _: cuda.synchronize(), down, "Numba " + numba.__version__


LIBRARIES = {"numpy": numpy, "numba": numba, "cupy": cupy, "jax": jax, "numba-cuda": numba_cuda}


def main(library, operation, runs, output, *inputs):
    try:
        import numpy as np

        operations, up, wait, down, version = LIBRARIES[library]()
        if operation not in operations:
            raise Missing("it has no such operation")
    except (ImportError, Missing) as missing:
        print(json.dumps({"missing": str(missing)}))
        return
    work = operations[operation]
    arrays = [up(np.load(path)) for path in inputs]
    seconds = []
    for _ in range(int(runs) + WARMUP):
        began = time.perf_counter()
        result = work(*arrays)
        wait(result)
        seconds.append(time.perf_counter() - began)
    np.save(output, np.atleast_1d(down(result)))
    print(json.dumps({"seconds": seconds[WARMUP:], "version": version}))


if __name__ == "__main__":
    main(*sys.argv[1:])
