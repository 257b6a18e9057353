import jax
import jax.numpy as np


@jax.jit
def once(x, y, cx, cy):
    dx, dy = cx - x[:, None], cy - y[:, None]
    cluster = (dx * dx + dy * dy).argmin(axis=1)
    count = np.bincount(cluster, length=cx.size)
    sums = [np.zeros_like(cx).at[cluster].add(values) for values in (x, y)]
    cx, cy = (np.where(count > 0, total // np.maximum(count, 1), centre) for total, centre in zip(sums, (cx, cy)))
    return cx, cy, cluster


def compute(c):
    cx, cy = c["cx"], c["cy"]
    for _ in range(c["rounds"]):
        cx, cy, cluster = once(c["x"], c["y"], cx, cy)
    return {"cx": cx, "cy": cy, "cluster": cluster}
