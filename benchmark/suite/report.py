"""Draws what benchmarks measured: one page with every picture and table in it, and the pictures by themselves.

    python3 benchmark/suite/report.py RESULTS_FOLDER OUTPUT_FOLDER [PICTURES_FOLDER]

RESULTS_FOLDER has the JSON that benchmarks wrote; results.py says which of it counts, and has the tables. OUTPUT_FOLDER gets index.html, and each picture as SVG
and PNG; PICTURES_FOLDER, if given, those that documents show: of the machine with a GPU, and the one without, of which most is known. Needs Matplotlib. Nothing is
drawn of what was not measured.
"""

import datetime
import io
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

import results
from results import by_hand, crossover, line, median, named, seconds, times

COLOURS = {
    "ruby": "#b5422e", "cpu": "#2f6db3", "cuda": "#5d9c2e", "cpu, MDArray": "#7aa6d6", "cuda, MDArray": "#a4cf7d",
    "c, one thread": "#8a8a8a", "c, OpenMP": "#4d4d4d", "cuda by hand, nvcc": "#2b4d12", "cuda by hand, nvrtc": "#9aa52b", "numba": "#d79b2d", "numba_cuda": "#b0741a", "cupy": "#8c5bb0", "jax": "#3aa7a0",
}
PHASES = {
    "trace": "#c9a227", "pack": "#e3c766", "upload": "#8c5bb0", "kernel": "#2f6db3", "download": "#b79ad0", "unpack": "#d9793d", "other": "#c4c4c4",
}
plt.rcParams.update({
    "font.family": "DejaVu Sans", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.titlesize": 11, "axes.titleweight": "bold", "axes.titlelocation": "left", "legend.frameon": False, "svg.hashsalt": "ikra", "svg.fonttype": "path",
    "axes.grid": False, "figure.facecolor": "white",
})


def colour(version):
    return COLOURS.get(version.removesuffix(", tuned"), "#999999")


# Pictures: each gives a figure, or None where there is nothing to draw

def speedups(programs):
    bars = ["cpu", "cuda", "cpu, MDArray", "cuda, MDArray"]
    bars = [bar for bar in bars if any(median(p, bar) and median(p, "ruby") for p in programs.values())]
    rows = sorted((name for name, p in programs.items() if median(p, "ruby") and median(p, "cpu")),
                  key=lambda name: median(programs[name], "ruby") / min(median(programs[name], bar) or 1e9 for bar in bars))
    if not rows or not bars:
        return None
    figure, axes = plt.subplots(figsize=(8, 0.9 + len(rows) * (0.22 * len(bars) + 0.2)))
    height = 0.8 / len(bars)
    for row, name in enumerate(rows):
        there = [bar for bar in bars if median(programs[name], bar)]
        for number, bar in enumerate(there):
            value = median(programs[name], "ruby") / median(programs[name], bar)
            place = row + height * (len(there) / 2 - number - 0.5)
            axes.barh(place, value, height * 0.92, color=colour(bar))
            axes.text(value * 1.06, place, times(value), va="center", fontsize=8.5, color="#333333")
    axes.set_yticks(range(len(rows)), [name.replace("_", " ") for name in rows])
    axes.set_xscale("log")
    axes.axvline(1, color="#b5422e", linewidth=1)
    axes.set_xlim(right=axes.get_xlim()[1] * 2.2)
    axes.xaxis.set_major_formatter(FuncFormatter(times))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("times as fast as plain Ruby with YJIT, from Ruby's objects to Ruby's objects")
    if len(bars) > 1:
        axes.legend([plt.Rectangle((0, 0), 1, 1, color=colour(bar)) for bar in bars], [named(bar) for bar in bars], loc="lower right")
    return figure


