//! The wires that the stand-in speaks, a file each: reading requests, and the shapes of answers.

pub(super) mod openai;
