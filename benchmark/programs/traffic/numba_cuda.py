import numba
import numba.cuda


@numba.cuda.jit(device=True)
def roll(dice):
    return (dice * 1103515245 + 12345) & 0x7FFFFFFF


@numba.cuda.jit(device=True)
def advance(progress, street, dice, distance, length, offset, way):
    progress += distance
    if progress < 0.0:
        progress = 0.0
    elif progress >= length[street]:
        first, ways = offset[street], offset[street + 1] - offset[street]
        if ways == 0:
            progress = length[street]
        else:
            dice = roll(dice)
            street = way[first + (dice >> 16) % ways]
            progress = 0.0
    return progress, street, dice


@numba.cuda.jit
def simulate(length, limit, neighbors_offset, neighbors, roads_offset, roads, own, progress, street, dice, cars, vehicles, ticks, car_grip, bus_grip):
    i = numba.cuda.grid(1)
    if i < progress.size:
        metres, place, thrown = progress[i], street[i], numba.int64(dice[i])
        if i < vehicles:
            grip = car_grip if i < cars else bus_grip
            for _ in range(ticks):
                velocity = own[i] if own[i] < limit[place] else limit[place]
                metres, place, thrown = advance(metres, place, thrown, velocity * grip, length, roads_offset, roads)
        else:
            for _ in range(ticks):
                thrown = roll(thrown)
                pace = -2.0 + 6.0 * thrown / 2147483648.0
                metres, place, thrown = advance(metres, place, thrown, pace * 0.44704, length, neighbors_offset, neighbors)
        progress[i], street[i], dice[i] = metres, place, thrown


def compute(c):
    state = {name: c[name] for name in ("progress", "street", "dice")}
    town = (c[name] for name in ("length", "limit", "neighbors_offset", "neighbors", "roads_offset", "roads", "own"))
    blocks = (c["progress"].size + 255) // 256
    simulate[blocks, 256](*town, *state.values(), c["cars"], c["cars"] + c["buses"], c["ticks"], c["car_grip"], c["bus_grip"])
    return state