def kernels(programs):
    pairs = [(bar, device) for bar, device in (("cpu", "cpu"), ("cuda", "gpu")) if any(median(p, bar, "kernel") and by_hand(p, device)[0] for p in programs.values())]
    if not pairs:
        return None
    rows = list(reversed([name for name, p in programs.items() if any(median(p, bar, "kernel") and by_hand(p, device)[0] for bar, device in pairs)]))
    figure, axes = plt.subplots(figsize=(8, 0.9 + len(rows) * (0.22 * len(pairs) + 0.2)))
    height = 0.8 / len(pairs)
    for number, (bar, device) in enumerate(pairs):
        for row, name in enumerate(rows):
            kernel, hand = median(programs[name], bar, "kernel"), by_hand(programs[name], device)[0]
            if not kernel or not hand:
                continue
            place = row + 0.4 - height * (number + 0.5)
            axes.barh(place, hand / kernel, height * 0.92, color=colour(bar))
            axes.text(hand / kernel * 1.06, place, f"{hand / kernel:.2f}", va="center", fontsize=8.5, color="#333333", bbox={"color": "white", "pad": 1})
    axes.set_yticks(range(len(rows)), [name.replace("_", " ") for name in rows])
    axes.set_xscale("log")
    axes.axvline(1, color="#333333", linewidth=1)
    low, high = min(axes.get_xlim()[0], 0.5), max(axes.get_xlim()[1], 1) * 1.8
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(FixedLocator([2.0 ** power for power in range(-10, 11) if low <= 2.0 ** power <= high]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.grid(axis="x", color="#eeeeee")
    axes.set_xlabel("speed of the kernel, 1×: as fast as by hand")
    labels = [f"{named(bar)}, against {'the faster of C on one thread and with OpenMP' if device == 'cpu' else 'CUDA by hand'}" for bar, device in pairs]
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour(bar)) for bar, _ in pairs]
    axes.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 1.0 + 0.6 / figure.get_size_inches()[1]), ncols=2)
    return figure


def phases(programs):
    bars = [bar for bar in ("cpu", "cuda") if any(median(p, bar) for p in programs.values())]
    if not bars:
        return None
    rows = list(reversed(programs))
    figure, all_axes = plt.subplots(1, len(bars), figsize=(4.2 * len(bars) + 2.4, 0.42 * len(rows) + 1.4), sharey=True, squeeze=False)
    for axes, bar in zip(all_axes[0], bars):
        for row, name in enumerate(rows):
            whole = median(programs[name], bar)
            if not whole:
                continue
            known = programs[name]["versions"][bar]["phases"]
            parts = {phase: known.get(phase, 0.0) for phase in PHASES if phase != "other"}
            whole = max(whole, sum(parts.values()))
            parts["other"] = whole - sum(parts.values())
            left = 0.0
            for phase, time in parts.items():
                axes.barh(row, time / whole * 100, left=left, color=PHASES[phase], height=0.72)
                left += time / whole * 100
            axes.text(102, row, seconds(whole), va="center", fontsize=8.5, color="#333333")
        axes.set_title(named(bar))
        axes.set_xlim(0, 100)
        axes.set_xlabel("% of a warm call")
    all_axes[0][0].set_yticks(range(len(rows)), [name.replace("_", " ") for name in rows])
    handles = [plt.Rectangle((0, 0), 1, 1, color=found) for found in PHASES.values()]
    figure.tight_layout()
    figure.legend(handles, PHASES, loc="lower center", ncols=len(PHASES), bbox_to_anchor=(0.5, 0.99), columnspacing=1.2, handlelength=1.2)
    return figure


