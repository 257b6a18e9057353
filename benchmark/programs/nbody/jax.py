import jax
import jax.numpy as np


@jax.jit
def simulate(mass, place, speed, steps, seconds):
    def step(_, state):
        place, speed = state
        away = place[:, None, :] - place[:, :, None]
        square = (away * away).sum(axis=0) + 0.05
        pull = mass / (square * np.sqrt(square))
        speed = speed + (away * pull).sum(axis=2) * seconds
        return place + speed * seconds, speed

    return jax.lax.fori_loop(0, steps, step, (place, speed))


def compute(c):
    place, speed = np.stack([c["x"], c["y"], c["z"]]), np.stack([c["vx"], c["vy"], c["vz"]])
    place, speed = simulate(c["mass"], place, speed, c["steps"], c["seconds"])
    return dict(zip(("x", "y", "z", "vx", "vy", "vz"), (*place, *speed)))
