//! What improves a program: the ordered list, and one file per pass.
