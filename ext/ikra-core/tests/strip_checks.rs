//! Strips whose indices are checked for their first and their last repetition come to what they come to otherwise.

use ikra_core::backend::reference::ReferenceBackend;
use ikra_core::backend::{Backend, Launch, Outcome, Timings};
use ikra_core::config::CodeOptions;
use ikra_core::ir::Program;
use ikra_core::ir::parse::parse;
use ikra_core::ir::verify::verify;
use ikra_core::layout::Layout;
use ikra_core::memory::column::HostColumn;
use ikra_core::passes::{COMMON, CUDA, Versioned};
use ikra_core::types::Storage;
use proptest::test_runner::{Config, TestRunner};

/// A loop that loads one element of `left` in each repetition: `before` it, its `index`, and what comes `behind` the
/// load. v3: how often it repeats; v4: the distance of rows; v5: the length of `left`; v6: a small number of the job's.
fn sums(before: &str, index: &str, behind: &str) -> Program {
    let text = format!(
        r#"program "sums" jobs identity, few, ticks fused
column c0 "result" f64 in element, written
column c1 "left" f64 in array 0, read
param p0 "inner" i64 from 0 to 536870911
param p1 "stride" i64 from -1000 to 536870911
param p2 "length" i64 from 0 to 536870911
site s0 refuted "/tmp/sums.rb" 7 1 at "/tmp/sums.rb":7 (int)
site s1 overflow "+" at "/tmp/sums.rb":8 ()
site s2 refuted "/tmp/sums.rb" 9 1 at "/tmp/sums.rb":9 (int)

entry func f0 "entry" (job.0: i64, tick_begin.1: i64, tick_end.2: i64) {{
  begin check job.0, tick_begin.1
  v3: i64 = param p0 "inner"
  v4: i64 = param p1 "stride"
  v5: i64 = param p2 "length"
  v6: i64 = and job.0, 63
  sum.7: f64 = copy 0.0
  k.8: i64 = copy 0
  {before}
  v9: bool = icmp.gt v3, 0
  if v9 {{
    loop L0 {{
      {index}
      v30: f64 = load left[v20]
      sum.7 = fmul sum.7, 0.5
      sum.7 = fadd sum.7, v30
      {behind}
      k.8 = add k.8, 1
      poll
      v31: bool = icmp.ge k.8, v3
      if v31 {{
        break L0
      }}
    }}
  }}
  store result[job.0] = sum.7
  return
}}
"#
    );
    let program = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&program).unwrap_or_else(|e| panic!("{e}\n{text}"));
    program
}

/// The program with strips, and the same whose checks are made by strips. None: none were.
fn stripped(program: Program) -> (Program, Option<Program>) {
    let mine = COMMON.iter().find(|pass| pass.name == "strip_mine").expect("the pass is there");
    let checks = CUDA.iter().find(|pass| pass.name == "strip_checks").expect("the pass is there");
    let before = (mine.run)(program);
    let after = (checks.run)(Versioned::from(before.clone())).program;
    verify(&after).unwrap_or_else(|e| panic!("{e}\n{after}"));
    let changed = after != before;
    (before, changed.then_some(after))
}

fn run(program: &Program, jobs: usize, params: [i64; 3]) -> (Outcome, Vec<u64>) {
    let mut left = HostColumn::zeroed(Storage::F64, params[2] as usize);
    left.view_mut::<f64>().iter_mut().enumerate().for_each(|(at, x)| *x = (at * 7 % 31) as f64 + 0.25);
    let mut columns = [HostColumn::zeroed(Storage::F64, jobs), left];
    let backend = ReferenceBackend::default();
    let executable = backend
        .prepare(program, &Layout::structure_of_arrays(program), &CodeOptions::default())
        .unwrap_or_else(|e| panic!("{e}\n{program}"));
    let (cancel, mut timings) = (Default::default(), Timings::default());
    let words = params.map(|n| n as u64);
    let launch = Launch::of(jobs as u64, &mut columns, &[0; 2], &words, &cancel, &mut timings);
    let outcome = backend.launch(&*executable, launch).unwrap_or_else(|e| panic!("{e}\n{program}"));
    (outcome, columns[0].view::<f64>().iter().map(|x| x.to_bits()).collect())
}

/// The check that a row is there.
const CHECKS: &str = "v21: bool = icmp.ge v20, v5\n if v21 {\n trap s0 v20\n }\n v22: bool = icmp.lt v20, 0\n if v22 {\n trap s2 k.8\n }";

