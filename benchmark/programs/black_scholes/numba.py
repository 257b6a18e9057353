import math

import numba
import numpy


@numba.njit
def normal(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@numba.njit(parallel=True)
def prices(spot, strike, years, put, rate, volatility):
    price = numpy.empty_like(spot)
    for i in numba.prange(spot.size):
        spread = volatility * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + (rate + volatility * volatility / 2.0) * years[i]) / spread
        d2 = d1 - spread
        present = strike[i] * math.exp(-rate * years[i])
        if put[i]:
            price[i] = present * normal(-d2) - spot[i] * normal(-d1)
        else:
            price[i] = spot[i] * normal(d1) - present * normal(d2)
    return price


def compute(c):
    return {"price": prices(c["spot"], c["strike"], c["years"], c["put"], c["rate"], c["volatility"])}
