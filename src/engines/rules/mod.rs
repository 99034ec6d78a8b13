//! Hard rules: JSON Logic syntax, three-valued answers.
