//! Jobs that run together come to what they come to one after the other.

use ikra_core::backend::cpu::CpuBackend;
use ikra_core::backend::reference::ReferenceBackend;
use ikra_core::backend::{Backend, Launch, Outcome, Timings};
use ikra_core::config::CodeOptions;
use ikra_core::ir::Program;
use ikra_core::ir::parse::parse;
use ikra_core::ir::verify::verify;
use ikra_core::layout::Layout;
use ikra_core::memory::column::HostColumn;
use ikra_core::passes::jam::{Grouping, Jam};
use ikra_core::types::Storage;

/// What all programs here declare.
const DECLARATIONS: &str = r#"column c0 "result" f64 in element, written
column c1 "left" f64 in array 0, read
column c2 "right" f64 in array 1, read
column c3 "counts" i64 in element, read written
param p0 "across" i64 from 0 to 536870911
param p1 "inner" i64 from 0 to 536870911
param p2 "length" i64 from 0 to 536870911
site s0 refuted "/tmp/product.rb" 7 1 at "/tmp/product.rb":7 (int)
site s1 overflow "+" at "/tmp/product.rb":8 ()
"#;

const GROUPINGS: [Grouping; 2] = [Grouping::Consecutive, Grouping::Strided];

/// A product of matrices; `body`: what is in the loop besides, `before` and `behind` it.
fn product(before: &str, body: &str, behind: &str) -> Program {
    let text = format!(
        r#"program "product" jobs identity, few, ticks fused
{DECLARATIONS}
entry func f0 "entry" (job.0: i64, tick_begin.1: i64, tick_end.2: i64) {{
  begin check job.0, tick_begin.1
  v3: i64 = param p0 "across"
  v4: bool = icmp.lt v3, 1
  v5: i64 = select v4, 1, v3
  v6: i32 = narrow job.0
  v7: i32 = narrow v5
  v8: i32 = udiv v6, v7
  v9: i64 = widen v8
  v10: i32 = urem v6, v7
  v11: i64 = widen v10
  v12: i64 = param p1 "inner"
  v13: i64 = mul v9, v12
  v14: i64 = param p2 "length"
  sum.15: f64 = copy 0.0
  k.16: i64 = copy 0
  count.17: i64 = copy 0
  {before}
  loop L0 {{
    v18: bool = icmp.ge k.16, v12
    if v18 {{
      break L0
    }}
    v19: i64 = add v13, k.16
    v20: f64 = load left[v19]
    v21: i64 = mul k.16, v5
    v22: i64 = add v21, v11
    {body}
    v23: f64 = load right[v22]
    v24: f64 = fmul v20, v23
    sum.15 = fadd sum.15, v24
    k.16 = add k.16, 1
    poll
  }}
  {behind}
  store result[job.0] = sum.15
  return
}}
"#
    );
    let program = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&program).unwrap_or_else(|e| panic!("{e}\n{text}"));
    program
}

/// How a run ended, and what is in its columns then.
type Came = (Outcome, Vec<u64>, Vec<i64>);

/// `rows` by `across` elements, of sums of `inner` products; indices from `length` on are none.
fn run(program: &Program, jobs: u64, params: &[u64], sizes: [usize; 3]) -> Came {
    run_on(&ReferenceBackend::default(), program, jobs, params, sizes, false)
}

/// As [`run`]; `special`: with numbers among the elements that are not like others.
fn run_on(
    backend: &dyn Backend,
    program: &Program,
    jobs: u64,
    params: &[u64],
    sizes: [usize; 3],
    special: bool,
) -> Came {
    let [rows, across, inner] = sizes;
    let numbers = |count: usize, step: u64| {
        let mut column = HostColumn::zeroed(Storage::F64, count);
        let mut state = step;
        for number in column.view_mut::<f64>() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *number = (state >> 40) as f64 / 1024.0 - 5000.0;
            if special && state >> 32 & 3 == 0 {
                *number = SPECIAL[(state >> 34) as usize % SPECIAL.len()];
            }
        }
        column
    };
    let counts = HostColumn::zeroed(Storage::I64, rows * across);
    let mut columns =
        [HostColumn::zeroed(Storage::F64, rows * across), numbers(rows * inner, 1), numbers(inner * across, 2), counts];
    let executable = backend
        .prepare(program, &Layout::structure_of_arrays(program), &CodeOptions::default())
        .unwrap_or_else(|e| panic!("{e}\n{program}"));
    let (cancel, mut timings) = (Default::default(), Timings::default());
    let launch = Launch::of(jobs, &mut columns, &[0; 4], params, &cancel, &mut timings);
    let outcome = backend.launch(&*executable, launch).unwrap_or_else(|e| panic!("{e}\n{program}"));
    // passes may choose another NaN, whose sign Ruby does not show
    let bits = columns[0].view::<f64>().iter().map(|x| if x.is_nan() { f64::NAN } else { *x }.to_bits()).collect();
    (outcome, bits, columns[3].view::<i64>().to_vec())
}

const SPECIAL: [f64; 10] =
    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, f64::MIN_POSITIVE / 8.0, f64::MAX, f64::MIN, 1.0, -1.0];

/// Runs a program singly and in groups, and gives how it ended, and whether it ran in groups.
fn both(program: &Program, grouping: Grouping, length: u64, sizes: [usize; 3]) -> (Outcome, bool) {
    let [rows, across, inner] = sizes;
    let (jobs, params) = ((rows * across) as u64, [across as u64, inner as u64, length]);
    let singly = run(program, jobs, &params, sizes);
    let jam = Jam::of(program, grouping).unwrap_or_else(|| panic!("{grouping:?}: no groups\n{program}"));
    verify(&jam.program).unwrap_or_else(|e| panic!("{e}\n{}", jam.program));
    let Some((groups, params)) = jam.groups(jobs, 1, &params) else { return (singly.0, false) };
    assert!(groups < jobs.max(across as u64 * 64), "{groups} groups of {jobs} jobs");
    let together = run(&jam.program, groups, &params, sizes);
    if singly.0 == Outcome::Done {
        assert_eq!(together, singly, "{grouping:?} {sizes:?}");
    } else {
        assert_eq!(together.0, singly.0, "{grouping:?} {sizes:?}");
    }
    (singly.0, true)
}

#[test]
fn groups_compute_what_jobs_compute_at_all_sizes() {
    let program = product("", "", "");
    let mut grouped = [0, 0];
    for (turn, grouping) in GROUPINGS.into_iter().enumerate() {
        for rows in [1, 2, 3, 4, 5, 7, 8, 9, 17] {
            for across in [1, 2, 7, 8, 9, 16, 31, 32, 33, 65] {
                for inner in [0, 1, 3] {
                    grouped[turn] += usize::from(both(&program, grouping, 0, [rows, across, inner]).1);
                }
            }
        }
    }
    assert!(grouped.iter().all(|count| *count > 50), "{grouped:?}");
}

#[test]
fn where_one_job_of_a_group_raises_the_first_that_does_is_told() {
    // a product's index beyond `length` raises, in some jobs of a group alone
    let checks = "v30: bool = icmp.ge v22, v14\n    if v30 {\n      trap s0 v22\n    }";
    let program = product("", checks, "");
    for grouping in GROUPINGS {
        let mut ends = [0, 0];
        for length in 0..180 {
            let (outcome, together) = both(&program, grouping, length, [9, 35, 5]);
            assert!(together);
            ends[usize::from(outcome == Outcome::Done)] += 1;
        }
        assert!(ends.iter().all(|count| *count > 0), "{ends:?}");
    }
}

