import numba.cuda


@numba.cuda.jit
def mandelbrot(steps, width, left, top, step):
    point = numba.cuda.grid(1)
    if point < steps.size:
        real = left + (point % width) * step
        imaginary = top + (point // width) * step
        x = y = 0.0
        count = 0
        while count < 256 and x * x + y * y <= 4.0:
            x, y = x * x - y * y + real, 2.0 * x * y + imaginary
            count += 1
        steps[point] = count


def compute(c):
    mandelbrot[(c["steps"].size + 255) // 256, 256](c["steps"], c["width"], c["left"], c["top"], c["step"])
    return {"steps": c["steps"]}
