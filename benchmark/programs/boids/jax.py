import jax
import jax.numpy as np


def urge(x, y, vx, vy, field):
    away_x, away_y = x[:, None] - x, y[:, None] - y
    square = away_x * away_x + away_y * away_y
    others = ~np.eye(x.size, dtype=bool)
    seen, near = others & (square < 36.0), others & (square < 2.25)
    count = np.maximum(seen.sum(axis=1), 1)
    some = seen.any(axis=1)

    def one(place, speed, away):
        home = np.where(place < 0.0, 0.1, np.where(place > field, -0.1, 0.0))
        along, to = (seen * speed).sum(axis=1) / count - speed, (seen * place).sum(axis=1) / count - place
        return home + np.where(some, (near * away).sum(axis=1) * 0.05 + along * 0.08 + to * 0.01, 0.0)

    return one(x, vx, away_x), one(y, vy, away_y)


@jax.jit
def simulate(x, y, vx, vy, steps, field):
    def step(_, state):
        x, y, vx, vy = state
        ux, uy = urge(x, y, vx, vy, field)
        vx, vy = vx + ux, vy + uy
        speed = np.sqrt(vx * vx + vy * vy)
        limit = np.where(speed > 1.2, 1.2 / speed, 1.0)
        vx, vy = vx * limit, vy * limit
        return x + vx, y + vy, vx, vy

    return jax.lax.fori_loop(0, steps, step, (x, y, vx, vy))


def compute(c):
    names = ("x", "y", "vx", "vy")
    return dict(zip(names, simulate(*(c[name] for name in names), c["steps"], c["field"])))