#[test]
fn checks_of_the_jobs_number_are_tested_before_the_first_store() {
    let late = "store counts[job.0] = k.16
  v30: bool = icmp.ge job.0, v14
  v31: bool = not v30
  if v31 {
    sum.15 = fadd sum.15, 0.5
  } else {
    trap s0 v11
  }
  v32: bool = icmp.gt v14, 300
  if v32 {
    trap s0 v9
  }";
    let mut ends = [0, 0];
    for length in (0..320).step_by(7) {
        let (outcome, together) = both(&product("", "", late), Grouping::Consecutive, length, [9, 35, 5]);
        assert!(together);
        ends[usize::from(outcome == Outcome::Done)] += 1;
    }
    // jobs 0 to 314
    assert_eq!(ends, [46, 0]);
    assert_eq!(both(&product("", "", late), Grouping::Consecutive, 300, [4, 35, 5]), (Outcome::Done, true));
    // both values of one condition raise, one in jobs that come there
    let other = "v30: bool = icmp.ge job.0, v14\n  v33: bool = icmp.eq v9, 4\n  if v33 {\n  if v30 {\n    trap s0 v11\n  }\n  } else {\n  if v30 {\n  } else {\n    trap s0 v9\n  }\n  }";
    for length in 0..180 {
        both(&product("", "", other), Grouping::Consecutive, length, [9, 35, 5]);
    }
}

#[test]
fn what_all_raise_alike_is_raised_by_the_first() {
    let checks = "v30: bool = icmp.ge k.16, v14\n    if v30 {\n      trap s0 k.16\n    }\n    count.17 = checked add count.17, k.16 else s1";
    let program = product("", checks, "");
    for grouping in GROUPINGS {
        for length in 0..7 {
            both(&program, grouping, length, [9, 35, 5]);
        }
    }
}

#[test]
fn columns_that_several_rows_of_a_job_are_stored_in_keep_them() {
    let program = product("", "", "store counts[job.0] = v9");
    for grouping in GROUPINGS {
        assert!(both(&program, grouping, 0, [12, 37, 3]).1);
    }
}

#[test]
fn groups_in_bands_and_strips_run_each_job_once() {
    let program =
        product("", "", "v40: i64 = load counts[job.0]\n  v41: i64 = add v40, 1\n  store counts[job.0] = v41");
    for grouping in GROUPINGS {
        let jam = Jam::of(&program, grouping).unwrap_or_else(|| panic!("{grouping:?}: no groups"));
        for (rows, across) in [(1, 40), (3, 33), (31, 35), (32, 32), (33, 39), (70, 41)] {
            for missing in [0, 1, 20] {
                let (jobs, params) = ((rows * across - missing) as u64, [across as u64, 2, 0]);
                let singly = run(&program, jobs, &params, [rows, across, 2]);
                assert!(singly.2.iter().take(jobs as usize).all(|count| *count == 1));
                let Some((groups, params)) = jam.groups(jobs, 1, &params) else { continue };
                let together = run(&jam.program, groups, &params, [rows, across, 2]);
                assert_eq!(together, singly, "{grouping:?} {rows} by {across} less {missing}");
            }
        }
    }
}

#[test]
fn groups_go_down_where_other_rows_load_the_same() {
    let groups = |program: &Program| {
        let jam = Jam::of(program, Grouping::Consecutive).expect("groups");
        // 70 rows of 41: three bands of 32 rows, in strips as wide as a group
        let (groups, params) = jam.groups(70 * 41, 1, &[41, 2, 0]).expect("a table");
        (jam.width, groups, params.len() - 3)
    };
    assert_eq!(groups(&product("", "", "")), (8, 3 * 32 * 6, 4));
    // what each row has for itself
    let text = product("", "", "").to_string().replace("v22: i64 = add v21, v11", "v22: i64 = add v19, v11");
    let program = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(groups(&program), (8, (70 * 41_u64).div_ceil(8), 1));
}

/// The first and the last job of a group decide for all where a value steps from job to job. It may wrap around between
/// two of them.
#[test]
fn checks_of_values_that_step_raise_for_the_jobs_for_which_they_do() {
    let (least, most) = (i64::MIN, i64::MAX);
    let starts = [0, -20, most - 100, most - 30, most - 10, most, least, least + 15];
    let sums = ["checked add step.40, 9", "checked add -12, step.40", "checked sub step.40, 7"];
    let (mut ends, mut grouped) = ([0, 0], 0);
    for (number, start) in starts.into_iter().enumerate() {
        for (sum, factor) in sums.iter().flat_map(|sum| [(sum, 1), (sum, -1), (sum, 3)]) {
            let before = format!("v41: i64 = mul v11, {factor}\n  step.40: i64 = add v41, {start}");
            for test in ["icmp.ge", "icmp.lt", "icmp.gt", "ucmp.le", "ucmp.gt"] {
                let limit = [20, most - 8, least + 9, -3, 0][(number + test.len() + (factor + 1) as usize) % 5];
                let body = format!(
                    "step.40 = {sum} else s1\n    v42: bool = {test} step.40, {limit}\n    if v42 {{\n      trap s0 k.16\n    }}"
                );
                let program = product(&before, &body, "store counts[job.0] = step.40");
                for sizes in [[2, 37, 2], [1, 64, 5]] {
                    let (outcome, together) = both(&program, Grouping::Consecutive, 0, sizes);
                    ends[usize::from(outcome == Outcome::Done)] += 1;
                    grouped += usize::from(together);
                }
            }
        }
    }
    assert!(ends[0] > 100 && ends[1] > 50 && grouped == ends[0] + ends[1], "{ends:?}, {grouped} grouped");
}

#[test]
fn jobs_that_store_in_loops_are_no_groups() {
    let stores = "store counts[job.0] = k.16";
    let adds = "atomic add counts[job.0], 1 else s1";
    let overflows = "v32: i64 = add v9, v11\n    count.17 = checked add count.17, v32 else s1";
    let apart = "v31: bool = fcmp.gt sum.15, 0.0\n    if v31 {\n      store counts[job.0] = k.16\n    }";
    for body in [stores, adds, overflows, apart] {
        for grouping in GROUPINGS {
            assert!(Jam::of(&product("", body, ""), grouping).is_none(), "{grouping:?}: {body}");
        }
    }
    // what is stored is not stored again by those who run singly
    let late = "store counts[job.0] = k.16\n  v30: bool = icmp.ge v11, v14\n  if v30 {\n    trap s0 v11\n  }";
    for grouping in GROUPINGS {
        assert!(Jam::of(&product("", "", late), grouping).is_none(), "{grouping:?}");
    }
}

/// A loop that jobs leave after different numbers of repetitions: it multiplies an element's number until it is large.
/// `params`: how many jobs a row has, the most repetitions, and a length that checks may use. `step`: what the loop
/// does after its exits; `behind`: what follows it.
fn escape(exits: &str, step: &str, behind: &str) -> Program {
    escape_in(["", ""], exits, step, behind)
}

