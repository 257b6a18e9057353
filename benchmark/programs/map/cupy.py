def compute(c):
    return {"y": c["x"] * 0.999 + 0.5}
