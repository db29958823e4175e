"""The runs behind the book's pages: their recipes, and what was stored of them."""
