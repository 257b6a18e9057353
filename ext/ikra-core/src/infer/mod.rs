//! Abstract interpretation of a block to a fixpoint over union types.
