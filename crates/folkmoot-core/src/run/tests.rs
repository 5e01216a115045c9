//! The kernel's proof: laws that hold in every random run, and by name the rules that a reader of
//! the pages would look up.

mod amendments;
mod bounds;
mod budgets;
mod cancels;
mod chains;
mod clocks;
mod crashes;
mod graphs;
mod hand;
mod laws;
mod mail;
mod nested;
mod patterns;
mod programs;
mod retries;
mod roles;
mod stops;
mod tables;
mod tight;
mod trial;
mod windows;
mod world;
