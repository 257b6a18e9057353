import numba


@numba.njit(parallel=True)
def sum(x):
    total = 0.0
    for i in numba.prange(x.size):
        total += x[i]
    return total


def compute(c):
    return {"total": [sum(c["x"])]}
