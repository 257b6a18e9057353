// One actor's second, in the order in which Ruby does the arithmetic: what c.c and cuda.cu share. They differ in their loops over actors.
//
// With KEEP_STREET a street's fields stay in registers until the actor leaves it, which Ruby's program does not say and a person would write second.

typedef struct {
  const double *length, *limit;
  const int *neighbors_offset, *neighbors, *roads_offset, *roads;
} world;

typedef struct {
  double progress;
  int street;
  unsigned dice;
#ifdef KEEP_STREET
  double length, limit;
#endif
} actor;

#ifdef KEEP_STREET
#define LENGTH(a, w) ((a)->length)
#define LIMIT(a, w) ((a)->limit)
#else
#define LENGTH(a, w) ((w)->length[(a)->street])
#define LIMIT(a, w) ((w)->limit[(a)->street])
#endif

EACH void look(actor *a, const world *w) {
#ifdef KEEP_STREET
  a->length = w->length[a->street];
  a->limit = w->limit[a->street];
#else
  (void)a;
  (void)w;
#endif
}

EACH unsigned roll(actor *a) {
  a->dice = (a->dice * 1103515245u + 12345u) & 0x7fffffffu;
  return a->dice;
}

EACH void advance(actor *a, const world *w, double distance, const int *offset, const int *way) {
  a->progress += distance;
  if (a->progress < 0.0) {
    a->progress = 0.0;
  } else if (a->progress >= LENGTH(a, w)) {
    const int first = offset[a->street], ways = offset[a->street + 1] - first;
    if (ways == 0) {
      a->progress = LENGTH(a, w);
    } else {
      a->street = way[first + (int)((roll(a) >> 16) % (unsigned)ways)];
      a->progress = 0.0;
      look(a, w);
    }
  }
}

EACH void drive(actor *a, const world *w, double max_velocity, double grip) {
  const double limit = LIMIT(a, w), velocity = max_velocity < limit ? max_velocity : limit;
  advance(a, w, velocity * grip, w->roads_offset, w->roads);
}

EACH void walk(actor *a, const world *w) {
  const double pace = -2.0 + 6.0 * (double)roll(a) / 2147483648.0;
  advance(a, w, pace * 0.44704, w->neighbors_offset, w->neighbors);
}

// All ticks of an actor, in registers. grip is that of its kind; own is its velocity, or less than none for who walks.
EACH void live(const world *w, double *progress, int *street, int *dice, long long i, long long ticks, double own, double grip) {
  actor a;
  a.progress = progress[i];
  a.street = street[i];
  a.dice = (unsigned)dice[i];
  look(&a, w);
  if (grip >= 0.0) {
    for (long long tick = 0; tick < ticks; tick++) drive(&a, w, own, grip);
  } else {
    for (long long tick = 0; tick < ticks; tick++) walk(&a, w);
  }
  progress[i] = a.progress;
  street[i] = a.street;
  dice[i] = (int)a.dice;
}
