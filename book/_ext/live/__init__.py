"""What runs in the reader's browser: the cells of the pages, and JupyterLite."""
