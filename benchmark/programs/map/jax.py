import jax


@jax.jit
def map(x):
    return x * 0.999 + 0.5


def compute(c):
    return {"y": map(c["x"])}
