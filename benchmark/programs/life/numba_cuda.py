import numba.cuda


@numba.cuda.jit
def generation(before, after, n):
    i = numba.cuda.grid(1)
    if i < n * n:
        row, column = i // n, i % n
        up, down = (row + n - 1) % n * n, (row + 1) % n * n
        left, right = (column + n - 1) % n, (column + 1) % n
        around = (before[up + left] + before[up + column] + before[up + right] + before[row * n + left] + before[row * n + right] +
                  before[down + left] + before[down + column] + before[down + right])
        after[i] = around == 3 or (around == 2 and before[i] == 1)


def compute(c):
    before, after = c["alive"], numba.cuda.device_array_like(c["alive"])
    for _ in range(c["generations"]):
        generation[(before.size + 255) // 256, 256](before, after, c["size"])
        before, after = after, before
    return {"alive": before}
