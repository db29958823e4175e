"""The runs behind the book's pages: their recipes, and their stored results."""
