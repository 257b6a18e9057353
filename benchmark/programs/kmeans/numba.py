import numba
import numpy


@numba.njit(parallel=True)
def join(x, y, cx, cy, cluster):
    for i in numba.prange(x.size):
        best, least = 0, numpy.int64(2**63 - 1)
        for k in range(cx.size):
            dx, dy = cx[k] - x[i], cy[k] - y[i]
            distance = dx * dx + dy * dy
            if distance < least:
                best, least = k, distance
        cluster[i] = best


@numba.njit
def settle(x, y, cx, cy, cluster):
    sums = numpy.zeros((3, cx.size), numpy.int64)
    for i in range(x.size):
        sums[0, cluster[i]] += x[i]
        sums[1, cluster[i]] += y[i]
        sums[2, cluster[i]] += 1
    for k in range(cx.size):
        if sums[2, k] > 0:
            cx[k], cy[k] = sums[0, k] // sums[2, k], sums[1, k] // sums[2, k]


def compute(c):
    for _ in range(c["rounds"]):
        join(c["x"], c["y"], c["cx"], c["cy"], c["cluster"])
        settle(c["x"], c["y"], c["cx"], c["cy"], c["cluster"])
    return {name: c[name] for name in ("cx", "cy", "cluster")}
