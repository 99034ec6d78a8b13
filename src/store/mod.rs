//! The only domain SQL: one file per aggregate, functions over `&mut PgConnection`.

pub mod db;
