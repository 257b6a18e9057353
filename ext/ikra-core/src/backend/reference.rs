//! Interpreter of the IR: slow and obvious, the oracle of the other backends.
