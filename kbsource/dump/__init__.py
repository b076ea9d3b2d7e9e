"""A Wikipedia dump in any of its published forms -> RawPage."""
