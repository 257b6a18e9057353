//! Checks that arrays and references have the uniform stride that a program assumes.
//!
//! Here: the check of their columns before a launch, which sets the parameters that describe the stride
//! ([`crate::ir::UniformStride`]). Not here: what happens to a section whose columns fail the check.

use super::column::HostColumn;
use crate::ir::{ParamId, Program, UniformStride};
use crate::world::StrideAssumption;

/// Sets the parameters that describe each uniform stride. `biases`: the first row of each column.
///
/// # Errors
/// The assumption that does not hold.
pub fn find(
    program: &Program,
    columns: &[HostColumn],
    biases: &[u64],
    params: &mut [u64],
) -> Result<(), StrideAssumption> {
    let mut set = |param: ParamId, word: u64| {
        params[param.index()] = word;
        program.params[param.index()].takes(word)
    };
    // Where arrays of constants lie is a part of the program, too.
    let constant = program.strides.iter().any(|stride| matches!(stride, UniformStride::Constants { .. }));
    program.strides.iter().try_for_each(|stride| {
        let (column, bias) = (&columns[stride.column().index()], biases[stride.column().index()]);
        let wrong = match *stride {
            UniformStride::Arrays { start, step, length, .. } => {
                let words = column.view::<u64>();
                let Some(first) = words.first() else { return Ok(()) };
                let apart = words.get(1).map_or(0, |second| second.wrapping_sub(*first));
                // the low half of a word is the length, which must be equal in all
                let (away, same) = (apart >> 32, apart & 0xffff_ffff == 0);
                let lies = |(row, word): (usize, &u64)| *word == first.wrapping_add(apart.wrapping_mul(row as u64));
                let fits = set(start, (first >> 32).wrapping_sub(bias.wrapping_mul(away))) & set(step, away);
                let is_long = set(length, first & 0xffff_ffff);
                let uniform = same && fits && words.iter().enumerate().all(lies);
                if uniform && is_long {
                    None
                } else if constant && same {
                    Some(StrideAssumption::Constants)
                } else {
                    Some(if uniform { StrideAssumption::Lengths } else { StrideAssumption::Arrays })
                }
            }
            UniformStride::References { start, .. } => {
                let words = column.view::<u32>();
                let Some(first) = words.first() else { return Ok(()) };
                let follows = |(row, word): (usize, &u32)| *word == first.wrapping_add(row as u32);
                let uniform = set(start, u64::from(*first).wrapping_sub(bias)) && words.iter().enumerate().all(follows);
                (!uniform).then_some(StrideAssumption::References)
            }
            UniformStride::Constants { ref rows, .. } => {
                (*column.view::<i64>() != **rows).then_some(StrideAssumption::Constants)
            }
        };
        wrong.map_or(Ok(()), Err)
    })
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::ir::testing::{INPUT, program};
    use crate::ir::{Param, ParamId, Program, Scalar, Storage, UniformStride};
    use crate::memory::column::HostColumn;
    use crate::world::StrideAssumption;

    fn with_params<const N: usize>(ranges: [Option<(i64, i64)>; N]) -> (Program, [ParamId; N]) {
        let mut program = program(|_, _| {});
        let ids = ranges.map(|range| {
            program.params.push(Param { range, ..Param::new("", Scalar::I64) });
            ParamId::new(program.params.len() - 1)
        });
        (program, ids)
    }

    /// What `find` sets for a column that begins at row `bias`.
    fn found<const N: usize>(
        program: &Program,
        asked: [ParamId; N],
        fill: impl FnOnce(&mut HostColumn),
        bias: u64,
    ) -> Result<[i64; N], StrideAssumption> {
        let mut columns: Vec<_> = program.columns.iter().map(|c| HostColumn::zeroed(c.storage, 0)).collect();
        fill(&mut columns[INPUT.index()]);
        let mut biases = vec![0; columns.len()];
        biases[INPUT.index()] = bias;
        let mut params = vec![0; program.params.len()];
        find(program, &columns, &biases, &mut params)?;
        Ok(asked.map(|param| params[param.index()] as i64))
    }

    /// Start, step and length of arrays, where the program assumes a range for the length.
    fn of_length(arrays: &[(u64, u64)], bias: u64, length: Option<(i64, i64)>) -> Result<[i64; 3], StrideAssumption> {
        let (mut program, params) = with_params([None, Some((0, 1 << 29)), length]);
        let [start, step, length] = params;
        program.strides.push(UniformStride::Arrays { column: INPUT, start, step, length });
        let fill = |column: &mut HostColumn| {
            column.resize(arrays.len());
            let words = column.view_mut::<u64>();
            words.iter_mut().zip(arrays).for_each(|(word, (offset, length))| *word = offset << 32 | length);
        };
        found(&program, params, fill, bias)
    }

    fn lies(arrays: &[(u64, u64)], bias: u64) -> Result<[i64; 3], StrideAssumption> {
        of_length(arrays, bias, None)
    }

    /// The start of the references.
    fn first(rows: &[u32]) -> Result<[i64; 1], StrideAssumption> {
        let (mut program, params) = with_params([Some((0, i32::MAX.into()))]);
        program.strides.push(UniformStride::References { column: INPUT, start: params[0] });
        let fill = |column: &mut HostColumn| {
            *column = HostColumn::zeroed(Storage::U32, rows.len());
            column.view_mut::<u32>().copy_from_slice(rows);
        };
        found(&program, params, fill, 0)
    }

    #[test]
    fn rows_of_one_length_one_after_the_other_have_a_uniform_stride() {
        assert_eq!(lies(&[(8, 4), (12, 4), (16, 4)], 0), Ok([8, 4, 4]));
        assert_eq!(lies(&[(8, 3), (12, 3), (16, 3)], 5), Ok([-12, 4, 3]));
        assert_eq!(lies(&[(7, 2)], 0), Ok([7, 0, 2]));
        assert_eq!(lies(&[(7, 2), (7, 2)], 0), Ok([7, 0, 2]));
        assert_eq!(lies(&[], 0), Ok([0, 0, 0]));
    }

    #[test]
    fn rows_of_two_lengths_or_in_another_order_are_not() {
        assert_eq!(lies(&[(8, 4), (12, 4), (16, 3)], 0), Err(StrideAssumption::Arrays));
        assert_eq!(lies(&[(8, 4), (12, 5), (16, 6)], 0), Err(StrideAssumption::Arrays));
        assert_eq!(lies(&[(8, 4), (16, 4), (12, 4)], 0), Err(StrideAssumption::Arrays));
        assert_eq!(lies(&[(16, 4), (12, 4), (8, 4)], 0), Err(StrideAssumption::Arrays));
    }
    #[test]
    fn arrays_of_another_length_than_the_program_knows_are_told_from_those_that_lie_otherwise() {
        let eight = Some((8, 8));
        assert_eq!(of_length(&[(0, 8), (8, 8)], 0, eight), Ok([0, 8, 8]));
        assert_eq!(of_length(&[(0, 6), (6, 6)], 0, eight), Err(StrideAssumption::Lengths));
        assert_eq!(of_length(&[(0, 8), (8, 6)], 0, eight), Err(StrideAssumption::Arrays));
        assert_eq!(of_length(&[], 0, eight), Ok([0, 0, 0]));
    }

    #[test]
    fn references_to_rows_one_after_the_other_have_a_uniform_stride_from_any_row_on() {
        assert_eq!(first(&[4, 5, 6]), Ok([4]));
        assert_eq!(first(&[9]), Ok([9]));
        assert_eq!(first(&[]), Ok([0]));
        for rows in [[4, 6, 7], [4, 5, 5], [6, 5, 4], [u32::MAX, 0, 1]] {
            assert_eq!(first(&rows), Err(StrideAssumption::References), "{rows:?}");
        }
    }

    #[test]
    fn constants_are_exactly_what_they_were() {
        let mut program = program(|_, _| ());
        program.strides.push(UniformStride::Constants { column: INPUT, rows: [3, -1, 4].into() });
        let find = |rows: &[i64]| {
            let mut columns: Vec<HostColumn> =
                program.columns.iter().map(|column| HostColumn::zeroed(column.storage, 0)).collect();
            columns[INPUT.index()] = HostColumn::zeroed(Storage::I64, rows.len());
            columns[INPUT.index()].view_mut::<i64>().copy_from_slice(rows);
            super::find(&program, &columns, &vec![0; columns.len()], &mut [])
        };
        assert_eq!(find(&[3, -1, 4]), Ok(()));
        for rows in [&[][..], &[3, -1], &[3, -1, 5], &[3, -1, 4, 0]] {
            assert_eq!(find(rows), Err(StrideAssumption::Constants), "{rows:?}");
        }
    }
}