/// As [`escape`]; `around`: what is before and behind the loop, and may contain it.
fn escape_in([before, after]: [&str; 2], exits: &str, step: &str, behind: &str) -> Program {
    let text = format!(
        r#"program "escape" jobs identity, few, ticks fused
{DECLARATIONS}
entry func f0 "entry" (job.0: i64, tick_begin.1: i64, tick_end.2: i64) {{
  begin check job.0, tick_begin.1
  v3: i64 = param p1 "inner"
  v4: i64 = param p2 "length"
  v5: f64 = int_to_float job.0
  c.6: f64 = fmul v5, 0.0625
  x.7: f64 = copy c.6
  y.8: f64 = copy 0.5
  count.9: i64 = copy 0
  way.10: i64 = copy 0
  block L9 {{
  {before}
  loop L0 {{
    v11: f64 = fmul x.7, x.7
    v12: f64 = fmul y.8, y.8
    v13: f64 = fadd v11, v12
    {exits}
    v14: f64 = fsub v11, v12
    v15: f64 = fmul x.7, y.8
    y.8 = fadd v15, c.6
    x.7 = fadd v14, -0.375
    count.9 = add count.9, 1
    {step}
    poll
  }}
  {behind}
  {after}
  }}
  v30: f64 = int_to_float count.9
  v31: f64 = fadd v30, x.7
  store result[job.0] = v31
  store counts[job.0] = way.10
  return
}}
"#
    );
    let program = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&program).unwrap_or_else(|e| panic!("{e}\n{text}"));
    program
}

/// Leaves if the numbers are large, and after so many repetitions.
const ESCAPES: &str = "v20: bool = fcmp.le v13, 4.0
    v21: bool = not v20
    if v21 {
      way.10 = add count.9, 7
      break L0
    }
    v22: bool = icmp.ge count.9, v3
    if v22 {
      break L0
    }";

#[test]
fn jobs_that_leave_a_loop_apart_compute_what_they_compute_alone() {
    let row = "v40: f64 = load left[count.9]\n    y.8 = fadd y.8, v40";
    let alone = "v41: bool = fcmp.gt x.7, 1.0\n    v42: f64 = select v41, 0.5, 0.25\n    y.8 = fmul y.8, v42";
    let leaves_more = ESCAPES.replacen("break L0", "break L9", 1);
    let late = "v43: bool = fcmp.lt x.7, -1.25\n    if v43 {\n    } else {\n      v44: bool = icmp.eq count.9, 3\n      if v44 {\n        break L0\n      }\n    }";
    let first = "v45: bool = fcmp.gt x.7, 2.0\n    if v45 {\n      break L0\n    }\n    ";
    let behind = "way.10 = add way.10, 100";
    // jobs that leave a block skip what is behind each branch and block on the way
    let in_branch =
        ["v50: bool = icmp.ge v3, 2\n    if v50 {", "way.10 = add way.10, 10\n    }\n    way.10 = add way.10, 1000"];
    let [begin, end] = [
        format!("block L8 {{\n    {}", in_branch[0]),
        format!("{}\n    }}\n    way.10 = add way.10, 10000", in_branch[1]),
    ];
    let in_blocks = [&*begin, &*end];
    let leaves_block = format!("{}\n    {}", first.replacen("break L0", "break L8", 1), leaves_more);
    let programs = [
        escape(ESCAPES, "", ""),
        escape(ESCAPES, alone, behind),
        escape(&leaves_more, "", ""),
        escape(&leaves_more, alone, behind),
        escape(&format!("{first}{ESCAPES}"), "", behind),
        escape_in(in_branch, &leaves_more, "", behind),
        escape_in(in_branch, &format!("{first}{leaves_more}"), alone, ""),
        escape_in(in_blocks, &leaves_block, "", behind),
    ];
    for program in &programs {
        for across in [1, 7, 8, 9, 64, 165] {
            for inner in [0, 1, 2, 50] {
                assert!(both(program, Grouping::Consecutive, 0, [1, across, inner]).1);
            }
        }
    }
    // a job in the loop loads a row that is the same for all, which exists as long as a job needs it
    for (across, inner) in [(9, 3), (64, 40), (165, 50)] {
        both(&escape(ESCAPES, row, ""), Grouping::Consecutive, 0, [1, across, inner]);
    }
    assert!(Jam::of(&escape(ESCAPES, late, ""), Grouping::Consecutive).is_none());
}

#[test]
fn a_job_keeps_what_only_the_loop_or_an_exit_assigns() {
    let within = format!("late.50: i64 = mul count.9, 3\n    {ESCAPES}");
    let in_loop = escape(&within, "", "way.10 = add way.10, late.50");
    let exits = "v20: bool = fcmp.le v13, 4.0
    v51: i64 = add v3, job.0
    v52: bool = icmp.le count.9, v51
    v53: bool = and v20, v52
    v21: bool = not v53
    if v21 {
      late.50: i64 = add count.9, 5
      break L9
    }";
    let text = escape(exits, "", "").to_string().replace("= way.10\n", "= late.50\n");
    let in_exit = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for program in [in_loop, in_exit] {
        for across in [1, 9, 64] {
            for inner in [0, 2, 50] {
                let (jobs, params) = (across as u64, [across as u64, inner, 0]);
                let sizes = [1, across, inner as usize];
                let singly = run(&program, jobs, &params, sizes);
                let backend = CpuBackend::with_threads(1).expect("this host is supported");
                assert_eq!(run_on(&backend, &program, jobs, &params, sizes, false), singly, "{sizes:?}\n{program}");
            }
        }
        assert!(Jam::of(&program, Grouping::Consecutive).is_some(), "{program}");
    }
}

