//! Scheduling around launches: the order of jobs, the combination of what elements contributed, and where launches run.

pub mod combine;
pub mod cost;
pub mod reorder;
pub mod stencil;