def roofline(programs, ceilings, device):
    """Speed over operations per byte that must come from memory; both are counts of the program, not of the machine."""
    roofs = (ceilings or {}).get("ceilings", {})
    roof = roofs.get("cpu, all cores" if device == "cpu" else "gpu")
    if not roof:
        return None
    figure, axes = plt.subplots(figsize=(8, 5.2))
    marks = {"cpu": ("o", "Ikra, CPU"), "cuda": ("o", "Ikra, GPU"), "hand": ("x", "by hand")}
    points = []
    for name, p in programs.items():
        bar = "cpu" if device == "cpu" else "cuda"
        work, kernel, (hand, _) = p.get("work"), median(p, bar, "kernel"), by_hand(p, device)
        if not work or not kernel:
            continue
        x = work["flops"] / work["bytes"]
        points.append((x, work["flops"] / kernel / 1e9, name, work["flops"] / hand / 1e9 if hand else None))
    if not points:
        plt.close(figure)
        return None
    low, high = min(p[0] for p in points) / 3, max(p[0] for p in points) * 4
    xs = [low * (high / low) ** (i / 200) for i in range(201)]
    for key, label, style in (("fma", "contracted multiplications and additions", ":"), ("flops", "multiplications and additions apart, as Ruby's", "-"), ("scalar", "without vectors", "--")):
        if roof.get(key):
            axes.plot(xs, [min(roof[key], roof["bytes"] * x) / 1e9 for x in xs], style, color="#666666", linewidth=1.2)
            axes.text(max(roof[key] / roof["bytes"], low) * 1.15, roof[key] / 1e9 * 1.04, label, ha="left", va="bottom", fontsize=8, color="#666666")
    ridge = min(roof.get("scalar") or roof["flops"], roof["flops"]) / roof["bytes"]
    axes.text(ridge * 0.6, roof["bytes"] * ridge * 0.75 / 1e9, f"memory, {roof['bytes'] / 1e9:,.{0 if roof['bytes'] > 1e11 else 1}f} GB/s", ha="right", va="center", fontsize=8, color="#666666")
    taken = []
    for x, y, name, hand in sorted(points, key=lambda point: (point[0], -point[1])):
        if hand:
            axes.plot([x, x], [y, hand], color="#bbbbbb", linewidth=1, zorder=1)
            axes.plot(x, hand, "x", color="#333333", markersize=6, zorder=2)
        axes.plot(x, y, "o", color=colour("cpu" if device == "cpu" else "cuda"), markersize=7, zorder=3)
        near = any(abs(x / other[0]) < 1.6 and abs(x / other[0]) > 0.6 and 0.6 < y / other[1] < 1.7 for other in taken)
        axes.annotate(name.replace("_", " "), (x, y), xytext=(7, -11 if near else 4), textcoords="offset points", fontsize=8.5)
        taken.append((x, y))
    axes.plot([], [], "o", color=colour("cpu" if device == "cpu" else "cuda"), label=marks["cpu" if device == "cpu" else "cuda"][1])
    axes.plot([], [], "x", color="#333333", label="C with OpenMP" if device == "cpu" else "CUDA by hand")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    axes.set_xlabel("operations for each byte that memory must carry at least")
    axes.set_ylabel("10⁹ operations a second")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if value >= 1 else f"{value:g}"))
    axes.legend(loc="upper left")
    return figure


# What is told of where one line comes to lie below another.
WHO = {("ruby", "cpu"): "CPU", ("ruby", "cuda"): "GPU", ("cpu", "cuda"): "GPU ahead of CPU"}


def points_of(lines):
    """The sizes of all lines, in order."""
    return sorted({x for line in lines.values() for x, _, _ in line})


