// Columns of objects: each cell's neighbours, whether it is alive, and whether it will be.
extern "C" __global__ void look(const int *neighbours, const unsigned char *alive, unsigned char *next, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int around = 0;
  for (int k = 0; k < 8; k++) around += alive[neighbours[8 * i + k]];
  next[i] = around == 3 || (around == 2 && alive[i]);
}
extern "C" __global__ void become(unsigned char *alive, const unsigned char *next, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) alive[i] = next[i];
}
