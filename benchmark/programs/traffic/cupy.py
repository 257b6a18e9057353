import cupy


def roll(dice):
    return (dice * 1103515245 + 12345) & 0x7FFFFFFF


def advance(actors, distance, length, offset, way):
    progress, street, dice = actors
    there = progress + distance
    first, ways = offset[street], offset[street + 1] - offset[street]
    end = there >= length[street]
    turns, thrown = end & (ways > 0), roll(dice)
    progress = cupy.where(turns, 0.0, cupy.where(end, length[street], cupy.maximum(there, 0.0)))
    street = cupy.where(turns, way[first + (thrown >> 16) % cupy.maximum(ways, 1)], street)
    return progress, street, cupy.where(turns, thrown, dice)


def drive(actors, own, grip, ticks, length, limit, offset, way):
    for _ in range(ticks):
        actors = advance(actors, cupy.minimum(own, limit[actors[1]]) * grip, length, offset, way)
    return actors


def walk(actors, ticks, length, offset, way):
    for _ in range(ticks):
        progress, street, dice = actors
        dice = roll(dice)
        pace = -2.0 + 6.0 * dice / 2147483648.0
        actors = advance((progress, street, dice), pace * 0.44704, length, offset, way)
    return actors


def compute(c):
    names = ("progress", "street", "dice")
    cars, vehicles = int(c["cars"]), int(c["cars"] + c["buses"])
    grip = cupy.where(cupy.arange(vehicles) < cars, c["car_grip"], c["bus_grip"])
    driving, walking = (tuple(c[name][kind] for name in names) for kind in (slice(vehicles), slice(vehicles, None)))
    driving = drive(driving, c["own"][:vehicles], grip, c["ticks"], c["length"], c["limit"], c["roads_offset"], c["roads"])
    walking = walk(walking, c["ticks"], c["length"], c["neighbors_offset"], c["neighbors"])
    return {name: cupy.concatenate(both) for name, both in zip(names, zip(driving, walking))}
