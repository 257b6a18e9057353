import cupy


def urge(x, y, vx, vy, field):
    away_x, away_y = x[:, None] - x, y[:, None] - y
    square = away_x * away_x + away_y * away_y
    others = ~cupy.eye(x.size, dtype=bool)
    seen, near = others & (square < 36.0), others & (square < 2.25)
    count = cupy.maximum(seen.sum(axis=1), 1)
    some = seen.any(axis=1)

    def one(place, speed, away):
        home = cupy.where(place < 0.0, 0.1, cupy.where(place > field, -0.1, 0.0))
        along, to = (seen * speed).sum(axis=1) / count - speed, (seen * place).sum(axis=1) / count - place
        return home + cupy.where(some, (near * away).sum(axis=1) * 0.05 + along * 0.08 + to * 0.01, 0.0)

    return one(x, vx, away_x), one(y, vy, away_y)


def compute(c):
    x, y, vx, vy = (c[name] for name in ("x", "y", "vx", "vy"))
    for _ in range(c["steps"]):
        ux, uy = urge(x, y, vx, vy, c["field"])
        vx, vy = vx + ux, vy + uy
        speed = cupy.sqrt(vx * vx + vy * vy)
        limit = cupy.where(speed > 1.2, 1.2 / speed, 1.0)
        vx, vy = vx * limit, vy * limit
        x, y = x + vx, y + vy
    return {"x": x, "y": y, "vx": vx, "vy": vy}
