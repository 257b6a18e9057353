// What streams into a cell collides: what c.c and cuda.cu share.

EACH void collide(const double *incoming, double *to, long long cells, double relaxation) {
  double density = 0, right = 0, down = 0;
UNROLL
  for (int d = 0; d < 9; d++) {
    density += incoming[d];
    right += RIGHT[d] * incoming[d];
    down += DOWN[d] * incoming[d];
  }
  right /= density;
  down /= density;
  const double square = 1.5 * (right * right + down * down);
UNROLL
  for (int d = 0; d < 9; d++) {
    const double along = 3.0 * (RIGHT[d] * right + DOWN[d] * down);
    const double balance = (d == 0 ? 4.0 / 9.0 : d < 5 ? 1.0 / 9.0 : 1.0 / 36.0) * density * (1.0 + along + 0.5 * along * along - square);
    to[d * cells] = incoming[d] + relaxation * (balance - incoming[d]);
  }
}
