def compute(c):
    n = int(c["size"])
    return {"c": (c["a"].reshape(n, n) @ c["b"].reshape(n, n)).reshape(-1)}
