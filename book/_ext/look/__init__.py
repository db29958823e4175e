"""How the site looks, is found, is shared and is published."""
