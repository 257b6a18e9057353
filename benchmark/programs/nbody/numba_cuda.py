import math

import numba.cuda


@numba.cuda.jit
def attract(mass, x, y, z, vx, vy, vz, seconds):
    i = numba.cuda.grid(1)
    if i < mass.size:
        ax = ay = az = 0.0
        for j in range(mass.size):
            dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            square = dx * dx + dy * dy + dz * dz + 0.05
            pull = mass[j] / (square * math.sqrt(square))
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        vx[i] += ax * seconds
        vy[i] += ay * seconds
        vz[i] += az * seconds


@numba.cuda.jit
def move(x, y, z, vx, vy, vz, seconds):
    i = numba.cuda.grid(1)
    if i < x.size:
        x[i] += vx[i] * seconds
        y[i] += vy[i] * seconds
        z[i] += vz[i] * seconds


def compute(c):
    state = {name: c[name] for name in ("x", "y", "z", "vx", "vy", "vz")}
    blocks = (c["mass"].size + 127) // 128
    for _ in range(c["steps"]):
        attract[blocks, 128](c["mass"], *state.values(), c["seconds"])
        move[blocks, 128](*state.values(), c["seconds"])
    return state
