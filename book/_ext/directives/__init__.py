"""What a page is written with: directives, figures, formulas and citations."""