#[test]
fn random_loops_that_jobs_leave_apart_come_to_the_same() {
    use proptest::test_runner::{Config, TestRunner};
    let cases = (proptest::collection::vec(0..1000usize, 16), 0..SIZES.len(), 0..60u64);
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let grouped = std::cell::Cell::new(0);
    let result = runner.run(&cases, |(choices, sizes, most)| {
        let program = leaving(&choices);
        grouped.set(grouped.get() + usize::from(Jam::of(&program, Grouping::Consecutive).is_some()));
        let [rows, across, _] = SIZES[sizes];
        let (jobs, params) = ((rows * across) as u64, [across as u64, most, most / 2]);
        let backend = CpuBackend::with_threads(1).expect("this host is supported");
        let singly = run(&program, jobs, &params, SIZES[sizes]);
        let together = run_on(&backend, &program, jobs, &params, SIZES[sizes], false);
        if singly.0 == Outcome::Done {
            assert_eq!(together, singly, "{:?} {most}\n{program}", SIZES[sizes]);
        } else {
            assert_eq!(together.0, singly.0, "{:?} {most}\n{program}", SIZES[sizes]);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(grouped.get() > 200, "{}", grouped.get());
}

/// A loop as in [`escape`], with other exits, in branches and blocks, and registers that only parts of it assign.
fn leaving(choices: &[usize]) -> Program {
    let arounds = [
        ["", ""],
        ["v80: bool = icmp.ge v3, 2\n if v80 {", "way.10 = add way.10, 10\n }\n way.10 = add way.10, 1000"],
        ["block L8 {", "way.10 = add way.10, 20\n }\n way.10 = add way.10, 2000"],
        ["more.81: i64 = copy 1", "way.10 = add way.10, more.81"],
        // a count of each job's own
        ["more.81: i64 = copy job.0", "way.10 = add way.10, more.81"],
        // jobs that do not begin the loop
        ["v80: bool = icmp.ge job.0, 3\n if v80 {", "}\n way.10 = add way.10, 1000"],
        ["v79: i64 = and job.0, 1\n v80: bool = icmp.eq v79, 1\n if v80 {", "}\n way.10 = add way.10, 3000"],
    ];
    let around = arounds[choices[0] % arounds.len()];
    let counts = choices[1] % 3;
    let mut exits = String::new();
    if counts > 0 {
        exits += "late.70: i64 = mul count.9, 3\n";
    }
    for (number, choice) in choices[2..].chunks_exact(3).take(1 + choices[1] % 4).enumerate() {
        let [id, other] = [20 + 2 * number, 21 + 2 * number];
        exits += &match choice[0] % 5 {
            0 => format!("v{id}: bool = fcmp.gt v13, {}.5\n", choice[1] % 9),
            1 => format!("v{id}: bool = fcmp.lt x.7, -{}.25\n", choice[1] % 3),
            2 => format!("v{id}: bool = icmp.gt count.9, {}\n", choice[1] % 40),
            3 => format!("v{other}: f64 = fsub x.7, y.8\n v{id}: bool = fcmp.ge v{other}, {}.125\n", choice[1] % 4),
            _ => format!("v{other}: i64 = add v3, job.0\n v{id}: bool = icmp.ge count.9, v{other}\n"),
        };
        let side = ["", "way.10 = add count.9, 7\n", "x.7 = fadd x.7, y.8\n", "way.10 = add way.10, count.9\n"];
        let to = if around[0].starts_with("block") { ["L0", "L8", "L9"] } else { ["L0", "L9", "L9"] };
        exits += &format!("if v{id} {{\n {} break {}\n }}\n", side[choice[2] % 4], to[choice[2] / 4 % 3]);
    }
    exits += "v60: bool = icmp.ge count.9, v3\n if v60 {\n break L0\n }\n";
    let mut step = ["", "v61: bool = fcmp.gt x.7, 1.0\n v62: f64 = select v61, 0.5, 0.25\n y.8 = fmul y.8, v62\n"]
        [choices[14] % 2]
        .to_owned();
    if around[0].starts_with("more") {
        step += [
            "more.81 = checked add more.81, 1 else s1\n",
            "more.81 = checked sub more.81, 400000000000000000 else s1\n",
        ][choices[15] % 2];
    }
    let behind = ["", "way.10 = add way.10, late.70\n", "x.7 = fadd x.7, 0.5\n way.10 = sub way.10, late.70\n"][counts];
    escape_in(around, &exits, &step, behind)
}

/// Jobs that do not begin a loop, which others repeat, leave it at once.
#[test]
fn jobs_that_skip_a_loop_wait_for_those_that_repeat_it() {
    for start in ["icmp.ge job.0, 3", "icmp.lt job.0, 62", "icmp.gt job.0, 1000"] {
        let around = [&*format!("v80: bool = {start}\n if v80 {{"), "}\n way.10 = add way.10, 1000"];
        let program = escape_in(around, ESCAPES, "", "");
        assert!(Jam::of(&program, Grouping::Consecutive).is_some(), "{start}");
        let (outcome, together) = both(&program, Grouping::Consecutive, 0, [1, 64, 40]);
        assert!(together && outcome == Outcome::Done, "{start}");
    }
}

/// Jobs whose numbers are on one side of a limit run a loop together. A group with jobs on both sides runs them singly.
#[test]
fn groups_with_jobs_on_both_sides_of_a_limit_run_singly() {
    for (from, limit) in
        [(0, 0), (0, 1), (0, 8), (0, 21), (0, 63), (0, 64), (i64::MAX - 20, 9), (i64::MIN, 30 + i64::MIN)]
    {
        for compare in ["icmp.lt", "icmp.ge", "icmp.gt", "ucmp.le", "ucmp.gt"] {
            let start = format!("v79: i64 = add job.0, {from}\n v80: bool = {compare} v79, {limit}\n if v80 {{");
            let around = [&*start, "way.10 = add way.10, 10\n } else {\n way.10 = add way.10, 7\n }"];
            for exits in [ESCAPES, "v60: bool = icmp.ge count.9, v3\n if v60 {\n break L0\n }\n"] {
                let program = escape_in(around, exits, "", "way.10 = add way.10, 100");
                let Some(_) = Jam::of(&program, Grouping::Consecutive) else {
                    assert!(exits != ESCAPES, "{compare} {limit}");
                    continue;
                };
                let (outcome, together) = both(&program, Grouping::Consecutive, 0, [1, 64, 20]);
                assert!(together && outcome == Outcome::Done, "{compare} {limit}");
            }
        }
    }
}

#[test]
fn a_job_that_has_left_a_loop_raises_nothing() {
    // jobs that have left go on to large numbers, which would be checked
    let checks = "v40: bool = fcmp.gt x.7, 64.0\n    if v40 {\n      trap s0 count.9\n    }";
    let late = "v40: bool = icmp.ge count.9, v4\n    if v40 {\n      trap s0 count.9\n    }";
    // overflows, if jobs do not leave before
    let sums = [
        "more.50 = checked add more.50, 1311768467463790320 else s1",
        "more.50 = checked sub more.50, 1311768467463790320 else s1",
    ];
    for (start, step) in sums.into_iter().flat_map(|step| [("copy 0", step), ("add job.0, 1", step)]) {
        let start = format!("more.50: i64 = {start}");
        let program = escape_in([&start, ""], ESCAPES, step, "way.10 = add way.10, more.50");
        let ends: Vec<Outcome> = [3, 50]
            .map(|inner| both(&program, Grouping::Consecutive, 0, [1, 64, inner]))
            .into_iter()
            .map(|(outcome, together)| {
                assert!(together);
                outcome
            })
            .collect();
        assert!(ends[0] == Outcome::Done && ends[1] != Outcome::Done, "{ends:?}");
    }
    for step in [checks, late] {
        let program = escape(ESCAPES, step, "");
        let mut ends = [0, 0];
        for length in 0..60 {
            let (outcome, together) = both(&program, Grouping::Consecutive, length, [1, 64, 40]);
            assert!(together);
            ends[usize::from(outcome == Outcome::Done)] += 1;
        }
        assert!(ends[1] > 0 && (step == checks || ends[0] > 0), "{ends:?}");
    }
}

#[test]
fn loops_that_do_what_a_job_that_has_left_must_not_do_run_singly() {
    let own_row = "v40: i64 = float_to_int x.7\n    v41: f64 = load left[v40]\n    y.8 = fadd y.8, v41";
    let stores = "store counts[job.0] = count.9";
    let checked = "way.10 = checked mul way.10, count.9 else s1";
    // a row that exists only for jobs that an exit has let pass, or that have taken a branch
    let kept_row = "v41: f64 = load left[job.0]\n    y.8 = fadd y.8, v41";
    let branch =
        "v40: bool = fcmp.lt x.7, 0.5\n    if v40 {\n      v41: f64 = load left[count.9]\n      y.8 = copy v41\n    }";
    for step in [own_row, kept_row, branch, stores, checked] {
        assert!(Jam::of(&escape(ESCAPES, step, ""), Grouping::Consecutive).is_none(), "{step}");
    }
    // on a GPU threads leave by themselves
    assert!(Jam::of(&escape(ESCAPES, "", ""), Grouping::Strided).is_none());
}

#[test]
fn jobs_keep_their_values_where_a_guard_skips_what_others_compute() {
    let rest = "v42: f64 = fmul v20, 0.5\n      sum.15 = fadd sum.15, v42\n      sum.15 = fmul sum.15, 0.75\n      v43: i64 = add count.17, k.16\n      count.17 = add v43, 1";
    let own = "v40: bool = icmp.eq k.16, v11";
    let other = "v40: bool = icmp.ne v9, k.16";
    let skips = format!("{own}\n    if v40 {{\n    }} else {{\n      {rest}\n    }}");
    let enters = format!("{other}\n    if v40 {{\n      {rest}\n    }}");
    for guard in [skips, enters] {
        let program = product("", &guard, "v44: f64 = int_to_float count.17\n  sum.15 = fadd sum.15, v44");
        for sizes in [[1, 1, 1], [3, 9, 4], [9, 35, 11], [2, 64, 70]] {
            both(&program, Grouping::Consecutive, 0, sizes);
        }
        assert!(both(&program, Grouping::Consecutive, 0, [9, 35, 11]).1);
    }
    // a row that may exist only for those that the guard lets pass
    let loads = "v40: bool = icmp.eq k.16, v11\n    if v40 {\n    } else {\n      v41: f64 = load right[v11]\n      sum.15 = fadd sum.15, v41\n    }";
    assert!(Jam::of(&product("", loads, ""), Grouping::Consecutive).is_none());
}

/// What a job adds to sums of several jobs, which may raise: some by themselves, some not.
const TURNS: &str = "atomic add counts[v11], v9 else s1
  v30: bool = icmp.ge v11, v14
  if v30 {
    v31: bool = icmp.ge v9, 2
    if v31 {
      trap s0 v11
    }
    v32: i64 = checked mul v9, 9223372036854775807 else s1
    atomic add counts[v11], v32
  } else {
    atomic max counts[job.0], count.17
  }";

#[test]
fn what_jobs_change_in_common_they_change_in_turn() {
    let program = product("", "count.17 = add count.17, k.16", TURNS);
    assert!(Jam::of(&program, Grouping::Strided).is_none());
    let mut ends = [0, 0];
    for length in 0..38 {
        for sizes in [[1, 37, 3], [2, 37, 3], [9, 35, 5], [4, 16, 2]] {
            let (outcome, together) = both(&program, Grouping::Consecutive, length, sizes);
            assert!(together);
            ends[usize::from(outcome == Outcome::Done)] += 1;
        }
    }
    assert!(ends.iter().all(|count| *count > 10), "{ends:?}");
    // numbers that each takes, and turns on both sides of a branch that all take
    let takes = "v50: i64 = fetch_add counts[v11], 3\n  v51: bool = icmp.ge v50, v14\n  if v51 {\n    trap s0 v50\n  }\n  v52: f64 = int_to_float v50\n  sum.15 = fadd sum.15, v52";
    let sides =
        format!("v53: bool = icmp.ge v12, 3\n  if v53 {{\n  {takes}\n  }} else {{\n  atomic add counts[v11], 1\n  }}");
    for behind in [takes, &sides] {
        let program = product("", "", behind);
        let mut ends = [0, 0];
        for length in [3, 9, 20, 100] {
            for sizes in [[1, 37, 3], [2, 37, 2], [9, 35, 5], [4, 16, 2]] {
                let (outcome, together) = both(&program, Grouping::Consecutive, length, sizes);
                assert!(together);
                ends[usize::from(outcome == Outcome::Done)] += 1;
            }
        }
        assert!(ends.iter().all(|count| *count > 2), "{ends:?}");
        assert!(Jam::of(&program, Grouping::Strided).is_none());
    }
    // not once more behind those of other jobs, nor where it would be done again
    let again = format!(
        "v29: bool = icmp.ge v14, 1\n  if v29 {{\n  }} else {{\n    {TURNS}\n  }}\n  atomic add counts[v11], 1"
    );
    let before =
        format!("block L7 {{\n    {TURNS}\n  }}\n  v33: bool = icmp.ge v9, v14\n  if v33 {{\n    trap s0 v9\n  }}");
    for behind in [again, before] {
        assert!(Jam::of(&product("", "", &behind), Grouping::Consecutive).is_none(), "{behind}");
    }
}

/// A program whose loop over ticks does what another does.
fn ticking(program: &Program) -> Program {
    let text = program.to_string();
    let begin = "  begin check job.0, tick_begin.1\n";
    let again = "  tick.60: i64 = copy tick_begin.1\n  loop L9 {\n  begin job.0, tick.60\n";
    let test = "  tick.60 = add tick.60, 1\n  v61: bool = icmp.ge tick.60, tick_end.2\n  if v61 {\n    break L9\n  }\n  }\n  return\n";
    let text = text.replace(begin, &format!("{begin}{again}")).replace("  return\n", test);
    let program = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&program).unwrap_or_else(|e| panic!("{e}\n{text}"));
    program
}

#[test]
fn who_raises_first_in_turn_is_told_wherever_in_a_group_that_is() {
    let once = product("", "", TURNS);
    for program in [ticking(&once), once] {
        for length in 0..38 {
            for sizes in [[2, 37, 3], [9, 35, 5], [4, 16, 2]] {
                assert!(both(&program, Grouping::Consecutive, length, sizes).1);
                let [rows, across, inner] = sizes;
                let (jobs, params) = ((rows * across) as u64, [across as u64, inner as u64, length]);
                let backend = CpuBackend::with_threads(1).expect("this host is supported");
                let expected = run(&program, jobs, &params, sizes).0;
                assert_eq!(run_on(&backend, &program, jobs, &params, sizes, false).0, expected, "{length} {sizes:?}");
            }
        }
    }
    // where all raise, nobody has another turn
    let all = "v34: bool = icmp.ge v9, 2\n  if v34 {\n    atomic add counts[v11], 1 else s1\n    trap s0 v9\n  }\n  atomic add counts[v11], 2 else s1";
    let program = product("", "", all);
    assert!(Jam::of(&program, Grouping::Consecutive).is_none(), "a second turn");
    let program = product("", "", all.strip_suffix("\n  atomic add counts[v11], 2 else s1").expect("it ends so"));
    assert!([1, 2, 4].into_iter().all(|rows| both(&program, Grouping::Consecutive, 0, [rows, 16, 2]).1));
    // a number of which each makes another one: the next would begin with it
    let counted = format!("{TURNS}\n  k.16 = add k.16, 1\n  store counts[job.0] = k.16");
    assert!(Jam::of(&product("", "", &counted), Grouping::Consecutive).is_none());
}

#[test]
fn a_launch_of_one_tick_is_groups_and_one_of_several_is_none() {
    let jam = Jam::of(&ticking(&product("", "", TURNS)), Grouping::Consecutive).expect("groups");
    assert!(jam.groups(1000, 2, &[10, 3, 0]).is_none() && jam.groups(1000, 1, &[10, 3, 0]).is_some());
}

#[test]
fn where_jobs_may_raise_groups_are_of_one_tick_and_else_of_several() {
    let checks = "v30: bool = icmp.ge v22, v14\n    if v30 {\n      trap s0 v22\n    }";
    // the last tick's sum is stored behind all ticks
    let behind = |program: &Program| {
        let text = program.to_string();
        let first = "  sum.15: f64 = copy 0.0\n";
        let begin = "  tick.60: i64 = copy tick_begin.1\n  loop L9 {\n  begin job.0, tick.60\n";
        let test = "  tick.60 = add tick.60, 1\n  v61: bool = icmp.ge tick.60, tick_end.2\n  if v61 {\n    break L9\n  }\n  }\n";
        let store = "  store result[job.0] = sum.15\n";
        let text = text.replace(first, &format!("  sum.15: f64 = copy 0.0\n{begin}  sum.15 = copy 0.0\n"));
        let text = text.replace(store, &format!("{test}{store}"));
        parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
    };
    for grouping in GROUPINGS {
        for (body, several) in [(checks, false), ("", true)] {
            let program = behind(&product("", body, ""));
            assert!(both(&program, grouping, 180, [9, 35, 5]).1);
            let jam = Jam::of(&program, grouping).expect("groups");
            assert_eq!(jam.groups(9 * 35, 2, &[35, 5, 180]).is_some(), several, "{grouping:?}");
        }
    }
}

/// What is far from the right number is skipped, and some of the rest is nearer than others.
const NEAR: &str = "v50: f64 = load right[v22]
    v51: f64 = fsub v20, v50
    v52: f64 = fabs v51
    v53: bool = fcmp.gt v52, 900.0
    if v53 {
    } else {
      count.17 = add count.17, 1
      v54: bool = fcmp.lt v52, 300.0
      if v54 {
        near.39 = fadd near.39, v51
      }
    }";

fn near(skips: &str) -> Program {
    let open = skips.matches('{').count() - skips.matches('}').count() - 1;
    let body = NEAR.replace("    if v53 {\n    } else {", skips) + &"}".repeat(open);
    let behind = "sum.15 = fadd sum.15, near.39\n  store counts[job.0] = count.17";
    let program =
        product("near.39: f64 = copy 0.0", &body, behind).to_string().replace("fadd sum.15, v24", "fadd sum.15, v20");
    parse(&program).unwrap_or_else(|e| panic!("{e}\n{program}"))
}

#[test]
fn jobs_that_part_come_together_again() {
    let skips = [
        "if v53 {\n    } else {",
        "v55: bool = not v53\n    if v55 {",
        // whoever is not far, and is not itself
        "v55: bool = icmp.eq k.16, v11\n    if v55 {\n    } else {\n    if v53 {\n    } else {",
        "v55: bool = fcmp.lt v50, v20\n    v56: bool = or v53, v55\n    if v56 {\n    } else {",
    ];
    for skips in skips {
        let program = near(skips);
        assert!(Jam::of(&program, Grouping::Strided).is_none());
        for sizes in SIZES {
            both(&program, Grouping::Consecutive, 0, sizes);
            on_the_cpu(&program, sizes);
        }
    }
}

#[test]
fn jobs_that_part_by_more_than_floats_are_no_groups() {
    let skips = [
        "v55: bool = icmp.eq k.16, v11\n    v56: bool = or v53, v55\n    if v56 {\n    } else {",
        "v55: bool = icmp.gt v22, 3\n    if v55 {\n    } else {",
        "v55: bool = icmp.lt v11, 9\n    v56: bool = and v53, v55\n    if v56 {\n    } else {",
        "if v53 {\n      count.17 = add count.17, 2\n    } else {",
        // nearly nothing is done
        "if v53 {\n      near.39 = fadd near.39, v51\n    }\n    v55: bool = fcmp.gt v51, 800.0\n    if v55 {\n    } else {",
    ];
    for skips in skips {
        assert!(Jam::of(&near(skips), Grouping::Consecutive).is_none(), "{skips}");
    }
}

#[test]
fn what_stands_once_for_each_job_is_bounded() {
    let long = |count: usize| {
        let adds = "      near.39 = fadd near.39, v51\n".repeat(count);
        near(&format!("if v53 {{\n    }} else {{\n{adds}"))
    };
    let width = |count| Jam::of(&long(count), Grouping::Consecutive).map(|jam| jam.width);
    assert_eq!([width(0), width(600), width(2000)], [Some(4), Some(2), None]);
}

#[test]
fn jobs_that_may_part_are_compared_two_by_two_and_branched_upon_once() {
    let code = on_the_cpu(&near("if v53 {\n    } else {"), [4, 20, 3]);
    assert!(code.contains("splat.f64x2") && code.contains("vhigh_bits.i8"), "{code}");
    // what only those add to that are near is in memory: no loop carries it
    assert!(code.contains("stack_addr"), "{code}");
}

#[test]
fn where_nothing_is_loaded_by_all_of_them_there_are_no_groups() {
    let text = product("", "", "").to_string().replace("load left[v19]", "load left[v22]");
    let program = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(Jam::of(&program, Grouping::Consecutive).is_none());
}

/// Statements that compute numbers from what is at hand, before the loop or in it, and now and then raise.
fn statements(choices: &[u16], in_loop: bool) -> String {
    let mut next = choices.iter().copied().map(usize::from);
    let mut ints: Vec<String> = ["job.0", "v9", "v11", "v13", "v14", "v5"].map(str::to_owned).into();
    if in_loop {
        ints.extend(["v40", "v41", "k.16", "v19", "v22"].map(str::to_owned));
    }
    let first = if in_loop { 60 } else { 40 };
    let mut text = String::new();
    let mut count = 0;
    while let (Some(kind), Some(a), Some(b)) = (next.next(), next.next(), next.next()) {
        let (x, y) = (ints[a % ints.len()].clone(), ints[b % ints.len()].clone());
        let small = 1 + b % 5;
        let factor = if b % 7 == 0 { [i64::MIN, i64::MAX][b % 2] } else { small as i64 };
        let what = match kind % 12 {
            0 => format!("add {x}, {y}"),
            1 => format!("sub {x}, {y}"),
            2 => format!("mul {x}, {factor}"),
            3 => format!("add {x}, {small}"),
            4 => format!("sub {small}, {x}"),
            5 => format!("and {x}, {}", [1, 3, 63, 12, i64::MAX][small - 1]),
            6 => format!("div {x}, {small}"),
            7 => format!("rem {x}, {small}"),
            8 => format!("rem {x}, v5"),
            9 => format!("div {x}, v5"),
            10 => format!("copy {x}"),
            _ => {
                let id = first + 10 + count;
                text +=
                    &format!("  v{id}: bool = icmp.gt {x}, {}\n  if v{id} {{\n    trap s0 {x}\n  }}\n", 200 * small);
                count += 1;
                continue;
            }
        };
        let id = first + count;
        text += &format!("  v{id}: i64 = {what}\n");
        ints.push(format!("v{id}"));
        count += 1;
        if count == 9 {
            break;
        }
    }
    let last = ints[ints.len() - 1].clone();
    let id = if in_loop { 80 } else { 81 };
    text + &format!("  v{id}: f64 = int_to_float {last}\n  sum.15 = fadd sum.15, v{id}\n")
}

#[test]
fn random_loops_come_to_the_same() {
    use proptest::prop_oneof;
    use proptest::test_runner::{Config, TestRunner};
    let cases = (
        proptest::collection::vec(0..1000u16, 6..27),
        proptest::collection::vec(0..1000u16, 3..27),
        (1..13usize, prop_oneof![1..20usize, 32..70usize], 1..4usize),
    );
    let mut runner = TestRunner::new(Config { cases: 1500, failure_persistence: None, ..Config::default() });
    let grouped = std::cell::Cell::new([0, 0]);
    let result = runner.run(&cases, |(before, body, (rows, across, inner))| {
        // two numbers from before the loop are looked at in it
        let before = statements(&before, false);
        let known = |id: usize| before.contains(&format!("v{id}: i64"));
        let mut body = statements(&body, true);
        for id in [40, 41] {
            if !known(id) {
                body = body.replace(&format!("v{id},"), "v9,").replace(&format!("v{id}\n"), "v9\n");
            }
        }
        let program = product(&before, &body, "");
        for (turn, grouping) in GROUPINGS.into_iter().enumerate() {
            if Jam::of(&program, grouping).is_some() && both(&program, grouping, 7, [rows, across, inner]).1 {
                let mut counts = grouped.get();
                counts[turn] += 1;
                grouped.set(counts);
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let grouped = grouped.get();
    assert!(grouped.iter().all(|count| *count > 50), "{grouped:?}");
}

#[test]
fn the_widest_mask_and_the_widest_factors_are_no_overflow_of_the_compiler() {
    for number in [
        format!("and v11, {}", i64::MAX),
        format!("mul v11, {}", i64::MIN),
        format!("mul v11, {}", i64::MAX),
        "rem v11, 9223372036854775807".to_owned(),
    ] {
        let program = product(
            &format!("v40: i64 = {number}\n  v41: f64 = int_to_float v40\n  sum.15 = fadd sum.15, v41"),
            "",
            "",
        );
        for grouping in GROUPINGS {
            assert!(both(&program, grouping, 0, [9, 35, 3]).1, "{grouping:?}: {number}");
        }
    }
}

#[test]
fn a_table_too_wide_for_any_launch_is_no_table_of_groups() {
    let narrow = "  v6: i32 = narrow job.0\n  v7: i32 = narrow v5\n  v8: i32 = udiv v6, v7\n  v9: i64 = widen v8\n  v10: i32 = urem v6, v7\n  v11: i64 = widen v10\n";
    let text = product("", "", "").to_string().replace(" from 0 to 536870911", "");
    let wide = text.replace(narrow, "  v9: i64 = div job.0, v5\n  v11: i64 = rem job.0, v5\n");
    let program = parse(&wide).unwrap_or_else(|e| panic!("{e}\n{wide}"));
    for grouping in GROUPINGS {
        let jam = Jam::of(&program, grouping).unwrap_or_else(|| panic!("{grouping:?}: no groups\n{program}"));
        for across in [1 << 62, (1 << 62) + 1, i64::MAX as u64] {
            let groups = jam.groups(100_000, 1, &[across, 3, 9]).map(|(groups, _)| groups);
            assert_eq!(
                groups,
                (grouping == Grouping::Consecutive).then(|| 100_000_u64.div_ceil(jam.width)),
                "{grouping:?} {across}"
            );
        }
    }
}

/// Runs a program singly in the interpreter, and in groups on the CPU; gives the code of these.
fn on_the_cpu(program: &Program, sizes: [usize; 3]) -> String {
    let [rows, across, inner] = sizes;
    let (jobs, params) = ((rows * across) as u64, [across as u64, inner as u64, 0]);
    let backend = CpuBackend::with_threads(1).expect("this host is supported");
    let numbers = |(outcome, bits, counts): Came| {
        let number = |bits: u64| if f64::from_bits(bits).is_nan() { "NaN".to_owned() } else { format!("{bits:x}") };
        (outcome, bits.into_iter().map(number).collect::<Vec<_>>(), counts)
    };
    let expected = numbers(run_on(&ReferenceBackend::default(), program, jobs, &params, sizes, true));
    let found = numbers(run_on(&backend, program, jobs, &params, sizes, true));
    assert_eq!(found, expected, "{sizes:?}\n{program}");
    let layout = Layout::structure_of_arrays(program);
    let listing = backend.prepare(program, &layout, &CodeOptions::default()).expect("it compiles").listing();
    let (_, together) = listing.split_once("jobs at once").unwrap_or_else(|| panic!("no groups\n{program}"));
    together.to_owned()
}

/// From few to many, and around what groups are.
const SIZES: [[usize; 3]; 6] = [[1, 33, 2], [4, 9, 3], [3, 16, 1], [7, 31, 4], [40, 8, 5], [5, 67, 0]];

#[test]
fn two_jobs_are_one_vector() {
    let code = on_the_cpu(&product("", "", ""), [4, 20, 3]);
    for parts in ["load.f64x2", "splat.f64x2", "fmul v", "fadd.f64x2"] {
        assert!(code.contains(parts), "{parts}\n{code}");
    }
    // eight jobs are four vectors, which are put together and taken apart outside of loops alone
    assert!(code.matches("load.f64x2").count() >= 4 && !code.contains("insertlane"), "{code}");
    assert_eq!(code.matches("extractlane").count(), 8, "{code}");
}

#[test]
fn what_two_jobs_begin_with_alike_is_no_obstacle() {
    let begins =
        ["v40: f64 = int_to_float v12\n  sum.15 = copy v40", "sum.15 = int_to_float v12", "sum.15 = load left[v14]"];
    for begin in begins {
        let code = on_the_cpu(&product(begin, "", ""), [4, 20, 3]);
        assert_eq!(code.matches("load.f64x2").count(), 4, "{begin}\n{code}");
    }
}

#[test]
fn what_costs_more_than_it_saves_is_no_vector() {
    let calls = "v50: f64 = load right[v22]\n v51: f64 = math.exp v50\n sum.15 = fadd sum.15, v51";
    let text = product("", calls, "").to_string().replace("fadd sum.15, v24", "fadd sum.15, v20");
    let program = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let code = on_the_cpu(&program, [4, 20, 3]);
    assert!(!code.contains("f64x2"), "{code}");
}

#[test]
fn vectors_are_what_their_lanes_are() {
    let bodies = [
        "v50: f64 = fneg v20\n sum.15 = fsub sum.15, v50",
        "v50: f64 = load right[v22]\n v51: f64 = fdiv v50, v20\n v52: f64 = fabs v51\n sum.15 = fsub sum.15, v52",
        "v50: f64 = load right[v22]\n v51: f64 = fabs v50\n v52: f64 = fsqrt v51\n v53: f64 = fdiv v20, v52\n sum.15 = fsub v53, sum.15",
        "v50: f64 = load right[v22]\n v51: f64 = fneg v50\n v52: f64 = fmul v51, -0.0\n sum.15 = copy v52",
        // a lane by itself, and Floats that are no Floats of neighbours
        "v50: f64 = load right[v22]\n v51: f64 = ffloor v50\n v52: f64 = fdiv v51, v50\n sum.15 = fdiv v52, sum.15",
        "v50: i64 = add v22, k.16\n v51: f64 = int_to_float v50\n v52: f64 = fdiv v20, v51\n sum.15 = fmul sum.15, v52",
        "v50: i64 = mul v11, 7\n v51: i64 = rem v50, v5\n v52: f64 = load right[v51]\n v53: f64 = fsqrt v52\n sum.15 = fdiv sum.15, v53",
        "v50: bool = fcmp.lt sum.15, v20\n sum.15 = select v50, v20, sum.15",
        "v50: bool = fcmp.lt sum.15, v20\n v51: f64 = fdiv v20, sum.15\n sum.15 = select v50, v51, sum.15",
    ];
    for body in bodies {
        let program = product("", body, "");
        for sizes in SIZES {
            on_the_cpu(&program, sizes);
        }
    }
}

/// Statements in which jobs part, some within others, from what [`floats`] computes.
fn branches(choices: &[u16], floats: &str) -> String {
    let numbers: Vec<&str> =
        floats.lines().filter_map(|line| line.trim().split_once(": f64").map(|(v, _)| v)).collect();
    let (mut text, mut open, mut counted) = (String::new(), Vec::new(), 200..);
    for choice in choices.chunks_exact(3) {
        let [kind, a, b] = [0, 1, 2].map(|at| usize::from(choice[at]));
        let pick = |n: usize| if n.is_multiple_of(5) { "0.5" } else { numbers[n % numbers.len()] };
        let id = counted.next().expect("there is no last");
        match kind % 8 {
            0..3 if open.len() < 3 => {
                let test = ["fcmp.lt", "fcmp.ge", "fcmp.ne", "icmp.eq"][a % 4];
                let (x, y) = if a % 4 == 3 { ("k.16", "v11") } else { (pick(a), pick(b)) };
                let empty = kind % 16 < 8;
                text +=
                    &format!("v{id}: bool = {test} {x}, {y}\n if v{id} {{\n {}", if empty { "} else {\n" } else { "" });
                open.push(id);
            }
            3 if !open.is_empty() => {
                text += "}\n";
                open.pop();
            }
            4 => text += "count.17 = add count.17, 1\n",
            5 => text += &format!("near.39 = fadd near.39, {}\n", pick(a)),
            6 => text += &format!("sum.15 = fsub sum.15, {}\n", pick(b)),
            _ => text += &format!("v{id}: f64 = fmul {}, {}\n near.39 = fsub near.39, v{id}\n", pick(a), pick(b)),
        }
    }
    text + &"}\n".repeat(open.len())
}

/// Statements that compute Floats from others.
fn floats(choices: &[u16]) -> String {
    let mut floats: Vec<String> = ["v20", "v50", "v51", "sum.15", "0.5", "-0.0"].map(str::to_owned).into();
    let mut text = "    v50: f64 = load right[v22]\n    v51: f64 = int_to_float v22\n".to_owned();
    let mut counted = 60..;
    for choice in choices.chunks_exact(3) {
        let [kind, a, b] = [0, 1, 2].map(|at| usize::from(choice[at]));
        // the newest more often, so that chains are long
        let pick = |n: usize| floats[(floats.len() - 1).saturating_sub(n % (floats.len() + 3))].clone();
        let (x, y) = (pick(a), pick(b));
        let id = counted.next().expect("there is no last");
        let what = match kind % 14 {
            0 | 1 => format!("fadd {x}, {y}"),
            2 | 3 => format!("fsub {x}, {y}"),
            4 | 5 => format!("fmul {x}, {y}"),
            6 | 7 => format!("fdiv {x}, {y}"),
            8 => format!("fsqrt {x}"),
            9 => format!("fneg {x}"),
            10 => format!("fabs {x}"),
            11 => format!("ffloor {x}"),
            12 => format!("copy {x}"),
            _ => {
                let test = counted.next().expect("there is no last");
                text += &format!("    v{test}: bool = fcmp.le {x}, {y}\n");
                format!("select v{test}, {y}, {x}")
            }
        };
        if kind % 5 == 0 {
            text += &format!("    sum.15 = {what}\n");
        } else {
            text += &format!("    v{id}: f64 = {what}\n");
            floats.push(format!("v{id}"));
        }
    }
    text + &format!("    sum.15 = fadd sum.15, {}\n", floats[floats.len() - 1])
}

#[test]
fn of_two_vectors_one_is_chosen_lane_by_lane() {
    let code = on_the_cpu(
        &product(
            "",
            "v50: f64 = load right[v22]\n v51: bool = fcmp.lt sum.15, v50\n sum.15 = select v51, v50, sum.15",
            "",
        ),
        [4, 20, 3],
    );
    assert_eq!(code.matches("bitselect").count(), 4, "{code}");
    let alike = "v50: f64 = load right[v22]\n v51: bool = fcmp.lt v20, 7.0\n sum.15 = select v51, v50, sum.15";
    let code = on_the_cpu(&product("", alike, ""), [4, 20, 3]);
    assert!(code.contains("select.f64x2") && !code.contains("bitselect"), "{code}");
}

#[test]
fn random_floats_of_groups_come_to_the_same() {
    use proptest::test_runner::{Config, TestRunner};
    let cases = (proptest::collection::vec(0..1000u16, 3..40), 0..SIZES.len());
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let vectors = std::cell::Cell::new(0);
    let result = runner.run(&cases, |(choices, sizes)| {
        let program = product("", &floats(&choices), "");
        if Jam::of(&program, Grouping::Consecutive).is_some() {
            let code = on_the_cpu(&program, SIZES[sizes]);
            vectors.set(vectors.get() + usize::from(code.contains("f64x2")));
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(vectors.get() > 100, "{}", vectors.get());
}

#[test]
fn random_jobs_that_part_come_to_the_same() {
    use proptest::test_runner::{Config, TestRunner};
    let choices = |most| proptest::collection::vec(0..1000u16, 3..most);
    let cases = (choices(18), choices(40), 0..SIZES.len(), proptest::bool::ANY);
    let mut runner = TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
    let [vectors, parted] = [(); 2].map(|()| std::cell::Cell::new(0));
    let result = runner.run(&cases, |(choices, apart, sizes, adds)| {
        let floats = floats(&choices);
        let body = format!("{floats}{}", branches(&apart, &floats));
        let count = if adds { "atomic add counts[v11], count.17 else s1" } else { "store counts[job.0] = count.17" };
        let behind = format!("sum.15 = fadd sum.15, near.39\n  {count}");
        let program = product("near.39: f64 = copy 0.0", &body, &behind);
        if let Some(jam) = Jam::of(&program, Grouping::Consecutive) {
            both(&program, Grouping::Consecutive, 0, SIZES[sizes]);
            let code = on_the_cpu(&program, SIZES[sizes]);
            parted.set(parted.get() + usize::from(!jam.registers.apart.is_empty()));
            vectors.set(vectors.get() + usize::from(code.contains("vhigh_bits")));
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(parted.get() > 60 && vectors.get() > 60, "{} {}", parted.get(), vectors.get());
}
