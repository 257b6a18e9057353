// What a particle does in a step: what c.c and cuda.cu share. They differ in their loops over particles.

typedef struct {
  const int *cell, *first, *members;
  int across;
} grid;

// The loop over all particles in the cells around that of particle i, in the order of Ruby's lists: g.members[at].
#define AROUND(g, i)                                                                                                                                \
  const int across = (g).across, row = (g).cell[i] / across, column = (g).cell[i] % across;                                                         \
  for (int down = row > 0 ? row - 1 : 0; down <= row + 1 && down < across; down++)                                                                  \
    for (int right = column > 0 ? column - 1 : 0; right <= column + 1 && right < across; right++)                                                   \
      for (int at = (g).first[down * across + right]; at < (g).first[down * across + right + 1]; at++)

EACH void weigh_one(grid g, int i, const double *x, const double *y, double *density, double *pressure) {
  const double ox = x[i], oy = y[i];
  double sum = 0;
  AROUND(g, i) {
    const int j = g.members[at];
    const double dx = x[j] - ox, dy = y[j] - oy, near = 1.0 - (dx * dx + dy * dy);
    if (near > 0.0) sum += near * near * near;
  }
  density[i] = sum;
  pressure[i] = 3.0 * (sum - 2.0);
}

EACH void push_one(grid g, int i, const double *x, const double *y, const double *vx, const double *vy, const double *density, const double *pressure,
                   double *ax, double *ay) {
  const double ox = x[i], oy = y[i], ovx = vx[i], ovy = vy[i], own = pressure[i];
  double sum_x = 0, sum_y = -0.5;
  AROUND(g, i) {
    const int j = g.members[at];
    if (j == i) continue;
    const double dx = x[j] - ox, dy = y[j] - oy, square = dx * dx + dy * dy;
    if (square >= 1.0) continue;
    const double distance = sqrt(square), near = 1.0 - distance;
    const double apart = 0.1 * (own + pressure[j]) * near * near / (density[j] * (distance + 0.01)), along = 0.2 * near / density[j];
    sum_x += along * (vx[j] - ovx) - apart * dx;
    sum_y += along * (vy[j] - ovy) - apart * dy;
  }
  ax[i] = sum_x;
  ay[i] = sum_y;
}
