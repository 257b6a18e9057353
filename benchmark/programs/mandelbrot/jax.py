import functools

import jax
import jax.numpy as np


@functools.partial(jax.jit, static_argnums=0)
def mandelbrot(width, left, top, step):
    real = left + np.tile(np.arange(width), width) * step
    imaginary = top + np.repeat(np.arange(width), width) * step

    def one(real, imaginary):
        def goes_on(s):
            return (s[2] < 256) & (s[0] * s[0] + s[1] * s[1] <= 4.0)

        def next(s):
            x, y, steps = s
            return x * x - y * y + real, 2.0 * x * y + imaginary, steps + 1

        return jax.lax.while_loop(goes_on, next, (0.0, 0.0, 0))[2]

    return jax.vmap(one)(real, imaginary)


def compute(c):
    return {"steps": mandelbrot(int(c["width"]), c["left"], c["top"], c["step"])}
