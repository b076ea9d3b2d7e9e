"""Numbers, quantities and units as templates show them."""
