import numba
import numpy


@numba.njit(parallel=True)
def generation(before, after):
    n = before.shape[0]
    for row in numba.prange(n):
        up, down = (row + n - 1) % n, (row + 1) % n
        for column in range(n):
            left, right = (column + n - 1) % n, (column + 1) % n
            around = (before[up, left] + before[up, column] + before[up, right] + before[row, left] + before[row, right] +
                      before[down, left] + before[down, column] + before[down, right])
            after[row, column] = around == 3 or (around == 2 and before[row, column] == 1)


def compute(c):
    before = c["alive"].reshape(c["size"], c["size"])
    after = numpy.empty_like(before)
    for _ in range(c["generations"]):
        generation(before, after)
        before, after = after, before
    return {"alive": before.reshape(-1)}
