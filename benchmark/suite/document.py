"""Writes docs/performance.md: goals, measurements and verdicts of the newest results of each machine.

    python3 benchmark/suite/document.py RESULTS_FOLDER DOCUMENT

The text around the tables is performance_text.md, beside this file. Goals stand in the benchmarks' scripts; a record has the goal that it was measured against.
results.py says which files count. Those that do not are superseded: rake benchmark:report deletes them.

    python3 benchmark/suite/document.py --superseded RESULTS_FOLDER    # lists them
"""

import pathlib
import re
import sys

import results
from results import by_hand, median, seconds, times

TEXT = pathlib.Path(__file__).resolve().parent / "performance_text.md"
# The headings, in the order of the document.
BENCHMARKS = {
    "programs": "Kernels of programs", "phrasings": "Phrasings of programs", "calls": "Calls", "objects": "Objects", "residency": "Objects on the device", "mdarray": "MDArrays", "transfers": "Transfers",
    "operations": "Operations on arrays", "collective": "Job reordering on the device", "auto": "The choice of `auto`", "compile": "Compiling",
}
# Goals of which the worst alone is shown, and its name there.
WORST = {
    r"examples/.*: source to kernel": "source to kernel, the slowest of the examples' blocks",
    r".*: inference per line, .*": "inference per line of ten times as long a program, against the shorter",
    r"cuda: up, .* MiB, (.*)": r"cuda: up, the least of 64 to 1024 MiB, \1",
    r"cuda: down, .* MiB, (.*)": r"cuda: down, the least of 64 to 1024 MiB, \1",
    r"reordering (\d+) objects, (.*) \(\d+\)": r"reordering \1 objects, \2",
}


def machine(name):
    """A machine's name, short enough for the head of a column."""
    gpu, cores, cpu = re.match(r"(.*), (\d+) cores of (.*), ", name).groups()
    if gpu == "no GPU":
        return f"{re.sub(r'[(].*?[)]| Processor', '', cpu)}, {cores} cores"
    return f"{gpu.split()[1]}, {cores} cores"


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(head, rows):
    return "\n".join(["| " + " | ".join(head).strip() + " |", "|" + " --- |" * len(head), *(("| " + " | ".join(row)).rstrip() + " |" for row in rows)])


def margin(target):
    """How far a measurement is from its goal: less than 1 where it misses."""
    if "at_least" in target:
        return target["value"] / target["at_least"]
    return target["at_most"] / max(target["value"], 1e-9)


def goals(machines, benchmark):
    """{what: {machine: its target}}, of which the worst stands for all of the same kind."""
    found = {}
    for name, records in machines.items():
        for target in records.get(benchmark, {}).get("targets", []):
            what = target["name"]
            for pattern, worst in WORST.items():
                what = re.sub(f"^{pattern}$", worst, what)
            of = found.setdefault(what, {})
            if name not in of or margin(target) < margin(of[name]):
                of[name] = target
    return found


def verdicts(machines):
    parts = []
    for benchmark, heading in BENCHMARKS.items():
        found = goals(machines, benchmark)
        if not found:
            continue
        names = [name for name in machines if any(name in of for of in found.values())]
        rows = []
        for what, of in sorted(found.items(), key=lambda pair: pair[0]) if benchmark == "programs" else found.items():
            one = next(iter(of.values()))
            goal = f"{'at least' if 'at_least' in one else 'at most'} {one.get('at_least', one.get('at_most'))} {one['unit']}"
            cells = ["" if name not in of else f"{number(of[name]['value'])} met" if of[name]["met"] else f"**{number(of[name]['value'])} missed**" for name in names]
            rows.append([what.replace("*", r"\*"), goal, *cells])
        parts.append(f"### {heading}\n\n{table(['', 'goal', *map(machine, names)], rows)}\n\n{origin([target for of in found.values() for target in of.values()])}")
    return "\n\n".join(parts)


def origin(found):
    """Which files something is from, folded as prose is."""
    files = sorted({one["source"]["file"].removesuffix(".json") for one in found})
    lines, line = [], "From"
    for place, file in enumerate(files):
        word = f"[{file}](../benchmark/results/{file}.json)" + ("." if place == len(files) - 1 else ",")
        lines.append(f"{line}\n{word}" if not lines else word)
    return "\n".join(lines)


def summary(machines):
    rows = []
    for name, records in machines.items():
        all_of = [target for benchmark in BENCHMARKS for target in records.get(benchmark, {}).get("targets", [])]
        if all_of:
            rows.append([machine(name), f"{sum(target['met'] for target in all_of)} of {len(all_of)}", max(records[b]["machine"]["date"] for b in records)[:10]])
    return table(["machine", "goals met", "last measured"], rows)


def programs(machines):
    parts = []
    for name, records in machines.items():
        found = records.get("programs", {}).get("programs", {})
        gpu = any(median(p, "cuda") for p in found.values())
        rows = []
        for program, p in sorted(found.items()):
            ruby = median(p, "ruby")
            row = [f"{program}, {p['size']}", f"{seconds(ruby)}{' ¹' if 'scaled_from' in p['versions'].get('ruby', {}) else ''}" if ruby else ""]
            for version, device in (("cpu", "cpu"), ("cuda", "gpu"))[: 2 if gpu else 1]:
                call, kernel, hand = median(p, version), median(p, version, "kernel"), by_hand(p, device)[0]
                row += [f"{seconds(call)}, {times(ruby / call)}" if call and ruby else "", seconds(kernel) if kernel else "", seconds(hand) if hand else ""]
            rows.append(row)
        head = ["program, size", "plain Ruby", "CPU: whole call", "kernel", "C", *(["GPU: whole call", "kernel", "CUDA by hand"] if gpu else [])]
        if rows:
            parts.append(f"### {machine(name)}\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def ceilings(machines):
    rows = []
    for name, records in machines.items():
        for part, found in records.get("ceilings", {}).get("ceilings", {}).items():
            rates = [number(found[key] / 1e9) if found.get(key) else "" for key in ("bytes", "fma", "flops", "scalar")]
            rows.append([machine(name), part, *rates])
    return table(["machine", "part", "memory, GB/s", "contracted, GFLOP/s", "apart, as Ruby's, GFLOP/s", "without vectors, GFLOP/s"], rows)


def superseded(folder):
    """Files of which a newer one of the same benchmark and machine has everything."""
    kept = {}
    for record in sorted(map(results.read, pathlib.Path(folder).glob("*.json")), key=lambda record: record["machine"]["date"]):
        file = record["source"]["file"]
        place = re.sub(r"-\d{8}-\d{6}", "", file)
        parts = [place]
        if record["benchmark"] == "programs":
            parts = [(place, program, version) for program, p in record["programs"].items() for version in p["versions"]]
        kept.update(dict.fromkeys(parts, file))
    return sorted({path.name for path in pathlib.Path(folder).glob("*.json")} - set(kept.values()))


def document(folder):
    machines = results.latest(folder)
    tables = {"summary": summary, "verdicts": verdicts, "programs": programs, "ceilings": ceilings}
    return re.sub(r"^\{(\w+)\}$", lambda found: tables[found[1]](machines), TEXT.read_text(), flags=re.M)


if __name__ == "__main__":
    if sys.argv[1] == "--superseded":
        print("\n".join(superseded(sys.argv[2])))
    else:
        pathlib.Path(sys.argv[2]).write_text(document(sys.argv[1]))
