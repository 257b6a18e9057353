import numba
import numpy


@numba.njit(parallel=True)
def product(a, b, n):
    c = numpy.zeros(n * n)
    for row in numba.prange(n):
        for k in range(n):
            for column in range(n):
                c[row * n + column] += a[row * n + k] * b[k * n + column]
    return c


def compute(c):
    return {"c": product(c["a"], c["b"], c["size"])}
