"""What benchmarks wrote, as the report needs it: which files count, and every table of the page. The pictures are report.py's, which needs Matplotlib; this needs
nothing but Python.

    python3 benchmark/suite/results.py RESULTS_FOLDER     # prints the page without pictures

Of each benchmark on each machine (a GPU, a model of CPU, a number of cores, a Ruby) the latest file counts, of programs the latest of each version of each; what an older
one says of a version that is not in a newer one stands beside it, and captions say which commits these were. Runs of SIZE=small do not count, nor what is of a
benchmark or a program that is no more.
"""

import html
import json
import math
import pathlib
import re
import sys

BENCHMARK = pathlib.Path(__file__).resolve().parent.parent
NAMES = {
    "ruby": "plain Ruby", "cpu": "Ikra, CPU", "cuda": "Ikra, GPU", "cpu, MDArray": "Ikra, CPU, with MDArrays", "cuda, MDArray": "Ikra, GPU, with MDArrays",
    "numba": "Numba", "numba_cuda": "Numba, CUDA", "cupy": "CuPy", "jax": "JAX",
}
# What pictures are of.
DRAWN = ("programs", "ceilings", "scaling", "layout", "objects")
# What belongs to a first call alone, of Ikra's phases.
FIRST = ("source", "infer", "compile")


def named(version):
    if version in NAMES:
        return NAMES[version]
    if version.startswith("c, "):
        return "C" + version[1:]
    return version.replace("cuda by hand", "CUDA by hand").replace("nvrtc", "NVRTC")


def seconds(value, _=None):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)):
        if value * factor >= 0.9995:
            return f"{value * factor:.3g} {unit}"
    return f"{value:.1e} s"


def times(value, _=None):
    return f"{value:,.0f}×" if value >= 10 else f"{value:.2g}×"


# Which files count

def latest(folder):
    """{machine: {benchmark: record}}, machines with a GPU first, then those of which more can be drawn, then those with more programs, then the newer ones."""
    found = {}
    for record in sorted(map(read, pathlib.Path(folder).glob("*.json")), key=lambda record: record["machine"]["date"]):
        if small(record) or not exists(record["benchmark"]):
            continue
        records = found.setdefault(machine(record), {})
        records[record["benchmark"]] = merged(records.get(record["benchmark"]), record)

    def rank(pair):
        name, records = pair
        return not name.startswith("no GPU"), sum(drawn in records for drawn in DRAWN), len(records.get("programs", {}).get("programs", {})), newest(records)["date"]

    return dict(sorted(found.items(), key=rank, reverse=True))


def read(path):
    """A record, of which every part knows where it is from."""
    record = json.loads(path.read_text())
    source = {"file": path.name, "commit": record["machine"].get("commit") or "unknown"}
    record["source"] = source
    for target in record.get("targets", []):
        target["source"] = source
    if record["benchmark"] == "programs":
        record["programs"] = {name: program for name, program in record["programs"].items() if (BENCHMARK / "programs" / name).is_dir()}
        record["targets"] = [target for target in record["targets"] if target["name"].split(":")[0] in record["programs"]]
        for program in record["programs"].values():
            for version in program["versions"].values():
                version["source"] = source
    return record


def small(record):
    return record.get("size") == "small" or "size small" in record.get("notes", [])


def exists(benchmark):
    return any((BENCHMARK / path).exists() for path in (f"{benchmark}.rb", f"micro/{benchmark}.rb", f"baseline/{benchmark}.cu"))


def machine(record):
    facts = record["machine"]
    ruby = re.search(r"ruby \d+\.\d+", facts.get("ruby") or "")
    return f"{(facts.get('gpu') or 'no GPU').split(',')[0]}, {facts['cores']} cores of {facts.get('cpu') or 'an unknown CPU'}, {ruby[0].capitalize() if ruby else 'no Ruby'}"


def newest(records):
    return max((record["machine"] for record in records.values()), key=lambda facts: facts["date"])


