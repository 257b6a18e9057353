import math

import numba.cuda


@numba.cuda.jit(device=True)
def normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@numba.cuda.jit
def prices(spot, strike, years, put, price, rate, volatility):
    i = numba.cuda.grid(1)
    if i < spot.size:
        spread = volatility * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + (rate + volatility * volatility / 2.0) * years[i]) / spread
        d2 = d1 - spread
        present = strike[i] * math.exp(-rate * years[i])
        if put[i]:
            price[i] = present * normal(-d2) - spot[i] * normal(-d1)
        else:
            price[i] = spot[i] * normal(d1) - present * normal(d2)


def compute(c):
    columns = [c[name] for name in ("spot", "strike", "years", "put", "price")]
    prices[(c["spot"].size + 255) // 256, 256](*columns, c["rate"], c["volatility"])
    return {"price": c["price"]}
