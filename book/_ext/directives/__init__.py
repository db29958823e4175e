"""What a page is written with: directives, figures, tables, formulas and citations."""
