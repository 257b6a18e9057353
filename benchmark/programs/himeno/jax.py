import functools

import jax

NAMES = ("a0", "a1", "a2", "a3", "b0", "b1", "b2", "c0", "c1", "c2", "bound", "work")


@functools.partial(jax.jit, static_argnums=0)
def sweep(size, coefficients, p, q):
    def at(v, x=0, y=0, z=0):
        return v[1 + x : size - 1 + x, 1 + y : size - 1 + y, 1 + z : 2 * size - 1 + z]

    a0, a1, a2, a3, b0, b1, b2, c0, c1, c2, bound, work = (at(v) for v in coefficients)
    s0 = (a0 * at(p, 1) + a1 * at(p, 0, 1) + a2 * at(p, 0, 0, 1) +
          b0 * (at(p, 1, 1) - at(p, 1, -1) - at(p, -1, 1) + at(p, -1, -1)) +
          b1 * (at(p, 0, 1, 1) - at(p, 0, -1, 1) - at(p, 0, 1, -1) + at(p, 0, -1, -1)) +
          b2 * (at(p, 1, 0, 1) - at(p, -1, 0, 1) - at(p, 1, 0, -1) + at(p, -1, 0, -1)) +
          c0 * at(p, -1) + c1 * at(p, 0, -1) + c2 * at(p, 0, 0, -1) + work)
    ss = (s0 * a3 - at(p)) * bound
    return q.at[1:-1, 1:-1, 1:-1].set(at(p) + 0.8 * ss)


def compute(c):
    size = int(c["size"])
    box = {name: c[name].reshape(size, size, 2 * size) for name in (*NAMES, "p", "q")}
    p, q = box["p"], box["q"]
    for iteration in range(c["iterations"]):
        if iteration % 2 == 0:
            q = sweep(size, [box[name] for name in NAMES], p, q)
        else:
            p = sweep(size, [box[name] for name in NAMES], q, p)
    return {"p": p, "q": q}
