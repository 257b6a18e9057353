import math

import numba


@numba.njit(parallel=True)
def simulate(mass, x, y, z, vx, vy, vz, steps, seconds):
    for _ in range(steps):
        for i in numba.prange(mass.size):
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
        for i in numba.prange(mass.size):
            x[i] += vx[i] * seconds
            y[i] += vy[i] * seconds
            z[i] += vz[i] * seconds


def compute(c):
    state = {name: c[name] for name in ("x", "y", "z", "vx", "vy", "vz")}
    simulate(c["mass"], *state.values(), c["steps"], c["seconds"])
    return state
