extern "C" __global__ void generation(const unsigned char *from, unsigned char *to, long long size) {
  const int n = (int)size, i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * n) return;
  const int row = i / n, column = i % n, left = column ? column - 1 : n - 1, right = column < n - 1 ? column + 1 : 0;
  const unsigned char *up = from + (row + n - 1) % n * n, *here = from + row * n, *down = from + (row + 1) % n * n;
  const int around = up[left] + up[column] + up[right] + here[left] + here[right] + down[left] + down[column] + down[right];
  to[i] = around == 3 || (around == 2 && here[column]);
}
