import math

import jax
import jax.numpy as np
from jax.scipy.special import erfc


def normal(x):
    return 0.5 * erfc(-x / math.sqrt(2.0))


@jax.jit
def prices(spot, strike, years, put, rate, volatility):
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility * volatility / 2.0) * years) / spread
    d2 = d1 - spread
    present = strike * np.exp(-rate * years)
    return np.where(put != 0, present * normal(-d2) - spot * normal(-d1), spot * normal(d1) - present * normal(d2))


def compute(c):
    return {"price": prices(c["spot"], c["strike"], c["years"], c["put"], c["rate"], c["volatility"])}
