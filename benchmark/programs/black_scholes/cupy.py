import math

import cupy
from cupyx.scipy.special import erfc


def normal(x):
    return 0.5 * erfc(-x / math.sqrt(2.0))


def compute(c):
    spot, strike, years, rate, volatility = c["spot"], c["strike"], c["years"], c["rate"], c["volatility"]
    spread = volatility * cupy.sqrt(years)
    d1 = (cupy.log(spot / strike) + (rate + volatility * volatility / 2.0) * years) / spread
    d2 = d1 - spread
    present = strike * cupy.exp(-rate * years)
    put = present * normal(-d2) - spot * normal(-d1)
    call = spot * normal(d1) - present * normal(d2)
    return {"price": cupy.where(c["put"] != 0, put, call)}