def scaling(record):
    found = (record or {}).get("scaling")
    if not found:
        return None
    columns = min(len(found), 2 if len(found) <= 4 else 3)
    rows = -(-len(found) // columns)
    figure, all_axes = plt.subplots(rows, columns, figsize=(4.6 * columns, 3.3 * rows), squeeze=False)
    for axes in all_axes.flat[len(found):]:
        axes.axis("off")
    for axes, (name, sizes) in zip(all_axes.flat, found.items()):
        lines = {}
        for version in ("ruby", "cpu", "cuda"):
            points = lines[version] = line(sizes, version)
            if points:
                axes.plot(*zip(*[(x, y) for x, y, _ in points]), "-", color=colour(version), linewidth=1.6, label=named(version))
                for x, y, scaled in points:
                    axes.plot(x, y, "o", color=colour(version), markersize=4.5, markerfacecolor="white" if scaled else colour(version))
        # of several crossings that lie beside each other, one label above the other
        for number, (slow, fast) in enumerate(results.CROSSINGS):
            crossing = crossover(lines[slow], lines[fast])
            if crossing and crossing[1]:
                shade = "#555555" if slow == "cpu" else colour(fast)
                axes.axvline(crossing[0], color=shade, linestyle="--" if slow == "cpu" else ":", linewidth=1)
                right = crossing[0] > (points_of(lines)[0] * points_of(lines)[-1]) ** 0.5
                axes.annotate(f"{WHO[slow, fast]} from {results.rounded(crossing[0]):,}", (crossing[0], 0.98 - 0.08 * number), xycoords=("data", "axes fraction"),
                              xytext=(-3 if right else 3, 0), textcoords="offset points", fontsize=7.5, va="top", ha="right" if right else "left", color=shade)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(name.replace("_", " "))
        axes.xaxis.set_major_locator(LogLocator(numticks=10))
        axes.yaxis.set_major_formatter(FuncFormatter(seconds))
        axes.set_xlabel("elements")
        axes.grid(axis="y", color="#eeeeee")
    all_axes.flat[0].legend(loc="lower right")
    figure.tight_layout()
    return figure


def lines(programs):
    # nvcc and NVRTC compile the same files
    bars = ["ruby", "cpu", "c, OpenMP", "cuda by hand, nvrtc", "cuda by hand, nvcc", "numba", "numba_cuda", "cupy", "jax"]
    known = [bar for bar in bars if any(median(p, bar, "lines") for p in programs.values())]
    if "cuda by hand, nvrtc" in known and "cuda by hand, nvcc" in known:
        known.remove("cuda by hand, nvrtc")
    if len(known) < 2:
        return None
    figure, axes = plt.subplots(figsize=(8, 3.6))
    width = 0.84 / len(known)
    for number, bar in enumerate(known):
        for column, p in enumerate(programs.values()):
            count = median(p, bar, "lines")
            if count:
                axes.bar(column - 0.42 + width * (number + 0.5), count, width * 0.92, color=colour(bar))
    axes.set_xticks(range(len(programs)), [name.replace("_", "\n") for name in programs], fontsize=8)
    axes.set_ylabel("lines of code")
    axes.legend([plt.Rectangle((0, 0), 1, 1, color=colour(bar)) for bar in known], [named(bar).removesuffix(", nvcc").removesuffix(", NVRTC") for bar in known], ncols=min(len(known), 6), loc="upper left", fontsize=8.5)
    axes.set_ylim(top=axes.get_ylim()[1] * 1.15)
    return figure


def layouts(record):
    """The four combinations of the paper."""
    found = {}
    for name, timing in (record or {}).get("timings", {}).items():
        backend, program, combination, _ = name.split(": ")
        found.setdefault((backend, program), {})[combination] = timing
    if not found:
        return None
    figure, all_axes = plt.subplots(1, len(found), figsize=(2.8 * len(found) + 1.6, 3.4), squeeze=False)
    for axes, ((backend, program), four) in zip(all_axes[0], found.items()):
        best = four["columns, by class"]["median"]
        for place, (combination, timing) in enumerate(four.items()):
            axes.bar(place, timing["median"] / best, color=colour(backend), alpha=1.0 if combination.startswith("columns") else 0.55, width=0.7)
            axes.text(place, timing["median"] / best, f"{timing['median'] / best:.2f}", ha="center", va="bottom", fontsize=8.5)
        axes.set_title(f"{program}, {named(backend)}", fontsize=9.5)
        axes.set_xticks(range(4), [c.replace(", ", ",\n") for c in four], fontsize=7.5)
        axes.set_ylim(top=axes.get_ylim()[1] * 1.08)
    all_axes[0][0].set_ylabel("kernel time, columns by class = 1")
    figure.tight_layout()
    return figure


def marshalling(record):
    """Reordering, and the tracer: over sizes, and over cores."""
    reorder, trace, cores = {}, {}, {}
    for name, value in (record or {}).get("values", {}).items():
        if found := re.match(r"reordering, (\d+) objects of (\d+) class", name):
            reorder.setdefault(int(found[2]), []).append((int(found[1]), max(value["value"], 0.0)))
        elif found := re.match(r"tracer, (\d+) nodes with (\d+) edges, (\w+): million", name):
            trace.setdefault((int(found[2]), found[3]), []).append((int(found[1]), value["value"]))
        elif found := re.match(r"(\d+) cores: (tracer|check), \d+ nodes with \d+ edges, (\w+): million", name):
            cores.setdefault((found[2], found[3]), []).append((int(found[1]), value["value"]))
    if not reorder or not trace:
        return None
    scales = 3 if any(len(points) > 1 for points in cores.values()) else 2
    figure, (left, right, *more) = plt.subplots(1, scales, figsize=(4.8 * scales, 3.6))
    shades = plt.get_cmap("Blues")
    for number, (classes, points) in enumerate(sorted(reorder.items())):
        left.plot(*zip(*sorted(points)), "o-", color=shades(0.35 + 0.6 * number / max(len(reorder) - 1, 1)), label=f"{classes} class{'es' if classes > 1 else ''}", markersize=4)
    left.set_title("job reordering")
    left.set_ylabel("ns for each object")
    for (degree, order), points in sorted(trace.items()):
        right.plot(*zip(*sorted(points)), "o-" if order == "allocated" else "s--", color={1: "#7aa6d6", 4: "#2f6db3", 16: "#173a63"}.get(degree, "#999999"),
                   label=f"{degree} edge{'s' if degree > 1 else ''}, {order}", markersize=4)
    right.set_title("tracer, one core")
    right.set_ylabel("10⁶ ivars, elements a second")
    for axes in more:
        for (what, order), points in sorted(cores.items(), reverse=True):
            axes.plot(*zip(*sorted(points)), "o-" if order == "allocated" else "s--", color="#2f6db3" if what == "tracer" else "#c9a227", label=f"{what}, {order}", markersize=4)
        axes.set_title("tracer, and check of the same objects")
        axes.set_ylabel("10⁶ ivars, elements a second")
    for axes in (left, right, *more):
        axes.set_xscale("log", base=2 if axes in more else 10)
        axes.set_xlabel("cores" if axes in more else "objects")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="#eeeeee")
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2 if axes in more else 3)
    for axes in more:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    figure.tight_layout()
    return figure


