import numba.cuda
import numpy


@numba.cuda.jit
def join(x, y, cx, cy, cluster, sums):
    i = numba.cuda.grid(1)
    if i < x.size:
        best, least = 0, numpy.int64(2**63 - 1)
        for k in range(cx.size):
            dx, dy = cx[k] - x[i], cy[k] - y[i]
            distance = dx * dx + dy * dy
            if distance < least:
                best, least = k, distance
        cluster[i] = best
        numba.cuda.atomic.add(sums, 3 * best, x[i])
        numba.cuda.atomic.add(sums, 3 * best + 1, y[i])
        numba.cuda.atomic.add(sums, 3 * best + 2, 1)


@numba.cuda.jit
def settle(cx, cy, sums):
    k = numba.cuda.threadIdx.x
    if sums[3 * k + 2] > 0:
        cx[k], cy[k] = sums[3 * k] // sums[3 * k + 2], sums[3 * k + 1] // sums[3 * k + 2]
    sums[3 * k] = sums[3 * k + 1] = sums[3 * k + 2] = 0


def compute(c):
    sums = numba.cuda.to_device(numpy.zeros(3 * c["cx"].size, numpy.int64))
    for _ in range(c["rounds"]):
        join[(c["x"].size + 255) // 256, 256](c["x"], c["y"], c["cx"], c["cy"], c["cluster"], sums)
        settle[1, c["cx"].size](c["cx"], c["cy"], sums)
    return {name: c[name] for name in ("cx", "cy", "cluster")}
