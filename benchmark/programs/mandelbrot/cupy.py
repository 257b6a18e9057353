import cupy

mandelbrot = cupy.ElementwiseKernel(
    "int64 width, float64 left, float64 top, float64 step", "int64 steps",
    """
    double real = left + (i % width) * step, imaginary = top + (i / width) * step, x = 0, y = 0;
    steps = 0;
    while (steps < 256 && x * x + y * y <= 4.0) {
        double next = x * x - y * y + real;
        y = 2.0 * x * y + imaginary;
        x = next;
        steps++;
    }
    """, "mandelbrot")


def compute(c):
    mandelbrot(c["width"], c["left"], c["top"], c["step"], c["steps"])
    return {"steps": c["steps"]}
