extern "C" __global__ void stage(const double *cosine, const double *sine, const double *re, const double *im, double *to_re, double *to_im, long long count,
                                 long long apart) {
  const int half = (int)count, distance = (int)apart, i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= half) return;
  const int angle = i & -distance, up = i + angle, down = up + distance;
  const double down_re = re[i] - re[i + half], down_im = im[i] - im[i + half];
  to_re[up] = re[i] + re[i + half];
  to_im[up] = im[i] + im[i + half];
  to_re[down] = down_re * cosine[angle] - down_im * sine[angle];
  to_im[down] = down_re * sine[angle] + down_im * cosine[angle];
}
