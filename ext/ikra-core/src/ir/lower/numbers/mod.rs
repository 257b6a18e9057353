//! What the methods of Integer and Float, and the functions of Math, do.