#[test]
fn random_indices_come_to_the_same() {
    let cases = (proptest::collection::vec(0..1000usize, 8), 0..400i64, 0..40i64, 0..4000i64);
    let mut runner = TestRunner::new(Config { cases: 1500, failure_persistence: None, ..Config::default() });
    let (changed, raised) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let result = runner.run(&cases, |(choices, inner, stride, length)| {
        let stride = if choices[0] % 4 == 0 { -stride } else { stride };
        let begin = [0, 5, length, length / 2, length - 1][choices[1] % 5];
        let index = match choices[2] % 8 {
            0 => "v20: i64 = add v10, k.8".to_owned(),
            1 => "v19: i64 = mul k.8, v4\n v20: i64 = add v19, v10".to_owned(),
            2 => "v20: i64 = sub v10, k.8".to_owned(),
            3 => "v18: i64 = mul k.8, v4\n v19: i64 = sub v10, v18\n v20: i64 = add v19, v6".to_owned(),
            4 => "v19: i64 = mul k.8, 3\n v18: i64 = sub v19, k.8\n v20: i64 = add v18, v6".to_owned(),
            5 => "v20: i64 = mul k.8, k.8".to_owned(),
            6 => "v20: i64 = copy at.11".to_owned(),
            _ => "v20: i64 = copy k.8".to_owned(),
        };
        let checks = match choices[2] % 8 {
            // the register itself is compared
            6 => CHECKS.replace("v20, v5", "at.11, v5").replace("v20, 0", "at.11, 0"),
            _ => CHECKS.to_owned(),
        };
        let checks = [checks.clone(), checks.replace("icmp.ge v20, v5", "icmp.le v5, v20")][choices[3] % 2].clone();
        let each = ["v4", "2", "v6", "-1"][choices[4] % 4];
        let behind = [format!("at.11 = checked add at.11, {each} else s1"), format!("at.11 = add {each}, at.11")];
        let before = format!("v10: i64 = add v6, {begin}\n  at.11: i64 = copy v10");
        let program = sums(&before, &format!("{index}\n {checks}"), &behind[choices[5] % 2]);
        let (before, after) = stripped(program);
        let Some(after) = after else { return Ok(()) };
        changed.set(changed.get() + 1);
        for jobs in [1, 70] {
            let params = [inner, stride, length];
            let (expected, came) = (run(&before, jobs, params), run(&after, jobs, params));
            raised.set(raised.get() + usize::from(expected.0 != Outcome::Done));
            if expected.0 == Outcome::Done {
                assert_eq!(came, expected, "{params:?}\n{before}\n{after}");
            } else {
                assert_eq!(came.0, expected.0, "{params:?}\n{before}\n{after}");
            }
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (changed, raised) = (changed.get(), raised.get());
    assert!(changed > 500 && raised > 200 && raised < 2 * changed - 200, "{changed} changed, {raised} raised");
}

/// A program may write strips itself, and begin each with a register that the strip changes. Such strips are not cut.
#[test]
fn strips_that_begin_with_what_they_change_stay_as_long_as_they_are() {
    let before = |reset: &str| {
        let text = sums("at.11: i64 = copy 0", "v20: i64 = add k.8, v6", "").to_string();
        let (head, _) = text.split_once("    loop L0 {").expect("the loop");
        let strips = format!(
            r#"    loop L0 {{
      v40: i64 = add k.8, 100
      v41: bool = icmp.gt v3, v40
      v42: i64 = select v41, v40, v3
      {reset}
      loop L1 {{
        v20: i64 = add k.8, v6
        v21: bool = icmp.ge v20, v5
        if v21 {{
          trap s0 v20
        }}
        v30: f64 = load left[v20]
        at.11 = add at.11, 1
        v43: f64 = int_to_float at.11
        v44: f64 = fmul v30, v43
        sum.7 = fadd sum.7, v44
        v45: bool = fcmp.gt sum.7, 9000.0
        if v45 {{
          break L0
        }}
        k.8 = add k.8, 1
        v46: bool = icmp.ge k.8, v42
        if v46 {{
          break L1
        }}
      }}
      poll
      v31: bool = icmp.ge k.8, v3
      if v31 {{
        break L0
      }}
    }}
  }}
  store result[job.0] = sum.7
  return
}}
"#
        );
        let text = format!("{head}{strips}");
        let program = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        verify(&program).unwrap_or_else(|e| panic!("{e}\n{text}"));
        program
    };
    assert!(stripped(before("at.11 = copy 0")).1.is_none());
    // the same without, which loads no row that is not there, as it ends before
    let (whole, cut) = stripped(before(""));
    let cut = cut.expect("its checks are linear");
    for length in [60, 90, 100, 130, 250] {
        let params = [200, 0, length];
        assert_eq!(run(&cut, 3, params), run(&whole, 3, params), "{length}");
    }
}
