"""Symbols: languages, formulas, rules, theories and the files they are written in."""