# The page

def picture(figure):
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg"):]


# What the pictures of kernels are of.
BY_HAND = ("c, OpenMP", "c, one thread", "cuda by hand, nvcc", "cuda by hand, nvrtc")


def machine_pictures(records):
    """(name, title, figure, where it is from), of what there is."""
    programs = records.get("programs", {}).get("programs", {})
    ceilings = records.get("ceilings")

    def of(*versions):
        return results.sources(programs, versions)

    def one(benchmark):
        return [records[benchmark]["source"]] if benchmark in records else []

    yield "speedup", "Whole calls against plain Ruby", speedups(programs), of("ruby", "cpu", "cuda", "cpu, MDArray", "cuda, MDArray")
    yield "kernels", "Kernels against those by hand, with the same arithmetic", kernels(programs), of("cpu", "cuda", *BY_HAND)
    yield "phases", "Where a call's time goes", phases(programs), of("cpu", "cuda")
    yield "roofline", "Roofline of the CPU", roofline(programs, ceilings, "cpu"), of("cpu", *BY_HAND[:2]) + one("ceilings")
    yield "roofline-gpu", "Roofline of the GPU", roofline(programs, ceilings, "gpu"), of("cuda", *BY_HAND[2:]) + one("ceilings")
    yield "scaling", "Over the size of the problem", scaling(records.get("scaling")), one("scaling")
    yield "lines", "Lines of code", lines(programs), results.sources(programs)
    yield "layout", "Columns and job reordering: with each, and without", layouts(records.get("layout")), one("layout")
    yield "marshalling", "Reordering and tracing objects", marshalling(records.get("objects")), one("objects")


# What documents show.
SHOWN = {"cpu-speedup", "cpu-phases", "cpu-roofline", "cpu-scaling", "cpu-layout", "cpu-marshalling", "gpu-speedup", "gpu-kernels", "gpu-roofline-gpu", "gpu-scaling"}


def main(folder, output, pictures=None):
    output = pathlib.Path(output)
    output.mkdir(parents=True, exist_ok=True)

    def drawn(label, records):
        for name, title, figure, sources in machine_pictures(records):
            if figure is None:
                continue
            svg = picture(figure)
            (output / f"{label}-{name}.svg").write_text(svg)
            figure.savefig(output / f"{label}-{name}.png", dpi=130, bbox_inches="tight")
            if pictures and f"{label}-{name}" in SHOWN:
                pathlib.Path(pictures).mkdir(parents=True, exist_ok=True)
                figure.savefig(pathlib.Path(pictures) / f"{label}-{name}.png", dpi=110, bbox_inches="tight")
            plt.close(figure)
            yield name, f"<h3>{title}</h3>{svg}{results.caption(sources)}"

    body = list(results.sections(results.latest(folder), drawn))
    if not body:
        sys.exit(f"nothing to report in {folder}: run rake benchmark first")
    (output / "index.html").write_text(results.page(body, f"Drawn {datetime.date.today().isoformat()} from benchmark/results."))
    print(output / "index.html")


if __name__ == "__main__":
    main(*sys.argv[1:])
