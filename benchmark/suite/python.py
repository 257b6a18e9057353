"""Runs one version in Python of a program (columns.rb describes the files).

    python3 benchmark/suite/python.py LIBRARY PROGRAM_FILE INPUT OUTPUT RUNS

Prints as its last line {"seconds": [...], "phases": [{"upload": ...}, ...], "version": "..."}, or {"missing": "..."} where the library, or the device
that it needs, is not there. `compute(c)` of the program's file is given the columns by name, numbers by themselves as scalars; on a GPU, as arrays there.
The first run, which compiles, does not count; it is "first".
"""

import importlib.metadata
import importlib.util
import json
import sys
import time
import traceback

TYPES = {"q": "<i8", "l": "<i4", "d": "<f8", "C": "u1"}


class Missing(Exception):
    pass


def read(path, np):
    data = open(path, "rb").read()
    count = int(np.frombuffer(data, "<i8", 1, 8)[0])
    at, columns = 16 + 40 * count, {}
    for number in range(count):
        head = data[16 + 40 * number : 56 + 40 * number]
        name, letter, output = head[:24].rstrip(b"\0").decode(), chr(head[24]), head[25] == 1
        size = int(np.frombuffer(head, "<i8", 1, 32)[0])
        values = np.frombuffer(data, TYPES[letter], size, at)
        columns[name] = (letter, output, values)
        at += (values.nbytes + 7) // 8 * 8
    return columns


def write(path, outputs, np):
    with open(path, "wb") as file:
        file.write(b"IKRACOLS" + np.int64(len(outputs)).tobytes())
        for name, (letter, values) in outputs.items():
            file.write(name.encode().ljust(24, b"\0") + letter.encode() + b"\1" + b"\0" * 6 + np.int64(len(values)).tobytes())
        for letter, values in outputs.values():
            data = np.ascontiguousarray(values, TYPES[letter]).tobytes()
            file.write(data + b"\0" * (-len(data) % 8))


class Numba:
    name = "numba"

    def __init__(self):
        import numba

        self.version = "Numba " + numba.__version__

    def up(self, array):
        return array.copy()

    def wait(self, _):
        pass

    def down(self, array):
        return array


class NumbaCuda(Numba):
    def __init__(self):
        # numba-cuda, up to 0.30 at least, asks for it when it first compiles, and NumPy has it no more since 2.5
        import numpy as np

        if not hasattr(np, "row_stack"):
            np.row_stack = np.vstack
        super().__init__()
        import numba.cuda

        if not numba.cuda.is_available():
            raise Missing("no GPU")
        self.cuda = numba.cuda

    def up(self, array):
        return self.cuda.to_device(array)

    def wait(self, _):
        self.cuda.synchronize()

    def down(self, array):
        return array.copy_to_host() if hasattr(array, "copy_to_host") else array


class Cupy:
    def __init__(self):
        import cupy

        try:
            self.version = "CuPy " + cupy.__version__
            cupy.cuda.runtime.getDeviceCount()
        except Exception as error:
            raise Missing("no GPU") from error
        self.cupy = cupy

    def up(self, array):
        return self.cupy.asarray(array)

    def wait(self, _):
        self.cupy.cuda.Device().synchronize()

    def down(self, array):
        return self.cupy.asnumpy(array)


class Jax:
    def __init__(self):
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        self.version = f"JAX {jax.__version__} on {jax.devices()[0].platform}"

    def up(self, array):
        return self.jax.device_put(array)

    def wait(self, values):
        self.jax.block_until_ready(values)

    def down(self, array):
        return array


LIBRARIES = {"numba": Numba, "numba_cuda": NumbaCuda, "cupy": Cupy, "jax": Jax}


def main(library, program, input, output, runs):
    try:
        import numpy as np

        library = LIBRARIES[library]()
        spec = importlib.util.spec_from_file_location("program", program)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except Missing as missing:
        return {"missing": str(missing)}
    except ImportError as error:
        return {"missing": f"{error.name} is not installed"}

    columns = read(input, np)
    seconds, phases = [], []
    for run in range(int(runs) + 1):
        if run > 2 and sum(seconds) > 10:
            break
        start = time.perf_counter()
        given = {name: values[0] if values.size == 1 and not out else library.up(values) for name, (_, out, values) in columns.items()}
        library.wait([value for value in given.values() if getattr(value, "shape", ())])
        up = time.perf_counter()
        result = module.compute(given)
        library.wait(list(result.values()))
        computed = time.perf_counter()
        result = {name: np.asarray(library.down(values)).reshape(-1) for name, values in result.items()}
        down = time.perf_counter()
        seconds.append(down - start)
        phases.append({"upload": up - start, "kernel": computed - up, "download": down - computed})
    write(output, {name: (columns[name][0], values) for name, values in result.items()}, np)
    return {"seconds": seconds[1:], "phases": phases[1:], "first": seconds[0], "version": library.version}


def releases(library):
    """Of NumPy and of what belongs to the library."""
    names = ("numpy", library.split("_")[0])
    return ", ".join(sorted(f"{found.metadata['Name']} {found.version}" for found in importlib.metadata.distributions() if (found.metadata["Name"] or "").lower().startswith(names)))


if __name__ == "__main__":
    try:
        print(json.dumps(main(*sys.argv[1:])))
    except Exception:
        traceback.print_exc()
        # the last lines are what the record has of a version that failed, as where a library and NumPy do not fit together
        sys.exit(f"with {releases(sys.argv[1])}")
