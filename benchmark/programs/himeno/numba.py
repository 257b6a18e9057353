import numba


@numba.njit(parallel=True)
def sweep(size, a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work, p, q):
    row = 2 * size
    plane = size * row
    for x in numba.prange(1, size - 1):
        for y in range(1, size - 1):
            for z in range(1, row - 1):
                i = x * plane + y * row + z
                s0 = (a0[i] * p[i + plane] + a1[i] * p[i + row] + a2[i] * p[i + 1] +
                      b0[i] * (p[i + plane + row] - p[i + plane - row] - p[i - plane + row] + p[i - plane - row]) +
                      b1[i] * (p[i + row + 1] - p[i - row + 1] - p[i + row - 1] + p[i - row - 1]) +
                      b2[i] * (p[i + plane + 1] - p[i - plane + 1] - p[i + plane - 1] + p[i - plane - 1]) +
                      c0[i] * p[i - plane] + c1[i] * p[i - row] + c2[i] * p[i - 1] + work[i])
                ss = (s0 * a3[i] - p[i]) * bound[i]
                q[i] = p[i] + 0.8 * ss


def compute(c):
    coefficients = [c[name] for name in ("a0", "a1", "a2", "a3", "b0", "b1", "b2", "c0", "c1", "c2", "bound", "work")]
    p, q = c["p"], c["q"]
    for _ in range(c["iterations"]):
        sweep(c["size"], *coefficients, p, q)
        p, q = q, p
    return {"p": c["p"], "q": c["q"]}