def merged(old, new):
    """A later run of some programs or versions beside an earlier one of others, where the sizes are the same."""
    if old is None or new["benchmark"] != "programs":
        return new
    programs = dict(old["programs"])
    for name, program in new["programs"].items():
        before = programs.get(name)
        if before and before["size"] == program["size"]:
            versions = {**before["versions"], **program["versions"]}
            skipped = {v: why for v, why in {**before["skipped"], **program["skipped"]}.items() if v not in versions}
            program = {**before, **program, "versions": versions, "skipped": skipped}
        programs[name] = program
    targets = {t["name"]: t for t in [*old.get("targets", []), *new.get("targets", [])]}
    return {**new, "programs": programs, "targets": list(targets.values())}


# What the numbers are

def median(program, version, key="median"):
    return program["versions"].get(version, {}).get(key)


def by_hand(program, device):
    """Kernel time of the fastest plain version by hand, and its name: of the run that Ikra's is of, if it has any, as times of two runs say nothing beside each other."""
    names = ("c, OpenMP", "c, one thread") if device == "cpu" else ("cuda by hand, nvcc", "cuda by hand, nvrtc")
    versions = program["versions"]
    known = [(median(program, name, "kernel"), name) for name in names if median(program, name, "kernel")]
    ours = versions.get("cpu" if device == "cpu" else "cuda", {}).get("source")
    same = [(kernel, name) for kernel, name in known if versions[name].get("source") == ours]
    return min(same or known, default=(None, None))


def line(sizes, version):
    """(elements, seconds, whether scaled up) of a version over the sizes of a program."""
    return [(p["elements"], median(p, version), "scaled_from" in p["versions"].get(version, {})) for p in sizes if median(p, version)]


def crossover(slow, fast):
    """From which size on the second line lies below the first, and how high: (size, seconds), on straight lines between logarithms.

    None where it does not at the largest size, (the smallest size, None) where it does everywhere.
    """
    other = {x: y for x, y, _ in fast}
    both = [(x, y, other[x]) for x, y, _ in slow if x in other]
    above = [place for place, (_, a, b) in enumerate(both) if b >= a]
    if not both or (above and above[-1] == len(both) - 1):
        return None
    if not above:
        return both[0][0], None
    (x1, a1, b1), (x2, a2, b2) = both[above[-1] : above[-1] + 2]
    d1, d2 = math.log(a1 / b1), math.log(a2 / b2)
    t = d1 / (d1 - d2)
    return math.exp(math.log(x1) + t * math.log(x2 / x1)), math.exp(math.log(a1) + t * math.log(a2 / a1))


# Who is compared with whom over sizes: the slower one at first, the faster one later.
CROSSINGS = (("ruby", "cpu"), ("ruby", "cuda"), ("cpu", "cuda"))


# The page

def caption(sources):
    """Which files and commits something is from."""
    files = {source["file"]: source["commit"] for source in sources}
    if not files:
        return ""
    return "<p class=note>From " + ", ".join(f"{html.escape(file)} ({html.escape(commit)})" for file, commit in sorted(files.items(), reverse=True)) + "</p>"


def sources(programs, versions=None):
    return [found["source"] for p in programs.values() for version, found in p["versions"].items() if versions is None or version in versions]


def rows(head, body, kind=""):
    cells = "".join(f"<th>{html.escape(text)}</th>" for text in head)
    return f"<div class=wide><table{kind}><tr>{cells}</tr>{''.join(body)}</table></div>"


def title(name, p):
    return f"<th>{html.escape(name.replace('_', ' '))}<br><small>{p['elements']:,} elements</small></th>"


def versions_of(programs):
    return list(dict.fromkeys(version for p in programs.values() for version in p["versions"]))


