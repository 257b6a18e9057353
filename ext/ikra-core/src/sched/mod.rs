//! Scheduling around launches: the order of jobs, the combination of what elements contributed, where launches run, and
//! which run side by side.

pub mod batch;
pub mod combine;
pub mod cost;
pub mod knapsack;
pub mod makespan;
pub mod occupancy;
pub mod plan;
pub mod reorder;
pub mod stencil;
