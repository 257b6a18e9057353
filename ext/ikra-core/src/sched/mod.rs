//! What happens around launches: combining what elements contributed, and where they run.

pub mod combine;
pub mod cost;
pub mod stencil;
