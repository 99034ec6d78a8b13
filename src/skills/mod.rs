//! Skill files: parsing of both seed shapes, graph check.
