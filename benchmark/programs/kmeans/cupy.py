import cupy
import cupyx


def added(cluster, values, size):
    sums = cupy.zeros(size, cupy.uint64)
    cupyx.scatter_add(sums, cluster, values.astype(cupy.uint64))
    return sums.astype(cupy.int64)


def once(x, y, cx, cy):
    dx, dy = cx - x[:, None], cy - y[:, None]
    cluster = (dx * dx + dy * dy).argmin(axis=1)
    count = cupy.bincount(cluster, minlength=cx.size)
    sums = [added(cluster, values, cx.size) for values in (x, y)]
    cx, cy = (cupy.where(count > 0, total // cupy.maximum(count, 1), centre) for total, centre in zip(sums, (cx, cy)))
    return cx, cy, cluster


def compute(c):
    cx, cy = c["cx"], c["cy"]
    for _ in range(c["rounds"]):
        cx, cy, cluster = once(c["x"], c["y"], cx, cy)
    return {"cx": cx, "cy": cy, "cluster": cluster}
