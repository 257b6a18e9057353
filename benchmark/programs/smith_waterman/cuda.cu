extern "C" __global__ void align(const int *one, const int *other, int *score, long long columns, long long diagonal, long long first, long long last) {
  const long long row = first + blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (row > last) return;
  const long long width = columns + 1, column = diagonal - row;
  int *here = score + row * width + column, best = 0;
  const int both = here[-width - 1] + (one[row - 1] == other[column - 1] ? 3 : -2), up = here[-width] - 2, left = here[-1] - 2;
  if (both > best) best = both;
  if (up > best) best = up;
  if (left > best) best = left;
  *here = best;
}
