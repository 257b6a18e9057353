"""Programs of benchmark/mapreduce.rb in Python.

    python3 benchmark/mapreduce/peers.py counter|polars|duckdb|cupy words|histogram|pages|grep FILE RUNS

Prints as its last line the same JSON as the programs in C: milliseconds of each run from the bytes in memory (DuckDB: from the file) to the result in
Python, for CuPy also of kernels, and the checksum of the result; or {"missing": "..."} where the library, or the device that it needs, is not there, or where it
has no such program. Words of a line are separated by single spaces.
"""

import collections
import io
import json
import re
import sys
import time
import zlib

MASK = 2**64 - 1


def mix(x):
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def checksum(counts):
    """As in common.h, of pairs of bytes and numbers."""
    keys = total = entries = 0
    for key, number in counts:
        keys += 1
        total += number
        entries += mix((zlib.crc32(key) + (number << 32)) & MASK)
    return {"keys": keys, "sum": total, "hash": f"{entries & MASK:016x}"}


class Counter:
    """Python's own library."""

    version = "Python " + sys.version.split()[0]

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()

    def words(self):
        return collections.Counter(self.bytes.split())

    def histogram(self):
        counts = [collections.Counter(self.bytes[channel::3]) for channel in range(3)]
        return {256 * channel + shade: number for channel, found in enumerate(counts) for shade, number in found.items()}

    def pages(self):
        visits = set(line.rsplit(b" ", 1)[0] for line in self.bytes.splitlines())
        return collections.Counter(visit.split(b" ", 1)[0] for visit in visits)

    def grep(self):
        return collections.Counter(line.split(None, 1)[0] for line in self.bytes.splitlines() if re.search(rb" 5\d\d ", line))

    @staticmethod
    def pairs(counts):
        return ((key.to_bytes(4, "little") if isinstance(key, int) else key, number) for key, number in counts.items())


class Polars(Counter):
    def __init__(self, path):
        import polars

        self.polars = polars
        self.version = "Polars " + polars.__version__
        super().__init__(path)

    def words(self):
        pl = self.polars
        lines = pl.read_csv(io.BytesIO(self.bytes), has_header=False, separator="\x01", quote_char=None, new_columns=["line"])
        return lines.lazy().select(pl.col("line").str.split(" ").explode().alias("word")).group_by("word").len().collect()

    @staticmethod
    def pairs(counts):
        return ((word.encode(), number) for word, number in counts.iter_rows())


class DuckDB:
    def __init__(self, path):
        import duckdb
        import numpy  # noqa: F401, for the result

        self.duckdb = duckdb
        self.version = "DuckDB " + duckdb.__version__
        self.path = path.replace("'", "''")

    def words(self):
        lines = f"read_csv('{self.path}', columns = {{'line': 'VARCHAR'}}, header = false, delim = '\\x01', quote = '', escape = '', auto_detect = false)"
        return self.duckdb.sql(f"SELECT word, count(*) FROM (SELECT unnest(string_split(line, ' ')) AS word FROM {lines}) GROUP BY word").fetchnumpy()

    @staticmethod
    def pairs(counts):
        words, numbers = counts.values()
        return ((word.encode(), int(number)) for word, number in zip(words, numbers))


class Cupy(Counter):
    def __init__(self, path):
        import cupy
        import numpy

        cupy.cuda.runtime.getDeviceCount()
        self.cupy = cupy
        self.version = "CuPy " + cupy.__version__
        self.kernels = []
        self.array = numpy.fromfile(path, dtype=numpy.uint8)

    def histogram(self):
        cp = self.cupy
        bytes = cp.asarray(self.array)
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        counts = cp.concatenate([cp.bincount(bytes[channel::3], minlength=256) for channel in range(3)])
        end.record()
        found = counts.get()
        self.kernels.append(cp.cuda.get_elapsed_time(begin, end))
        return {key: int(number) for key, number in enumerate(found) if number}


LIBRARIES = {"counter": (Counter, "words histogram pages grep"), "polars": (Polars, "words"), "duckdb": (DuckDB, "words"), "cupy": (Cupy, "histogram")}


def main(library, kind, path, runs):
    made, kinds = LIBRARIES[library]
    if kind not in kinds.split():
        return {"missing": f"{library} has no {kind}"}
    try:
        peer = made(path)
    except Exception as error:
        return {"missing": f"{library}: {error}"}
    totals = []
    warmup = int(library != "counter")
    for _ in range(int(runs) + warmup):
        began = time.perf_counter()
        counts = getattr(peer, kind)()
        totals.append((time.perf_counter() - began) * 1e3)
    found = {"total": totals[warmup:], "version": peer.version, **checksum(peer.pairs(counts))}
    if hasattr(peer, "kernels"):
        found["kernel"] = peer.kernels[warmup:]
    return found


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
