import cupy


def compute(c):
    mass, seconds = c["mass"], c["seconds"]
    place = cupy.stack([c["x"], c["y"], c["z"]])
    speed = cupy.stack([c["vx"], c["vy"], c["vz"]])
    for _ in range(c["steps"]):
        away = place[:, None, :] - place[:, :, None]
        square = (away * away).sum(axis=0) + 0.05
        pull = mass / (square * cupy.sqrt(square))
        speed += (away * pull).sum(axis=2) * seconds
        place += speed * seconds
    return dict(zip(("x", "y", "z", "vx", "vy", "vz"), (*place, *speed)))
