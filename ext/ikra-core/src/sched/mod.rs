//! What happens around launches: the order of jobs, combining what elements contributed, and where they run.

pub mod combine;
pub mod cost;
pub mod reorder;
pub mod stencil;
