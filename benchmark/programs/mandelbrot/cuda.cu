extern "C" __global__ void mandelbrot(long long *steps, long long width, double left, double top, double step) {
  long long point = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (point >= width * width) return;
  const double real = left + (point % width) * step, imaginary = top + (point / width) * step;
  double x = 0, y = 0;
  int count = 0;
  while (count < 256 && x * x + y * y <= 4.0) {
    const double next = x * x - y * y + real;
    y = 2.0 * x * y + imaginary;
    x = next;
    count++;
  }
  steps[point] = count;
}