def table(programs):
    versions, commits = versions_of(programs), {source["commit"] for source in sources(programs)}
    lines = []
    for name, p in programs.items():
        cells = []
        for version in versions:
            found = p["versions"].get(version)
            if not found or not found.get("median"):
                cells.append(f"<td class=none>{html.escape(p['skipped'].get(version, 'no such version'))}</td>")
                continue
            kernel = f"<br><small>kernel {seconds(found['kernel'])}</small>" if found["phases"].get("kernel") else ""
            scaled = f"<br><small>scaled up from size {found['scaled_from']}</small>" if "scaled_from" in found else ""
            commit = f"<br><small>{html.escape(found['source']['commit'][:8])}</small>" if len(commits) > 1 else ""
            cells.append(f"<td>{seconds(found['median'])}{kernel}{scaled}<br><small>{found['lines']} lines</small>{commit}</td>")
        lines.append(f"<tr>{title(name, p)}{''.join(cells)}</tr>")
    return f"<h3>All versions</h3>{rows(['', *map(named, versions)], lines)}{caption(sources(programs))}"


def first_calls(programs):
    """What a first call takes, and of it what no later one does; of CUDA by hand its compilation."""
    versions = [v for v in versions_of(programs) if any(median(p, v, "first") or median(p, v, "compile") for p in programs.values())]
    if not versions:
        return ""
    lines = []
    for name, p in programs.items():
        cells = []
        for version in versions:
            first, compiling, phases = (median(p, version, key) for key in ("first", "compile", "first_phases"))
            parts = "".join(f"<br><small>{phase} {seconds(phases[phase])}</small>" for phase in FIRST if phases and phases.get(phase, 0) > 5e-7)
            cells.append(f"<td>{seconds(first)}{parts}</td>" if first else f"<td>{seconds(compiling)}<br><small>compiling alone</small></td>" if compiling else "<td class=none>–</td>")
        lines.append(f"<tr>{title(name, p)}{''.join(cells)}</tr>")
    return f"<h3>First calls</h3>{rows(['', *map(named, versions)], lines)}{caption(sources(programs, versions))}"


def crossings(record):
    """From how many elements on each is faster than the other."""
    found = (record or {}).get("scaling")
    if not found:
        return ""
    pairs = [pair for pair in CROSSINGS if any(line(sizes, pair[0]) and line(sizes, pair[1]) for sizes in found.values())]
    lines = []
    for name, sizes in found.items():
        cells = []
        for slow, fast in pairs:
            lines_of = line(sizes, slow), line(sizes, fast)
            crossing = crossover(*lines_of)
            if not all(lines_of):
                cells.append("<td class=none>–</td>")
            elif crossing is None:
                cells.append(f"<td>not up to {lines_of[1][-1][0]:,}</td>")
            else:
                cells.append(f"<td>{'at most ' if crossing[1] is None else ''}{rounded(crossing[0]):,}</td>")
        lines.append(f"<tr><th>{html.escape(name.replace('_', ' '))}</th>{''.join(cells)}</tr>")
    head = ["", *(f"{named(fast)}, faster than {named(slow)} from" for slow, fast in pairs)]
    return f"<h4>From how many elements on</h4>{rows(head, lines)}"


def objects(record):
    """What objects cost on one core beside kernels, by the slopes that micro/objects.rb took; a call over one object; and the tracer on all cores against one."""
    values, timings = ((record or {}).get(key, {}) for key in ("values", "timings"))
    lines = []

    def line(name, *cells):
        span = f" colspan={3 - len(cells)}" if len(cells) < 2 else ""
        lines.append(f"<tr><th>{html.escape(name)}</th>{''.join(f'<td{span}>{html.escape(cell)}</td>' for cell in cells)}</tr>")

    for phase, name in (("trace", "tracing"), ("pack", "packing"), ("unpack", "writing back")):
        cells = [values.get(f"slots, {phase}: {what}") for what in ("for each ivar", "for each object beside them")]
        if all(cells):
            line(name, *(nanoseconds(cell["value"]) for cell in cells))
    if call := timings.get("a call over one object: whole"):
        line("a call over one object", seconds(call["median"]))
    against = {}
    for name, value in values.items():
        if found := re.match(r"tracer, (\w+): (\d+) cores against one", name):
            against[found[1]] = max(against.get(found[1], (0, None)), (int(found[2]), value["value"]))
    for order, (cores, factor) in against.items():
        line(f"the tracer on {cores} cores against one, heap {order}", times(factor))
    return f"<h3>What objects cost</h3>{rows(['on one core', 'each ivar', 'each object beside them'], lines)}{caption([record['source']])}" if lines else ""


