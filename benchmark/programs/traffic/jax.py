import jax
import jax.numpy as np


def roll(dice):
    return (dice * 1103515245 + 12345) & 0x7FFFFFFF


def advance(actors, distance, length, offset, way):
    progress, street, dice = actors
    there = progress + distance
    first, ways = offset[street], offset[street + 1] - offset[street]
    end = there >= length[street]
    turns, thrown = end & (ways > 0), roll(dice)
    progress = np.where(turns, 0.0, np.where(end, length[street], np.maximum(there, 0.0)))
    street = np.where(turns, way[first + (thrown >> 16) % np.maximum(ways, 1)], street)
    return progress, street, np.where(turns, thrown, dice)


@jax.jit
def drive(actors, own, grip, ticks, length, limit, offset, way):
    def tick(_, actors):
        return advance(actors, np.minimum(own, limit[actors[1]]) * grip, length, offset, way)

    return jax.lax.fori_loop(0, ticks, tick, actors)


@jax.jit
def walk(actors, ticks, length, offset, way):
    def tick(_, actors):
        progress, street, dice = actors
        dice = roll(dice)
        pace = -2.0 + 6.0 * dice / 2147483648.0
        return advance((progress, street, dice), pace * 0.44704, length, offset, way)

    return jax.lax.fori_loop(0, ticks, tick, actors)


def compute(c):
    names = ("progress", "street", "dice")
    cars, vehicles = int(c["cars"]), int(c["cars"] + c["buses"])
    grip = np.where(np.arange(vehicles) < cars, c["car_grip"], c["bus_grip"])
    driving, walking = (tuple(c[name][kind] for name in names) for kind in (slice(vehicles), slice(vehicles, None)))
    driving = drive(driving, c["own"][:vehicles], grip, c["ticks"], c["length"], c["limit"], c["roads_offset"], c["roads"])
    walking = walk(walking, c["ticks"], c["length"], c["neighbors_offset"], c["neighbors"])
    return {name: np.concatenate(both) for name, both in zip(names, zip(driving, walking))}
