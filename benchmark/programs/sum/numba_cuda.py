import numba.cuda

sum = numba.cuda.reduce(lambda a, b: a + b)


def compute(c):
    sum(c["x"], res=c["total"])
    return {"total": c["total"]}
