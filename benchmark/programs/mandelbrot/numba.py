import numba
import numpy


@numba.njit(parallel=True)
def mandelbrot(width, left, top, step):
    steps = numpy.empty(width * width, numpy.int64)
    for point in numba.prange(width * width):
        real = left + (point % width) * step
        imaginary = top + (point // width) * step
        x = y = 0.0
        count = 0
        while count < 256 and x * x + y * y <= 4.0:
            x, y = x * x - y * y + real, 2.0 * x * y + imaginary
            count += 1
        steps[point] = count
    return steps


def compute(c):
    return {"steps": mandelbrot(c["width"], c["left"], c["top"], c["step"])}
