"""List pages: their tables, the facts these state, and questions about them."""