def nanoseconds(value):
    """Differences of two measurements: of less than a tenth, or the wrong way round, no more is known."""
    return f"{value:.3g} ns" if value >= 0.1 else "less than 0.1 ns"


def rounded(number):
    """To two digits: between two sizes that were measured no more is known."""
    return int(round(number, 1 - int(math.floor(math.log10(number))))) if number >= 1 else number


def targets(records):
    found = [target for record in records.values() for target in record.get("targets", [])]
    if not found:
        return ""
    lines = [
        f"<tr class={'met' if t['met'] else 'missed'}><td>{html.escape(t['name'])}</td><td>{t['value']:.3g} {html.escape(t['unit'])}</td>"
        f"<td>{'at least' if 'at_least' in t else 'at most'} {t.get('at_least', t.get('at_most'))}</td><td>{html.escape(t['source']['commit'][:12])}</td>"
        f"<td>{'met' if t['met'] else 'missed'}</td></tr>" for t in found]
    return f"<h3>What the project promises</h3>{rows(['what', 'measured', 'promised', 'commit', ''], lines)}"


def facts(records):
    """Of the machine; which commit is told where something is shown."""
    shown = {k: v for k, v in newest(records).items() if v not in (None, False) and k not in ("commit", "date", "load")}
    return "<p class=facts>" + " · ".join(f"{k.replace('_', ' ')}: {html.escape(str(v))}" for k, v in shown.items()) + "</p>"


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; color: #222 }
h1, h2, h3, h4 { line-height: 1.2 } h2 { border-top: 2px solid #b5422e; padding-top: .6em; margin-top: 2.5em }
.facts, small, .note { color: #666 } .note { font-size: 12px } table { border-collapse: collapse; font-size: 13px }
td, th { padding: .3em .7em; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }
.none { color: #aaa; font-size: 11px } .missed td:last-child { color: #b5422e; font-weight: bold } .wide { overflow-x: auto } svg { max-width: 100%; height: auto }
"""


def sections(machines, pictures=lambda label, records: {}):
    """The page's parts: of each machine its facts, `pictures` by name as HTML, and tables. The first machine of a kind is labelled cpu or gpu, others with a number behind."""
    kinds = {"cpu": 0, "gpu": 0}
    for name, records in machines.items():
        kind = "cpu" if name.startswith("no GPU") else "gpu"
        kinds[kind] += 1
        drawn = dict(pictures(kind if kinds[kind] == 1 else f"{kind}-{kinds[kind]}", records))
        programs = records.get("programs", {}).get("programs", {})
        drawn["scaling"] = drawn.get("scaling", "") + crossings(records.get("scaling"))
        parts = [*drawn.values(), *([table(programs), first_calls(programs)] if programs else []), objects(records.get("objects")), targets(records)]
        if any(parts):
            yield f"<h2>{html.escape(name)}</h2>{facts(records)}{''.join(parts)}"


def page(body, drawn):
    return f"<!doctype html><html lang=en><meta charset=utf-8><title>Ikra: benchmarks</title><style>{STYLE}</style><h1>Ikra: benchmarks</h1>" \
           f"<p class=note>{drawn} Medians; every version's results were compared with plain Ruby's before it was timed. " \
           "Hollow points and “scaled up” are plain Ruby at a smaller size, scaled by the amount of work.</p>" + "\n".join(body) + "</html>\n"


if __name__ == "__main__":
    print(page(sections(latest(sys.argv[1])), f"From {html.escape(sys.argv[1])}, without pictures."))
