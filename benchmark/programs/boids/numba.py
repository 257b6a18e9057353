import math

import numba
import numpy


@numba.njit
def home(place, field):
    return 0.1 if place < 0.0 else -0.1 if place > field else 0.0


@numba.njit(parallel=True)
def simulate(x, y, vx, vy, steps, field):
    ux, uy = numpy.empty_like(x), numpy.empty_like(x)
    for _ in range(steps):
        for i in numba.prange(x.size):
            count = 0
            away_x = away_y = along_x = along_y = to_x = to_y = 0.0
            for j in range(x.size):
                dx, dy = x[i] - x[j], y[i] - y[j]
                square = dx * dx + dy * dy
                if j != i and square < 36.0:
                    count += 1
                    along_x += vx[j]
                    along_y += vy[j]
                    to_x += x[j]
                    to_y += y[j]
                    if square < 2.25:
                        away_x += dx
                        away_y += dy
            ux[i], uy[i] = home(x[i], field), home(y[i], field)
            if count > 0:
                ux[i] += away_x * 0.05 + (along_x / count - vx[i]) * 0.08 + (to_x / count - x[i]) * 0.01
                uy[i] += away_y * 0.05 + (along_y / count - vy[i]) * 0.08 + (to_y / count - y[i]) * 0.01
        for i in numba.prange(x.size):
            vx[i] += ux[i]
            vy[i] += uy[i]
            speed = math.sqrt(vx[i] * vx[i] + vy[i] * vy[i])
            if speed > 1.2:
                vx[i] *= 1.2 / speed
                vy[i] *= 1.2 / speed
            x[i] += vx[i]
            y[i] += vy[i]


def compute(c):
    state = {name: c[name] for name in ("x", "y", "vx", "vy")}
    simulate(*state.values(), c["steps"], c["field"])
    return state
