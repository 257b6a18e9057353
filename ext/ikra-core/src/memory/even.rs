//! Whether arrays lie evenly, as a program takes them to.
//!
//! Here: the look at their columns before a launch, which says by parameters what they are ([`crate::ir::Even`]). Not here: what becomes of a section
//! whose arrays do not.

use super::column::HostColumn;
use crate::ir::Program;

/// Sets the parameters of arrays that lie evenly; false: some do not. `biases`: the first row of each column.
pub fn find(program: &Program, columns: &[HostColumn], biases: &[u64], params: &mut [u64]) -> bool {
    program.even.iter().all(|even| {
        let words = columns[even.column.index()].view::<u64>();
        let first = words.first().copied().unwrap_or(0);
        let apart = words.get(1).map_or(0, |second| second.wrapping_sub(first));
        // the low half, their length, is the same in all
        let (step, same) = (apart >> 32, apart & 0xffff_ffff == 0);
        let lies = |(row, word): (usize, &u64)| *word == first.wrapping_add(apart.wrapping_mul(row as u64));
        let bias = biases[even.column.index()];
        let start = (first >> 32).wrapping_sub(bias.wrapping_mul(step));
        let found = [(even.start, start), (even.step, step), (even.length, first & 0xffff_ffff)];
        found.iter().for_each(|(param, word)| params[param.index()] = *word);
        let fits = found.iter().all(|(param, word)| program.params[param.index()].takes(*word));
        same && fits && words.iter().enumerate().all(lies)
    })
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::ir::testing::{INPUT, program};
    use crate::ir::{Even, Param, ParamId, Scalar};
    use crate::memory::column::HostColumn;

    /// Start, step and length, of a column that begins at row `bias`.
    fn found(arrays: &[(u64, u64)], bias: u64) -> Option<[i64; 3]> {
        let mut program = program(|_, _| {});
        let [start, step, length] = [0, 1, 2].map(|i| ParamId::new(program.params.len() + i));
        program.params.extend(["start", "step", "length"].map(|name| Param::new(name, Scalar::I64)));
        program.params[step.index()].range = Some((0, 1 << 29));
        program.even.push(Even { column: INPUT, start, step, length });
        let mut columns: Vec<_> = program.columns.iter().map(|c| HostColumn::zeroed(c.storage, 0)).collect();
        columns[INPUT.index()].resize(arrays.len());
        let words = columns[INPUT.index()].view_mut::<u64>();
        words.iter_mut().zip(arrays).for_each(|(word, (offset, length))| *word = offset << 32 | length);
        let mut biases = vec![0; columns.len()];
        biases[INPUT.index()] = bias;
        let mut params = vec![0; program.params.len()];
        let even = find(&program, &columns, &biases, &mut params);
        even.then(|| [start, step, length].map(|param| params[param.index()] as i64))
    }

    #[test]
    fn rows_of_one_length_one_after_the_other_are_even() {
        assert_eq!(found(&[(8, 4), (12, 4), (16, 4)], 0), Some([8, 4, 4]));
        assert_eq!(found(&[(8, 3), (12, 3), (16, 3)], 5), Some([-12, 4, 3]));
        assert_eq!(found(&[(7, 2)], 0), Some([7, 0, 2]));
        assert_eq!(found(&[(7, 2), (7, 2)], 0), Some([7, 0, 2]));
        assert_eq!(found(&[], 0), Some([0, 0, 0]));
    }

    #[test]
    fn rows_of_two_lengths_or_in_another_order_are_not() {
        assert_eq!(found(&[(8, 4), (12, 4), (16, 3)], 0), None);
        assert_eq!(found(&[(8, 4), (12, 5), (16, 6)], 0), None);
        assert_eq!(found(&[(8, 4), (16, 4), (12, 4)], 0), None);
        assert_eq!(found(&[(16, 4), (12, 4), (8, 4)], 0), None);
    }
}
