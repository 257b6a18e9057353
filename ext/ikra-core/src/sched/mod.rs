//! What happens around launches: combining what elements contributed.

pub mod combine;
